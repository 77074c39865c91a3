"""The gate that URLs pass once their host's robots.txt is known.

IRLbot (Lee et al., WWW 2008), section 4.3 and Figure 2: a Drum `RobotsCache`, a Drum `RobotsRequested`, the queue
`waiting` of URLs without known rules, and the queue `asks` of origins whose robots.txt the fetcher is to bring, each
once. The frontier puts URLs in, takes out those that passed or were refused, and tells the fetcher's answers
(`learn_rules`). Differs from the paper:

- A record says when it ends and whether everything, something or nothing may be fetched. The lines of the rules stay in
  the host book and are judged at the moment of the request, which may be days later: they may be no older than a day
  then (RFC 9309, section 2.4). So the gate refuses only what needs no look at a line: all of a host that forbids
  everything.
- Rules belong to an origin, scheme, host and port (RFC 9309, section 2.3), not to a host.
- A bounded set of origins met lately stands in front: a crawl of few hosts never waits for a merge.
- `waiting` is read again when answers came, not round and round. The answers are in memory, and take no merge.
- Not every origin is asked at once (`fyke.frontier.asks`).

Invariant: a URL that was put is waiting, or came out once, passed or refused.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import EMPTY, U64, URLS, Kind, Mask, concat, keep, numbers
from fyke.core.messages import Rules
from fyke.core.sorting import nth_of_each
from fyke.core.urls import key_of
from fyke.disk.drum import Drum
from fyke.disk.operations import Answers, Values
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.asks import Asks
from fyke.frontier.nameless import ORIGINS, domain_of
from fyke.frontier.origins import origin_keys, origins_of
from fyke.frontier.sizes import SIZES, Sizes

RECORD = np.dtype([("state", "<u1"), ("expires_at", "<u4")])  # unix seconds
ASKED = np.dtype("<u4")  # when, in unix seconds
PATIENCE_S = 3600  # after which an origin is asked for again, because its answer may be lost
MOST_NEWS = 1024
MEANS = {Rules.NAMELESS: Rules.OPEN, Rules.UNNAMED: Rules.UNREACHABLE}  # for the URLs of the origin
Divert = Callable[[pa.RecordBatch], pa.RecordBatch]  # takes some of the URLs, returns the others
RECHECK_ROW_S = 5e-6  # assumed cost of reading a row of `waiting` again: 1e-6 measured, more with many origins
RECHECK_SHARE = 4  # rechecks take one part in this many of the time, at most
URGENT_RECHECK_SHARE = 2  # the same when visits run low


class RobotsGate:
    """The gate of one shard, on the files of its `Store`. Times are unix seconds."""

    def __init__(
        self,
        store: Store,
        memory_bytes: int,
        opened_at: float,
        state: Mapping[str, Any] | None = None,
        sizes: Sizes = SIZES,
    ) -> None:
        saved = state or {}
        self._rows, self._most_lately = sizes.unruled, sizes.known_origins
        self._opened_at = opened_at
        self._asked_at = int(saved.get("asked_at", 0))  # the latest time in `requested`
        # Origins asked for before are asked for again, because answers may be lost; also within the same second.
        self._since = max(int(opened_at), self._asked_at) + 1
        self._cache = Drum(store, "robots", saved.get("cache"), value=RECORD, aux=URLS, memory_bytes=memory_bytes)
        self._requested = Drum(
            store, "robots-requested", saved.get("requested"), value=ASKED, aux=ORIGINS, memory_bytes=memory_bytes
        )
        self._waiting = DiskQueue(store, "robots-waiting", URLS, saved.get("waiting"))
        self.asks = Asks(store, saved)
        self._lately: dict[int, tuple[int, float]] = {}
        # Answers go into the cache after its next merge: URLs that wait for it were checked before the answers came.
        self._news: dict[int, tuple[int, int, bool]] = {key: tuple(rest) for key, *rest in saved.get("news", [])}
        self._checking = int(saved.get("checking", 0))  # URLs that wait for a merge
        self._refused: list[pa.RecordBatch] = []
        self._due = math.inf  # when all in `waiting` is to be checked again, because a server may answer by then
        self._lost_at = math.inf  # the same, because answers may be lost
        self._is_answered = False  # answers in memory came since `waiting` was last read
        self._cost_s = self._read_at = 0.0  # of the last reading of `waiting`
        self._left = 0  # rows of `waiting` still to be read
        self._checks_all = False  # whether these are checked even without answers in memory

    def __repr__(self) -> str:
        return f"RobotsGate({len(self)} waiting, {len(self._cache)} origins known)"

    def __len__(self) -> int:
        """Number of URLs that wait for rules or a check, and of answers that wait to be written down."""
        return len(self._waiting) + self.unchecked

    @property
    def waiting(self) -> int:
        """Number of URLs that wait for rules or a check."""
        return len(self._waiting) + self._checking

    @property
    def unchecked(self) -> int:
        """Number of URLs and answers that wait for a merge."""
        return self._cache.pending + len(self._news)

    @property
    def rests_until(self) -> float:
        """Time when the first URL here may go on, if all wait for answers from servers, or for hosts of their domain; 0
        if not, and infinite if no URL waits."""
        if self.unchecked or len(self.asks) or self._left > 0 or (self._is_answered and len(self._waiting)):
            return 0.0
        nameless = self.asks.nameless
        lost_at = math.inf if len(nameless) else self._lost_at
        return min(self._due, nameless.due, lost_at) if len(self._waiting) else math.inf

    # --- URLs

    def put(self, urls: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """Return the rows of `urls` that pass at once. The rest is refused, or waits for `merge`."""
        keys = origin_keys(urls)
        states, _ = self._remembered(keys, now)
        passed, unsure = self._sort_out(urls, states)
        if unsure.any():
            self._check(keys[unsure], keep(urls, unsure))
            self.asks.try_hosts(keys[unsure & (numbers(urls, "kind") == Kind.PROBE)].tolist())
        return passed

    def _remembered(self, keys: U64, now: float) -> tuple[npt.NDArray[np.uint8], Mask]:
        """Return what memory has of the rules of origins with these `keys`: uint8[n], UNKNOWN for nothing or for rules
        that have ended; and which have ended: bool[n]."""
        lately = list(map(self._lately.get, keys.tolist()))
        states = np.fromiter((Rules.UNKNOWN if one is None else one[0] for one in lately), np.uint8, len(lately))
        stale = np.fromiter((one is not None and one[1] <= now for one in lately), np.bool_, len(lately))
        return np.where(stale, np.uint8(Rules.UNKNOWN), states), stale

    def _check(self, keys: U64, urls: pa.RecordBatch) -> None:
        """Let `urls`, of origins with these `keys` (uint64[n]), wait for a merge."""
        self._cache.check(keys, aux=urls)
        self._checking += urls.num_rows

    def _sort_out(self, urls: pa.RecordBatch, states: npt.NDArray[np.uint8]) -> tuple[pa.RecordBatch, Mask]:
        """Return the rows of `urls` that pass by the `states` of their origins, and which neither pass nor are refused:
        bool[n]."""
        refused = states == Rules.CLOSED
        if refused.any():
            self._refused.append(keep(urls, refused))
        return keep(urls, states == Rules.OPEN), np.isin(states, (Rules.UNKNOWN, Rules.UNREACHABLE))

    @property
    def full(self) -> bool:
        """True if enough waits for a merge."""
        return self._cache.full or self._requested.full or len(self._news) >= MOST_NEWS

    def merge(self, now: float, divert: Divert = lambda urls: urls) -> Iterator[pa.RecordBatch]:
        """Check all waiting URLs. Yields those that pass, for each lot, even if there are none. URLs without rules
        wait, and their origins are asked for, unless `divert` takes them: settings may refuse them since a restart."""
        self._allow_again()
        self._checking = 0
        for answers in self._cache.merge():
            assert answers.aux is not None
            records = self._with_news(answers)
            states = np.where(records["expires_at"] > now, records["state"], Rules.UNKNOWN)
            self._remember(answers.keys, states, records["expires_at"])
            passed, unsure = self._sort_out(answers.aux, states)
            if unsure.any():
                unknown = divert(keep(answers.aux, states == Rules.UNKNOWN))
                self._waiting.put(concat([unknown, keep(answers.aux, states == Rules.UNREACHABLE)]))
                self._ask(unknown)
                retries = records["expires_at"][states == Rules.UNREACHABLE]
                self._due = min(self._due, float(retries.min(initial=2**32 - 1)))
                self._lost_at = min(self._lost_at, now + PATIENCE_S)
            yield passed
        self._tell()
        yield from self._settle_asks(now)

    def _remember(self, keys: U64, states: npt.NDArray[np.integer], expires_at: npt.NDArray[np.integer]) -> None:
        known = (states != Rules.UNKNOWN) & (states != Rules.UNREACHABLE)
        unique, first = np.unique(keys[known], return_index=True)
        unique, first = unique[: self._most_lately], first[: self._most_lately]
        self._make_room(len(unique))
        columns = unique, states[known][first], expires_at[known][first]
        self._lately.update((key, (state, end)) for key, state, end in zip(*(c.tolist() for c in columns), strict=True))

    # --- asking

    def _ask(self, urls: pa.RecordBatch) -> None:
        if urls.num_rows:
            unique, first = np.unique(origin_keys(urls), return_index=True)
            origins = pa.array(origins_of(urls.take(pa.array(first))), pa.binary())
            self._requested.check(unique, aux=pa.record_batch([pa.array(unique), origins], schema=ORIGINS))

    def _settle_asks(self, now: float) -> Iterator[pa.RecordBatch]:
        """Queue the origins that were not asked for lately, to have their rules brought. Yields empty batches alone."""
        valid_from = max(self._since, int(now - PATIENCE_S))
        self._asked_at = max(self._asked_at, self._since, int(now))
        asked: list[U64] = []
        done: set[int] = set()
        for answers in self._requested.merge():
            assert answers.aux is not None
            assert answers.values is not None
            new = ~answers.found | (answers.values < valid_from)
            new &= np.fromiter((key not in done for key in answers.keys.tolist()), np.bool_, len(new))
            new &= nth_of_each(answers.keys) == 0
            if new.any():
                done.update(answers.keys[new].tolist())
                asked.append(answers.keys[new])
                self.asks.put(keep(answers.aux, new))
            yield EMPTY
        for keys in asked:
            self._requested.update(keys, np.full(len(keys), self._asked_at, ASKED))

    def learn_rules(self, origin: str, rules: Rules, expires_at: float, now: float) -> None:
        """Note that the rules of `origin` are `rules` until `expires_at`; if UNREACHABLE, it is tried again then."""
        if rules is not Rules.UNREACHABLE:
            self.asks.nameless.tell(domain_of(origin), found=rules not in MEANS)
        rules, key = MEANS.get(rules, rules), key_of(origin.encode())
        end = int(min(max(math.ceil(expires_at), 0), 2**32 - 1))
        self._news[key] = (int(rules), end, end < now + PATIENCE_S)
        self._lately.pop(key, None)
        if rules is not Rules.UNREACHABLE:
            self._make_room(1)
            self._lately[key] = (rules, end)
            self._is_answered = True
        else:
            self.asks.note_unreached(domain_of(origin))
            self._due = min(self._due, end)

    def _make_room(self, origins: int) -> None:
        """Forget all origins in memory if there is no room for `origins` more. Answers then are on disk."""
        if len(self._lately) + origins > self._most_lately:
            self._lately.clear()
            if self._is_answered or self._left > 0:
                self._due = 0.0

    def _allow_again(self) -> None:
        """Let origins be asked for again whose answers came since the last merge and expire soon."""
        again = [key for key, (_, _, soon) in self._news.items() if soon]
        self._requested.update(np.array(again, np.uint64), np.zeros(len(again), ASKED))

    def _tell(self) -> None:
        """Put the new answers into the cache."""
        if self._news:
            keys = np.fromiter(self._news, np.uint64, len(self._news))
            self._cache.update(keys, np.array([news[:2] for news in self._news.values()], RECORD))
            self._news.clear()

    def _with_news(self, answers: Answers) -> Values:
        """Return the records [n] that answer a check, updated with answers that came since."""
        assert answers.values is not None
        records: Values = np.where(answers.found, answers.values, np.zeros(1, RECORD))
        for place in np.flatnonzero(np.isin(answers.keys, np.fromiter(self._news, np.uint64, len(self._news)))):
            records[place] = self._news[int(answers.keys[place])][:2]
        return records

    # --- waiting

    def recheck(self, now: float, *, urgent: bool) -> pa.RecordBatch | None:
        """Read URLs in `waiting` again if there are answers for them, a part in a turn. `urgent`: visits run low.
        Returns the URLs that pass, or None if none were read. New answers pass or refuse URLs at once; if it is time to
        ask again, all are checked."""
        if self._left <= 0 and not self._begin_recheck(now, urgent=urgent):
            return None
        urls = self._waiting.get(min(self._rows, self._left))
        self._left -= self._rows
        if urls is None:
            return None
        keys = origin_keys(urls)
        if self._checks_all:
            self._check(keys, urls)
            return EMPTY
        states, stale = self._remembered(keys, now)
        passed, unsure = self._sort_out(urls, states)
        self._check(keys[stale], keep(urls, stale))
        self._waiting.put(keep(urls, unsure & ~stale))
        return passed

    def _begin_recheck(self, now: float, *, urgent: bool) -> bool:
        """Return whether to read all of `waiting` again from now on."""
        is_due = now >= min(self._due, self._lost_at)
        if not (is_due or self._is_answered) or not len(self._waiting):
            return False
        share = URGENT_RECHECK_SHARE if urgent else RECHECK_SHARE
        # One batch is always worth it.
        if len(self._waiting) > self._rows and now < self._read_at + self._cost_s * share:
            return False
        self._read_at, self._cost_s = now, len(self._waiting) * RECHECK_ROW_S
        self._checks_all, self._is_answered = is_due, False
        if is_due:
            self._due, self._lost_at = math.inf, now + PATIENCE_S
            self.asks.nameless.renew(now - PATIENCE_S)
        self._left = len(self._waiting)
        return True

    def resume(self) -> None:
        """Go on after a restart: unanswered origins are asked for again, as `waiting` is checked."""
        self.asks.forget()
        self._due = self._opened_at

    def refused(self) -> pa.RecordBatch:
        """Return the URLs refused since the last call."""
        if not self._refused:
            return EMPTY
        batches, self._refused = self._refused, []
        return pa.concat_batches(batches)

    # --- life

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield every URL that waits here."""
        yield from self._waiting.scan()
        for _, _, urls in self._cache.scan_pending():
            if urls is not None:
                yield urls

    def state(self) -> dict[str, Any]:
        assert not self._refused, "the loop takes what is refused before a checkpoint"
        return {
            "cache": self._cache.state(),
            "requested": self._requested.state(),
            "waiting": self._waiting.state(),
            **self.asks.state(),
            "checking": self._checking,
            "asked_at": self._asked_at,
            "news": [[key, *news] for key, news in self._news.items()],
        }

    def close(self) -> None:
        for owned in (self._cache, self._requested, self._waiting, self.asks):
            owned.close()
