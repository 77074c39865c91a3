"""Traps: URLs whose like bring no new text. They wait here, behind everything else, and none is dropped.

Calendars, sessions, lists in every order, links that repeat a part of their path, hosts without end: what makes them
traps is not how they look, since an archive of 50,000 numbered pages looks the same, but that nothing comes of them.
So the harvest says of pages whether they brought text that their domain had not shown before, and here it is counted
for each *shape* of their URLs (`fyke.core.shapes`): of the latest pages of a shape, how many were fresh? A shape with
`after` pages of which hardly one was is *barren*.

A URL is a trap when one of its shapes is barren: its own path, a name in its query, a repeated part, depth, length;
or a coarse one: its folder, its host, how hosts of its domain are named. Coarse ones are apart for what was met on
fresh pages and on others, and of each own shape they count one page: they are for URLs of which no two are alike. Such
pages have less in common, so it takes `PATIENCE` times as many of them. A URL is none when its own shape is *fertile*:
where one page in `FERTILE` was fresh, or led to a page of another shape that was: to how many says nothing more, else
the first lists of a shop would speak for all that show the same. So lists are read that say little themselves and lead
to what says more.

A redirect is a step on the way to a page, which was met where the first step was: what is said of the page is said of
URLs like that as well. Only who leads on after `STEPS` redirects in a row shows nothing.

A host that makes up new text for whatever is asked of it is told by asking (`fyke.frontier.probes`): where it does, all
URLs are traps, for as long as that is wanted.

One in `LET_THROUGH` of a trap's URLs is let through, as if it were none: a shape that brings something after all is
barren no more, and what waited for it goes on. The rest is released when nothing else is left but what sleeps. Where
most that is left is of hosts that grow without end, it would wait for ever: so one in `SHARE` goes out then. URLs are
diverted before the rules of their hosts are asked for, and once more as they go out, since more is known by then; so
whatever leaves here passes the robots gate.

What lies in one folder says little of another: `FOLDER_PAGES` of each speak for their host, and for the hosts like it.

Bounded by `MOST_SHAPES` counters, of which those with the fewest pages are forgotten, and `RECENT` pages. Invariant: a
URL that was diverted waits here until it is handed out or goes on.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import EMPTY, U64, URLS, Kind, Mask, keep, numbers, texts, u64
from fyke.core.shapes import Skeleton, shape_keys, shapes, skeleton
from fyke.disk.files import raw
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.probes import Probes, place_key
from fyke.frontier.yields import COUNT, FERTILE, MOST_SHAPES, Counts, Yields

PATIENCE = 2
RECENT = 1 << 15  # pages that are known to have been fresh or not, for what was met on them
LET_THROUGH = 64
SHARE = 16
FOLDER_PAGES = 6  # of one folder, that speak for its host: what else is there is not like a trap in it
RELEASED = 1024  # and more, that are known to have been let go
STEPS = 2  # redirects that sites make of one: to another scheme, then to another name
MOST_STEPS = 100
ROWS = 8192
MADE = 1 << 30  # in place of the place of a shape
# A redirect, the last of so many `steps`, is as `fresh` as where the first one was met, whose `own` and `host` it has.
# `led`: whether it was said of it that it led to a fresh page.
_PAGE = np.dtype([("key", "<u8"), ("own", "<u8"), ("host", "<u8"), ("fresh", "?"), ("steps", "u1"), ("led", "?")])
Row = tuple[int, int, int, bool, bool]


class Traps:
    """The guard, and the queue of what waits."""

    def __init__(
        self,
        store: Store,
        after: int,
        state: Mapping[str, Any] | None = None,
        most: int = MOST_SHAPES,
        *,
        probes: bool = False,
    ) -> None:
        """`after` so many pages without new text a shape is barren; 0: none ever is, and nobody is asked. `probes`:
        whether hosts are asked for pages that cannot be there; domains are for hosts in any case."""
        saved = state or {}
        self._store = store
        self._after = after
        self._queue = DiskQueue(store, "traps", URLS, saved.get("queue"))
        self._file = str(saved.get("file", ""))
        counts, recent = np.zeros(0, COUNT), np.zeros(0, _PAGE)
        if self._file and after:
            with store.read(self._file) as reader:
                counts = reader.array(COUNT, 0, int(saved["counts"])).copy()
            with store.read(str(saved["pages_file"])) as reader:
                recent = reader.array(_PAGE, 0, int(saved.get("pages", 0))).copy()  # older: other dtypes
        self._pages_file = str(saved.get("pages_file", ""))
        self._yields = Yields(after, counts, most)
        self._recent = np.zeros(RECENT, _PAGE)
        self._recent[recent["key"] % RECENT] = recent
        self.probes = Probes(store, saved.get("probes"), asks_domains=after > 0, asks_hosts=probes and after > 0)
        self._note_owners()
        self._accused: set[int] = set()
        self._released: set[int] = set()  # lately, and for good
        self._released_before: set[int] = set()
        self._owed = 0.0  # URLs that wait, to those of hosts that grow
        self._changed = False
        self._left = int(saved.get("left", 0))  # rows that are still to be looked at, since less is barren
        self._looks = int(saved.get("looks", 0))  # that are granted
        if (not after or self.probes.forgave) and len(self._queue):
            self._left = self._looks = len(self._queue)

    def __repr__(self) -> str:
        return f"Traps({len(self)} URLs, {self.barren} barren shapes)"

    def __len__(self) -> int:
        """URLs that wait."""
        return len(self._queue)

    @property
    def barren(self) -> int:
        """Shapes that bring nothing, and places, hosts and domains where all is made up."""
        return len(self._yields.barren) + len(self.probes)

    def _note_owners(self) -> None:
        self._owners = np.union1d(self._yields.barren["owner"], self.probes.owners)

    def learn(self, judged: pa.RecordBatch) -> None:
        """Pages were read, and redirects followed (schema `JUDGED`)."""
        if not judged.num_rows or not self._after:
            return
        probed = numbers(judged, "kind") == Kind.PROBE
        self._learn_of_probes(keep(judged, probed))
        judged = keep(judged, ~probed)
        if not judged.num_rows:
            return
        before = set(self._yields.barren["key"].tolist())
        sharp, coarse = self._shown(judged)
        self._yields.add(np.array(sharp, COUNT))
        self._yields.add(np.array(coarse, COUNT), PATIENCE)
        self._changed = True
        barren = self._yields.barren
        if not before.issubset(barren["key"].tolist()):
            self._left = len(self._queue)
        self._note_owners()
        accused = barren["owner"][~np.isin(barren["key"], np.fromiter(before, np.uint64, len(before)))]
        self._accused.update(accused.tolist())

    def _shown(self, judged: pa.RecordBatch) -> tuple[list[Row], list[Row]]:
        """What pages and redirects say of each of their sharp shapes, and of their coarse ones: rows of `COUNT`."""
        of_sharp: list[Row] = []
        of_coarse: list[Row] = []
        tried: set[int] = set()
        in_folder: Counter[int] = Counter()
        host_of, domain_of, via_of, key_of = (u64(judged, name).tolist() for name in ("host", "domain", "via", "key"))
        rows = zip(texts(judged), host_of, domain_of, via_of, key_of, judged.column("fresh").to_pylist(), strict=True)
        for url, host, domain, via, key, fresh in rows:
            parent = self._recent[via % RECENT]
            is_known = bool(via and parent["key"] == via)
            met_on_fresh = bool(is_known and parent["fresh"])
            steps = int(parent["steps"]) if is_known else 0
            found = shapes(skeleton(url))
            sharp, coarse = shape_keys(found, host, domain, met_on_fresh=met_on_fresh)
            own = sharp[0]
            if fresh is None:
                first = (parent["own"], parent["host"]) if steps else (own, host)
                self._recent[key % RECENT] = (key, *first, met_on_fresh, min(steps + 1, MOST_STEPS), False)
                if steps < STEPS:
                    continue
            else:
                self._recent[key % RECENT] = (key, own, host, fresh, 0, False)
            if is_known and parent["own"] != own and (steps or (fresh and not parent["led"])):
                parent["led"] = True
                of_sharp.append((int(parent["own"]), int(parent["host"]), 0, bool(fresh), False))
            if fresh:
                self.probes.fresh(url, found, host, domain)
            of_sharp += [(shape, host, 0, bool(fresh), False) for shape in sharp]
            if own not in tried and not self._yields.knows(own):
                folders = coarse[1:-2]
                if not folders or in_folder[folders[0]] + self._yields.pages(folders[0]) < FOLDER_PAGES:
                    of_coarse += [(shape, host, 0, bool(fresh), False) for shape in (coarse[0], coarse[-2])]
                    of_coarse.append((coarse[-1], domain, 0, bool(fresh), False))
                of_coarse += [(shape, host, 0, bool(fresh), False) for shape in folders]
                in_folder.update(folders[:1])
            tried.add(own)
        return of_sharp, of_coarse

    def _learn_of_probes(self, judged: pa.RecordBatch) -> None:
        about_of, fresh_of = u64(judged, "via").tolist(), judged.column("fresh").to_pylist()
        answers = zip(texts(judged), about_of, fresh_of, strict=True)
        self._accused |= {self.probes.answered(url, about, made_up=fresh) for url, about, fresh in answers} - {0}
        self._note_owners()

    def take_accused(self) -> set[int]:
        """Hosts and domains of shapes that became barren since this was last asked: what is out of them may be one."""
        accused, self._accused = self._accused, set()
        return accused

    def divert(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Let those of `urls` wait that are traps: the others."""
        traps = self._are_traps(urls)
        if not traps.any():
            return urls
        aside = keep(urls, traps)
        self._queue.put(aside)
        self.probes.put_aside(u64(aside, "host"), u64(aside, "domain"))
        self._looks += aside.num_rows  # one for each URL that came to wait: a shape that wavers costs no more
        return keep(urls, ~traps)

    def _are_traps(self, urls: pa.RecordBatch) -> Mask:
        mask: Mask = np.zeros(urls.num_rows, np.bool_)
        if not len(self._owners) or not urls.num_rows:
            return mask
        accused = np.isin(u64(urls, "host"), self._owners) | np.isin(u64(urls, "domain"), self._owners)
        keys = u64(urls, "key")
        accused &= (numbers(urls, "kind") == Kind.PAGE) & (keys % np.uint64(LET_THROUGH) != 0)
        for released in (self._released, self._released_before):
            if released:
                accused &= ~np.isin(keys, np.fromiter(released, np.uint64, len(released)))
        rows = np.flatnonzero(accused)
        if len(rows):
            mask[rows] = self._deciding(urls.take(pa.array(rows)))[0] >= 0
        return mask

    def _deciding(self, urls: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], Counts]:
        """For each of `urls` (n > 0 rows) the place among its shapes of the barren one that makes a trap of it, -1
        where it is none, `MADE` where its host makes it up; and the counts of the shapes of the first, and of others.
        """
        which, keys, places = self._alike(urls)
        made_up = self.probes.make_up(places, u64(urls, "host"), u64(urls, "domain"))
        lengths = np.array([len(some) for some in keys])
        counts = self._yields.of(np.array([key for some in keys for key in some], np.uint64))
        starts = np.cumsum(lengths) - lengths
        at = np.arange(len(counts)) - np.repeat(starts, lengths)
        first = np.minimum.reduceat(np.where(counts["barren"], at, len(counts)), starts)
        own = counts[starts]
        fertile = (2 * own["pages"] >= self._after) & (own["fresh"] * FERTILE >= 1)
        return np.where(made_up, MADE, np.where(fertile | (first == len(counts)), -1, first)[which]), counts

    def _alike(self, urls: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], list[list[int]], U64]:
        """Which of `urls` (n rows) have all shapes in common, int64[n]; the keys of those, lot by lot; and where each
        lies, as probes have it, uint64[n]."""
        number: dict[tuple[Skeleton, int, bool], int] = {}
        keys: list[list[int]] = []
        places: list[int] = []
        which = np.empty(urls.num_rows, np.int64)
        met_on = self._met_on_fresh(u64(urls, "via")).tolist()
        rows = zip(texts(urls), u64(urls, "host").tolist(), u64(urls, "domain").tolist(), met_on, strict=True)
        for row, (url, host, domain, fresh) in enumerate(rows):
            like = skeleton(url), host, fresh
            found = number.setdefault(like, len(keys))
            if found == len(keys):
                of_lot = shapes(like[0])
                sharp, coarse = shape_keys(of_lot, host, domain, met_on_fresh=fresh)
                keys.append(sharp + coarse)
                places.append(place_key(of_lot, host))
            which[row] = found
        return which, keys, np.array(places, np.uint64)[which]

    def _met_on_fresh(self, via: U64) -> Mask:
        """Whether the pages with these keys (uint64[n]) were fresh: what they lead to is apart from what others do."""
        pages = self._recent[via % np.uint64(RECENT)]
        met: Mask = (pages["key"] == via) & pages["fresh"]
        return met

    def explain(self, urls: pa.RecordBatch) -> str:
        """Why the URL in the first row is a trap, in words; empty when it is none."""
        places, counts = self._deciding(urls.slice(0, 1))
        if places[0] < 0:
            return ""
        if places[0] == MADE:
            return "its host, or domain, makes it up: it showed new text under several names that nobody can know"
        found = shapes(skeleton(texts(urls)[0]))
        words = (found.own, *found.sharp, *found.coarse, found.hosts)[places[0]]
        return (
            f"of the pages there whose URLs are like {words}, {counts['pages'][places[0]]} were read, and of the last"
            " ones hardly any had text that was not met before"
        )

    # --- what goes on

    def cleared(self) -> pa.RecordBatch:
        """Of what waits, some that is no trap any more (schema `URLS`); a few rows are looked at in each turn."""
        rows = min(ROWS, self._left, self._looks)
        batch = self._queue.get(rows) if rows else None
        if batch is None:
            return EMPTY
        self._left -= batch.num_rows
        self._looks -= batch.num_rows
        traps = self._are_traps(batch)
        self._queue.put(keep(batch, traps))
        return keep(batch, ~traps)

    def release(self, rows: int) -> pa.RecordBatch:
        """The next that wait (schema `URLS`), `rows` at most, since nothing else is left; they are let through."""
        batch = self._queue.get(rows)
        self._left = min(self._left, len(self))
        if batch is None:
            return EMPTY
        if len(self._released) >= RELEASED:
            self._released, self._released_before = set(), self._released
        self._released.update(u64(batch, "key").tolist())
        return batch

    def share(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """What goes out of what waits (schema `URLS`), since `urls` do."""
        if not len(self):
            return EMPTY
        grown = int(self.probes.grown(u64(urls, "host"), u64(urls, "domain")).sum())
        if 2 * grown < urls.num_rows:
            return EMPTY
        rows, self._owed = divmod(self._owed + grown / SHARE, 1)
        return self.release(int(rows)) if rows else EMPTY

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Every URL that waits here."""
        return self._queue.scan()

    def state(self) -> dict[str, Any]:
        recent = self._recent[self._recent["key"] != 0]
        if self._changed:
            for name in filter(None, (self._file, self._pages_file)):
                self._store.retire(name)
            self._file = self._store.write("trap-shapes", "vals", [raw(self._yields.counts)])
            self._pages_file = self._store.write("trap-pages", "vals", [raw(recent)])
            self._changed = False
        return {
            "queue": self._queue.state(),
            "file": self._file,
            "counts": len(self._yields.counts),
            "pages_file": self._pages_file,
            "pages": len(recent),
            "probes": self.probes.state(),
            "left": self._left,
            "looks": self._looks,
        }

    def close(self) -> None:
        self._queue.close()
