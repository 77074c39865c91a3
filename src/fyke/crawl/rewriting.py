"""Rewrite rules in a running crawl: links are rewritten before the frontier meets them, and rules are put to the test.

A rewritten URL is *put aside*: it waits in a queue on disk, so that it stays known. Rules are tried:

- Of the URLs that a rule would change, the first few, and then one in `ONE_IN` by its key, are fetched as they are,
  beside what the rule makes of them. If the two pages do not say the same, they contradict the rules that took part in
  the change. More URLs of these rules are then tried, also from the queue, until each rule is cleared or revoked
  (`verdicts`). Contradictions of one page count once, because it may change at every request, and a front page has many
  URLs. After `MOST_CONTRADICTIONS` it is an *exception*: URLs that rules would make into it stay as they are.
- A rule for views is contradicted by a page that does not hold what the other says (`harvest/containment`). So it is
  tried where what the URL would become was fetched lately, or was not yet.
- If a URL that a rule made is no page, a URL it was made from is fetched to see whether that is one.
- If a rule is revoked, a page is an exception, or the file has other rules than before, the queue is gone through, and
  URLs that no rule puts aside any more go on as they were met.

Never rewritten are seeds, targets of redirects, pages that are visited again, and links that would become URLs which
the filters refuse, such as at a host beyond the scope.

The loop hands in links on their way to the frontier, and facts of pages (`printing`). With several agents, each shard
does this with the links to its own domains, and tries the rules on them.

Invariants: a URL that was met is on its way to the frontier or aside. The rules in use would rewrite a URL that is
aside, or it is about to be looked at. The same checkpoint and pages give the same results. Bounded: memory holds
`MOST_TRIALS` trials, as many contradicted pages, the keys of pages that failed lately, and what `contents` and the
drums take.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fyke.core.batches import EMPTY, NO_KEYS, URLS, Kind, Mask, keep, numbers, texts, u64, url_batch
from fyke.core.messages import OK, Links, code_of
from fyke.core.outcomes import Outcome
from fyke.core.rewrite_rules import Rule, identity
from fyke.core.rewriting import MOST_CONTRADICTIONS, Rewriter, Rewritten
from fyke.core.slices import Steps, whole
from fyke.core.sorting import among
from fyke.core.urls import key_of, locate
from fyke.crawl.contents import Contents
from fyke.crawl.verdicts import Verdicts
from fyke.disk.drum import Drum
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.filters import Filters

ONE_IN = 100
COUNTED_BYTES = 1 << 18  # of URLs put aside, up to which each is counted by its rules; of more, a sample
MOST_TRIALS = 4096  # at a time
REVIEW_BYTES = 1 << 17  # of URLs in the queue, looked at in a turn: an aim, by the sizes of those before
REVIEW_ROWS = 64, 4096  # rows looked at in a turn: at first and at least, and at most
MANY_FAILED = 1024  # failed pages for which the queue is gone through in spite of other work
MOST_FAILED = 1 << 16
PLACES = 1 << 20
_NO_PAGE = frozenset(
    map(
        code_of,
        (Outcome.GONE, Outcome.REDIRECTED, Outcome.CLIENT_ERROR, Outcome.SERVER_ERROR, Outcome.ROBOTS_FORBADE),
    )
)
NONE = Links(EMPTY, NO_KEYS)


class Trial(NamedTuple):
    """A URL fetched as it is: the key of what it would become (`target`); the numbers of its content
    (`harvest/prints`), none if it is no page, None while unknown; and the names of the rules that are tried."""

    url: str
    target: int
    prints: Sequence[int] | None = None
    rules: Sequence[str] = ()


class Rewriting:
    """The `rules` in use, on the files of a `store`, as `saved` has them; `filters` say what is wanted at all."""

    def __init__(
        self, store: Store, rules: Sequence[Rule], filters: Filters, memory_bytes: int, saved: dict[str, Any]
    ) -> None:
        self._filters = filters
        self._given = list(rules)
        self.revoked: dict[str, str] = dict(saved.get("revoked", {}))  # by name, with the URL that contradicted last
        self.used: Counter[str] = Counter(saved.get("used", {}))  # URLs put aside, by rule
        self.verdicts = Verdicts(saved.get("verdicts", {}), saved.get("suspicion", {}))
        self._trials = {int(key): Trial(*trial) for key, trial in saved.get("trials", {}).items()}
        self._of_target: dict[int, set[int]] = defaultdict(set)  # trials, by the key of their target
        for key, trial in self._trials.items():
            self._of_target[trial.target].add(key)
            self.verdicts.pending.update(trial.rules)
        self._failed: set[int] = set(saved.get("failed", ()))  # keys of URLs, maybe made by rules, that are no pages
        self._looked_for: set[int] = set(saved.get("looked_for", ()))  # those whose origins are looked for in the queue
        self._met = Drum(store, "aside", saved.get("met"), aux=URLS, memory_bytes=memory_bytes)
        self._aside = DiskQueue(store, "aside-urls", URLS, saved.get("aside"))
        self._contents = Contents(store, memory_bytes, saved.get("contents"))
        self._contradicted = Counter({int(key): count for key, count in saved.get("contradicted", {}).items()})  # pages
        self._made = np.zeros(PLACES, bool)  # by place of the key: whether rules made such a URL
        self._left = len(self._aside)  # rows of the queue to go through: all after a restart, to fill `_made`
        self._review_rows = REVIEW_ROWS[0]
        self._changed = bool(saved.get("changed", False))  # whether the queue is gone through because the rules changed
        self._sought: set[str] = set()  # rules for which trials are looked for in the queue
        self._spent: set[str] = set()  # rules for which none was found there
        self._use()
        if saved and saved["identity"] != self._identity:
            for key, trial in list(self._trials.items()):
                if self._rewriter.rewrite(trial.url).url == trial.url:
                    self._drop(key)  # no agent would tell of its page
            self._go_through()

    def __repr__(self) -> str:
        return f"Rewriting({self._rewriter!r}, {len(self._aside)} URLs aside)"

    def _use(self) -> None:
        """Use the rules that are not revoked."""
        self._rewriter = Rewriter(rule for rule in self._given if rule.name not in self.revoked)
        self._hosts = np.array(self._rewriter.host_keys, np.uint64)
        self._identity = identity(self._rewriter.rules)

    def _go_through(self) -> None:
        """Have everything that is aside looked at, because the rules changed."""
        self.merge_aside()
        self._left, self._changed = len(self._aside), True

    @property
    def needs_review(self) -> bool:
        """True if the queue is still to be looked at: for its rows, failed pages or suspect rules."""
        return bool(self._left or self._failed or self._in_want())

    # --- links

    def apply(self, links: Links) -> tuple[Links, Links]:
        """Return the `links` that stay as they are, and the links that rules made of the rest; a link that is tried is
        in both."""
        urls = links.urls
        concerned = among(u64(urls, "host"), self._hosts) & (numbers(urls, "kind") == Kind.PAGE)
        if links.fixed is not None:
            concerned &= ~links.fixed
        rows = np.flatnonzero(concerned)
        if not len(rows):
            return links, NONE
        keys = u64(urls, "key")[rows].tolist()
        made = [self._rewriter.rewrite(url) for url in texts(urls.take(pa.array(rows)))]
        changes = [number for number, one in enumerate(made) if one.rules]
        moved = _moved(urls.take(pa.array(rows[changes])), [made[number].url for number in changes])
        wanted = self._are_wanted(moved)
        changes = [number for number, there in zip(changes, wanted, strict=True) if there]
        if not changes:
            return links, NONE
        places = rows[changes]
        before, moved = urls.take(pa.array(places)), keep(moved, wanted)
        tried = np.array(
            [self._tries(keys[number], url, made[number]) for number, url in zip(changes, texts(before), strict=True)],
            bool,
        )
        self._put_aside(keep(before, ~tried))
        self._made[u64(moved, "key") % PLACES] = True
        kept = np.ones(urls.num_rows, bool)
        kept[places] = tried
        return links.keep(kept), Links(moved, links.sources[places])

    def _are_wanted(self, moved: pa.RecordBatch) -> Mask:
        """Return which of the URLs that rules made may take the place of those they were made from: bool[n]."""
        keys = u64(moved, "key").tolist()
        usual = np.array([self._contradicted[key] < MOST_CONTRADICTIONS for key in keys], bool)
        return usual & self._filters.accepted(moved)

    def _tries(self, key: int, url: str, made: Rewritten) -> bool:
        """Return whether `url` is fetched as it is, to compare it with what is `made` of it."""
        if key in self._trials:
            return True
        few = any(self.verdicts.wants_trial(rule.name) for rule in made.rules)
        if len(self._trials) >= MOST_TRIALS or not ((few or key % ONE_IN == 0) and self._would_tell(made)):
            return False
        self._try(key, url, made)
        return True

    def _would_tell(self, made: Rewritten) -> bool:
        """Return whether a trial of what rules `made` would say something."""
        return not any(rule.view for rule in made.rules) or self._contents.can_be_compared(key_of(made.url))

    def _try(self, key: int, url: str, made: Rewritten) -> None:
        trial = self._trials[key] = Trial(url, key_of(made.url), None, [rule.name for rule in made.rules])
        self._of_target[trial.target].add(key)
        self.verdicts.pending.update(trial.rules)
        self._spent.difference_update(trial.rules)
        for name in trial.rules:
            self.verdicts.of(name)["begun"] += 1

    def _put_aside(self, urls: pa.RecordBatch) -> None:
        if urls.num_rows:
            self._met.check_update(u64(urls, "key"), aux=urls)

    @property
    def full(self) -> bool:
        """True if enough was put aside to be merged."""
        return self._met.full

    def merge_aside(self) -> None:
        """Take all `merge_aside_steps` at once."""
        whole(self.merge_aside_steps())

    def merge_aside_steps(self) -> Steps[None]:
        """Queue and count the URLs that were put aside for the first time."""
        for urls in self._met.merge_unique():
            self._aside.put(urls)
            step = 1 + urls.column("url").nbytes // COUNTED_BYTES  # a sample of many
            for url in texts(urls)[::step]:
                for rule in self._rewriter.rewrite(url).rules:
                    self.used[rule.name] += step
            yield

    # --- trials

    def note_prints(self, printed: pa.RecordBatch) -> None:
        """Note what pages say that visits brought (schema `PRINTED`)."""
        columns = (printed.column(name).to_pylist() for name in ("key", "outcome", "content", "prints", "held"))
        for key, outcome, content, prints, held in zip(*columns, strict=True):
            if not (outcome in _NO_PAGE or (outcome == OK and content)):
                self._drop(key)
                continue
            if outcome in _NO_PAGE and self._may_be_made(key):
                self._failed.add(key)
            self._contents.enter(key, content, held)
            if key in self._trials:
                self._trials[key] = self._trials[key]._replace(prints=prints)
                self._judge(key)
            for other in list(self._of_target.get(key, ())):
                self._judge(other)

    def _may_be_made(self, key: int) -> bool:
        """Return whether a rule may have made the failed URL with this key, so that a URL it was made from is to be
        looked for."""
        made = self._left or self._made[key % PLACES]
        return bool(made) and key not in self._trials and len(self._failed) < MOST_FAILED

    def _judge(self, key: int) -> None:
        """Compare the two pages of a trial, if both are known."""
        trial = self._trials[key]
        if trial.prints is None:
            return
        there, content = self._contents.of(trial.target)
        if not there and trial.prints:
            return
        self._drop(key)
        made = self._rewriter.rewrite(trial.url)
        if not trial.prints or not made.rules or key_of(made.url) != trial.target:
            return  # no page, or other rules: this says nothing
        names = [rule.name for rule in made.rules]
        agreed: bool | None = content in trial.prints
        if not agreed and content and any(rule.view for rule in made.rules):
            agreed = self._contents.is_part(key, trial.target)
        if agreed is None or (not agreed and not self._is_first_contradiction(trial.target)):
            return
        wrong = self.verdicts.count(names, agreed=agreed)
        if wrong:
            self.verdicts.acquit(names)
            self.merge_aside()  # count by the rules that put them aside
            self.revoked.update(dict.fromkeys(wrong, trial.url))
            self._use()
            self._go_through()

    def _is_first_contradiction(self, target: int) -> bool:
        """Count a contradiction of the page with the key `target`. Returns whether it counts against rules: if it is
        the first of this page, or too many pages were contradicted to know that."""
        if target not in self._contradicted and len(self._contradicted) >= MOST_TRIALS:
            return True
        self._contradicted[target] += 1
        if self._contradicted[target] == MOST_CONTRADICTIONS:
            self._go_through()
        return self._contradicted[target] == 1

    def _drop(self, key: int) -> None:
        trial = self._trials.pop(key, None)
        if trial is not None:
            self.verdicts.pending.subtract(trial.rules)
            self._of_target[trial.target].discard(key)
            if not self._of_target[trial.target]:
                del self._of_target[trial.target]

    # --- what is aside

    def review(self, *, idle: bool) -> tuple[Links, Links]:
        """Look at some of the queue, if there is a reason. Returns the URLs that go on, and what rules now make of the
        rest. `idle`: there is little else to do."""
        if not self._left and self._failed and (idle or len(self._failed) >= MANY_FAILED):
            self.merge_aside()
            self._looked_for, self._failed = self._looked_for | self._failed, set()
            self._left = len(self._aside)
        if not self._left:
            self._spent |= self._sought & self.verdicts.in_want()
            self._sought = set()
        if not self._left and idle and self._in_want():
            self.merge_aside()
            self._sought, self._left = self._in_want(), len(self._aside)
        if not self._left:
            self._looked_for.clear()
            self._changed = False
            return NONE, NONE
        batch = self._aside.get(min(self._left, self._review_rows))
        assert batch is not None
        least, most = REVIEW_ROWS
        self._review_rows = min(max(least, batch.num_rows * REVIEW_BYTES // batch.column("url").nbytes), most)
        self._left -= batch.num_rows
        return self._sort_out(batch)

    def _in_want(self) -> set[str]:
        """Return rules that are suspect, and of which trials may be in the queue."""
        return self.verdicts.in_want() - self._spent

    def _sort_out(self, urls: pa.RecordBatch) -> tuple[Links, Links]:
        """Put `urls` back that are still to be aside. Return the others, and, if the rules changed, what they make of
        those put back."""
        made = [self._rewriter.rewrite(url) for url in texts(urls)]
        moved = _moved(urls, [one.url for one in made])
        free = np.array([not one.rules for one in made], bool) | ~self._are_wanted(moved)
        for row in np.flatnonzero(~free).tolist():
            target = int(u64(moved, "key")[row])
            sought = any(rule.name in self._sought and self.verdicts.wants_trial(rule.name) for rule in made[row].rules)
            if ((sought and self._would_tell(made[row])) or target in self._looked_for) and len(
                self._trials
            ) < MOST_TRIALS:
                self._looked_for.discard(target)
                key = int(u64(urls, "key")[row])
                if key not in self._trials:
                    self._try(key, urls.column("url")[row].as_py().decode(), made[row])
                free[row] = True
        self._made[u64(moved, "key") % PLACES] = True
        self._aside.put(keep(urls, ~free))
        sources = np.zeros(urls.num_rows, np.uint64)
        return Links(urls, sources).keep(free), Links(moved, sources).keep(~free) if self._changed else NONE

    # --- what is told

    @property
    def contradictions(self) -> dict[str, int]:
        """The rules that were revoked, by name, and how often each was contradicted."""
        return {name: self.verdicts.of(name)["contradicted"] for name in self.revoked}

    @property
    def exceptions(self) -> int:
        """Number of pages that are exceptions to the rules."""
        return sum(count >= MOST_CONTRADICTIONS for count in self._contradicted.values())

    def state(self) -> dict[str, Any]:
        """Return everything a restart needs."""
        self.merge_aside()
        return {
            "identity": self._identity,
            "revoked": self.revoked,
            "used": dict(self.used),
            **self.verdicts.state(),
            "trials": {str(key): list(trial) for key, trial in self._trials.items()},
            "contradicted": {str(key): count for key, count in self._contradicted.items()},
            "failed": sorted(self._failed),
            "looked_for": sorted(self._looked_for),
            "changed": self._changed,
            "met": self._met.state(),
            "aside": self._aside.state(),
            "contents": self._contents.state(),
        }

    def close(self) -> None:
        self._met.close()
        self._aside.close()
        self._contents.close()


def is_settled(saved: Mapping[str, Any], rules: Sequence[Rule]) -> bool:
    """Return whether `rules` are those that put URLs aside in the state `saved`, so that no URL must be looked at
    again."""
    return not saved or saved["identity"] == identity(
        [one for one in rules if one.use and one.name not in saved["revoked"]]
    )


def _moved(urls: pa.RecordBatch, targets: Sequence[str]) -> pa.RecordBatch:
    """Return `urls` as links to `targets`."""
    columns = {name: numbers(urls, name) for name in ("via", "depth", "kind")}
    return url_batch([locate(url) for url in targets], **columns)
