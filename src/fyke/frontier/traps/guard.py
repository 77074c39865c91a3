"""Is a URL like those that brought nothing? `waiting` asks; pages that were read answer.

Calendars, sessions, lists in every order, links that repeat a part of their path, hosts without end: their looks do not
make them traps, because an archive of 50,000 numbered pages looks the same. They are traps because nothing comes of
them. The harvest says whether a page is *fresh*: it brought text that its domain had not shown before. The guard counts
fresh pages for each *shape* of their URLs (`fyke.core.shapes`, `testimony`). A shape is *barren* once hardly one of its
latest `after` pages was fresh (`yields`).

A URL is a trap if one of its shapes is barren. *Sharp* shapes are its own shape (the path without its numbers, and the
names in the query), each such name, also with a short word as its value, a repeated part, depth and length. *Coarse*
shapes are the kinds of its path's parts, its folders, its host, and the number of labels of its host's name. They find
traps in which no two URLs are alike.
- Coarse shapes are counted apart for URLs met on fresh pages and on others. One page of each own shape counts for them.
- Their pages have less in common, so it takes `PATIENCE` times as many to make a coarse shape barren.
- A barren host says nothing of a folder that brings something.

A URL is no trap if its own shape is *fertile*: one page in `FERTILE` was fresh, or led to a fresh page of another
shape. So lists are read that say little and lead to pages that say more. A list counts once, however many fresh pages
it led to. Otherwise the first lists of a shop, which lead to all its pages, would outweigh all later lists, which show
the same pages again. A barren path with several names in its query makes no trap of a URL if each of these names brings
something.

A *variant* is a URL that differs from a page that was read only in its query, in a part that looks made up, in its
folders, or in the order of its parts (`variants`).
- If variants bring nothing at a host, a variant is a trap whatever is known of its shape. A site whose every link has a
  session in it is read once, and not for ever. A URL that is no variant is no trap because of a barren name in its
  query.
- A variant is no trap if the latest variants of its own shape were fresh, or the latest pages with one of the names in
  its query: a wiki names its pages in a query, and their prints and histories too.
- In a query with several names, any name may be the difference: a session, however it looks, beside the number of the
  page. A name is barren after `PATIENCE` times `after` pages if hardly one of them was ever fresh. A page that brought
  nothing and differs in a name counts for that name alone, and not for queries. A URL with several names is not judged
  by its names until a page without one of them was met.
- The first variants in some places are read, whatever others brought (`tries`).

A host that makes up new text is found by probes (`probes`). All its URLs are traps, as long as hosts are probed. If
hosts with names of as many labels are barren, that says nothing of a host that brought some fresh pages itself.

Bounded by `MOST_SHAPES` counters; those with the fewest pages are forgotten.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, Kind, Mask, keep, numbers, texts, u64
from fyke.core.shapes import Role, shapes, skeleton
from fyke.disk.store import Store
from fyke.frontier.traps.alike import Lots, Places, are_hosts_in_doubt, first_folders, have_fertile_folders
from fyke.frontier.traps.probes import Probes
from fyke.frontier.traps.testimony import Row, Testimony
from fyke.frontier.traps.tries import FirstTries
from fyke.frontier.traps.variants import Variants, shapes_of_ways
from fyke.frontier.traps.ways import NAMES, WAYS, Difference, ways_in_words
from fyke.frontier.traps.yields import COUNT, FERTILE, Counts, Yields

PATIENCE = 2
# Why a URL is a trap. `which`: the place of the barren shape among those of the URL's `Lots`, or the way of differing.
REASON = np.dtype([("why", "u1"), ("which", "<i8")])
Reasons = npt.NDArray[Any]


class Why(IntEnum):
    """The kinds of reasons."""

    NO_TRAP = 0
    BARREN = 1  # one of its shapes is barren
    VARIANT = 2  # it differs from a page that was read only in a way that brings nothing
    MADE_UP = 3  # its host or domain makes pages up


class TrapGuard:
    """Knowledge of shapes, of variants, and of hosts that make pages up."""

    def __init__(self, store: Store, after: int, state: Mapping[str, Any], most: int, *, probes: bool) -> None:
        """The arguments are those of `Traps`."""
        self._store = store
        self._after = after
        self._file = str(state.get("shapes_file", ""))
        counts = store.array(self._file if after else "", COUNT, int(state.get("shapes", 0)))
        self._yields = Yields(after, counts, most)
        self._variants = Variants(store, state.get("variants"))
        self.probes = Probes(store, state.get("probes"), asks_domains=after > 0, asks_hosts=probes and after > 0)
        self._tries = FirstTries(self._yields)
        about = self._yields, self._variants, self._tries, self.probes
        self._testimony = Testimony(store, *about, state if after else {})
        self._accused: set[int] = set()
        self._changed = False

    def __repr__(self) -> str:
        return f"TrapGuard({self.barren} barren shapes)"

    @property
    def barren(self) -> int:
        """Number of barren shapes, and of places, hosts and domains that make pages up."""
        return self._yields.barren + len(self.probes)

    def learn(self, judged: pa.RecordBatch) -> bool:
        """Learn from pages that were read, and redirects that were followed (schema `JUDGED`). Returns whether a shape
        is barren no longer."""
        if not judged.num_rows or not self._after:
            return False
        probed = numbers(judged, "kind") == Kind.PROBE
        self._learn_of_probes(keep(judged, probed))
        judged = keep(judged, ~probed)
        return judged.num_rows > 0 and self._count(*self._testimony.of_pages(judged))

    def learn_of_traps(self, traps: pa.RecordBatch) -> None:
        """Note that these URLs (n rows) wait as traps from now on."""
        self._count(self._testimony.of_traps(traps), [])

    def _count(self, sharp: Sequence[Row], coarse: Sequence[Row]) -> bool:
        """Count the rows for shapes. Returns whether one is barren no longer."""
        any_rose = False
        for rows, patience, steady in ((sharp, 1, True), (coarse, PATIENCE, False)):
            if rows:
                fell, rose = self._yields.add(np.array(rows, COUNT), patience, steady=steady)
                self._accused.update(fell)
                self._changed = True
                any_rose |= rose
        return any_rose

    def _learn_of_probes(self, judged: pa.RecordBatch) -> None:
        about_of, fresh_of = u64(judged, "via").tolist(), judged.column("fresh").to_pylist()
        answers = zip(texts(judged), about_of, fresh_of, strict=True)
        self._accused |= {self.probes.note_answer(url, about, made_up=fresh) for url, about, fresh in answers} - {0}

    def take_accused(self) -> set[int]:
        """Return hosts and domains with shapes that became barren, and those convicted, since the last call: their
        visits that are out may be traps."""
        accused, self._accused = self._accused, set()
        return accused

    def are_hosts_in_doubt(self, urls: pa.RecordBatch) -> Mask:
        """See `alike`."""
        return are_hosts_in_doubt(urls, self._yields)

    def reasons(self, urls: pa.RecordBatch) -> Reasons:
        """Note that `urls` (n rows) were found. Returns why each is a trap, if it is one: [n], dtype `REASON`."""
        reasons = np.zeros(urls.num_rows, REASON)
        self._variants.note_found(u64(urls, "key"))
        if not (self._yields.owners or self.probes.owners):
            return reasons
        rows = np.flatnonzero(self._are_accused(urls) & (numbers(urls, "kind") == Kind.PAGE))
        if len(rows):
            reasons[rows] = self._reasons_together(urls.take(pa.array(rows)))
        return reasons

    def _are_accused(self, urls: pa.RecordBatch) -> Mask:
        """Return which of `urls` (n rows) have a host or domain with barren shapes, or one that makes pages up:
        bool[n]."""
        barren, made_up = self._yields.owners, self.probes.owners
        owners = zip(u64(urls, "host").tolist(), u64(urls, "domain").tolist(), strict=True)
        accused = (
            host in barren or domain in barren or host in made_up or domain in made_up for host, domain in owners
        )
        return np.fromiter(accused, np.bool_, urls.num_rows)

    def _reasons_together(self, urls: pa.RecordBatch) -> Reasons:
        """Return the reasons for n > 0 `urls`. At hosts where variants bring nothing, the URLs that go count as on
        their way, so that of variants met together only one goes."""
        ways = self._barren_ways(urls)
        reasons = self._reasons(urls, ways)[0]
        go = np.flatnonzero((reasons["why"] == Why.NO_TRAP) & ways.any(axis=1))
        if len(go):
            others = go[~self._variants.admit_first(urls.take(pa.array(go)), ways[go])]
            if len(others):
                reasons[others] = self._reasons(urls.take(pa.array(others)), ways[others])[0]
        return reasons

    def go_first(self, urls: pa.RecordBatch, reasons: Reasons) -> Mask:
        """Return which of `urls`, traps for these `reasons` ([n], dtype `REASON`), go out because few variants in their
        place did: bool[n]. Counts them."""
        return self._tries.go(urls, np.where(reasons["why"] == Why.VARIANT, reasons["which"], -1))

    def _reasons(self, urls: pa.RecordBatch, barren_ways: Mask) -> tuple[Reasons, Counts]:
        """Return why each of `urls` (n > 0 rows) is a trap, if it is one: [n], dtype `REASON`; and the counts of the
        shapes of their `Lots`, those of the first row first. `barren_ways`: the ways that bring nothing at its host,
        bool[n, WAYS]."""
        lots = Lots(urls, self._testimony.met_on_fresh(u64(urls, "via")))
        counts = self._yields.of(lots.keys)
        barren = counts["barren"] & ~lots.are_known_mixes(counts)
        differs = self._differ(urls, lots.any(barren & lots.are_of_query), barren_ways)
        reasons = np.zeros(urls.num_rows, REASON)
        _give(reasons, Why.BARREN, self._barren_shapes(urls, lots, counts, barren, differs))
        _give(reasons, Why.VARIANT, self._ways_that_bring_nothing(urls, lots, counts, differs & barren_ways))
        made_up = self.probes.make_up(lots.places, u64(urls, "host"), u64(urls, "domain"))
        _give(reasons, Why.MADE_UP, np.where(made_up, 0, -1))
        return reasons, counts

    def _differ(self, urls: pa.RecordBatch, asked: Mask, barren_ways: Mask) -> Mask:
        """Return in which ways `urls` (n rows) differ from pages that were read: bool[n, WAYS]. The row of a URL is
        False, without a look, if it is not `asked` (bool[n]) and no way is barren at its host (bool[n, WAYS])."""
        differs: Mask = np.zeros((urls.num_rows, WAYS), np.bool_)
        rows = np.flatnonzero(asked | barren_ways.any(axis=1))
        if len(rows):
            differs[rows] = self._variants.ways_of_differing(urls.take(pa.array(rows)))
        return differs

    def _barren_shapes(self, urls: pa.RecordBatch, lots: Lots, counts: Counts, barren: Mask, differs: Mask) -> Places:
        """Return the place of the first shape of each of `urls` (n rows) that is `barren` (bool[m]) and makes a trap of
        it, -1 if there is none: int64[n]. Names in its query do so for variants alone: a URL with several of them must
        differ in one."""
        tells = differs[:, Difference.QUERY] & (~lots.any(lots.roles == Role.MIX) | differs[:, NAMES:].any(axis=1))
        shape = np.where(tells, lots.first(barren), lots.first(barren & ~lots.are_of_query))
        better = self._have_fertile_shapes(lots, counts)
        better |= (lots.roles[shape] == Role.HOSTS) & self.probes.proven(u64(urls, "host"))
        better |= self._have_fertile_folders(urls, lots, np.isin(lots.roles[shape], (Role.KINDS, Role.HOST)))
        shape[better] = -1
        return shape

    def _have_fertile_shapes(self, lots: Lots, counts: Counts) -> Mask:
        """Return which URLs have an own shape that brings something: bool[n]."""
        own = lots.own(counts)
        fertile: Mask = (2 * own["pages"] >= self._after) & (own["fresh"] * FERTILE >= 1)
        return fertile

    def _have_fertile_folders(self, urls: pa.RecordBatch, lots: Lots, asked: Mask) -> Mask:
        """Return which of those of `urls` (n rows) that are `asked` (bool[n]) lie in folders that bring something:
        bool[n]."""
        fertile = np.zeros(urls.num_rows, np.bool_)
        rows = np.flatnonzero(asked)
        _, first, lot = np.unique(lots.which[rows], return_index=True, return_inverse=True)
        fertile[rows] = have_fertile_folders(urls.take(pa.array(rows[first])), self._yields)[lot]
        return fertile

    def _ways_that_bring_nothing(self, urls: pa.RecordBatch, lots: Lots, counts: Counts, differs: Mask) -> Places:
        """Return the first of the barren ways in which each of `urls` (n rows) `differs` (bool[n, WAYS], changed in
        place) that makes a trap of it, -1 if there is none: int64[n]. A way does not if variants of the same own shape,
        or in the same folder, brought something, as articles of a wiki do."""
        differs[:, Difference.QUERY] &= ~lots.any(lots.are_of_query & self._yields.are_promising(counts))
        rows = np.flatnonzero(differs.any(axis=1))
        some = urls.take(pa.array(rows))
        of_own = self._of_variants(lots.own(lots.keys)[rows], some)
        of_own[:, Difference.FOLDERS] = self._of_first_folders(some)
        differs[rows] &= ~self._yields.are_promising(of_own)
        ways: Places = np.where(differs.any(axis=1), differs.argmax(axis=1), -1)
        return ways

    def _barren_ways(self, urls: pa.RecordBatch) -> Mask:
        """Return which ways of differing bring nothing at the hosts of `urls` (n rows): bool[n, WAYS]. A name is not
        among them if it ever brought much: second pages of a list are fresh until each was met elsewhere. Folders bring
        nothing also if none of the latest in the same first folder did, whatever is in others."""
        counts = self._of_variants(u64(urls, "host"), urls)
        barren: Mask = counts["barren"]
        barren[:, NAMES:] &= self._yields.never_brought(counts[:, NAMES:], PATIENCE)
        barren[:, Difference.FOLDERS] |= self._of_first_folders(urls)["barren"]
        return barren

    def _of_first_folders(self, urls: pa.RecordBatch) -> Counts:
        """Return the counts of variants in the first folders of `urls` (n rows) that differ in their folders: [n]."""
        counts: Counts = self._of_variants(first_folders(urls), urls)[:, Difference.FOLDERS]
        return counts

    def _of_variants(self, owners: U64, urls: pa.RecordBatch) -> Counts:
        """Return the counts of each way in which `urls` (n rows) may differ, for their `owners` (uint64[n]), which are
        hosts or own shapes: [n, WAYS]."""
        keys, which = shapes_of_ways(owners, urls)
        counts: Counts = self._yields.of(keys.ravel()).reshape(keys.shape)[which]
        return counts

    def explain(self, urls: pa.RecordBatch) -> str:
        """Return in words why the URL in the first row is a trap; empty if it is not."""
        urls = urls.slice(0, 1)
        reasons, counts = self._reasons(urls, self._barren_ways(urls))
        why, which = reasons[0].item()
        if why == Why.NO_TRAP:
            return ""
        if why == Why.MADE_UP:
            return "its host or domain makes pages up: it showed new text under several made-up names"
        url = texts(urls)[0]
        if why == Why.VARIANT:
            return (
                f"it differs from a page that was read only in {ways_in_words(url)[which]}, and hardly any page there"
                " that does had new text"
            )
        _, shape = shapes(skeleton(url)).in_order()[which]
        return (
            f"{counts['pages'][which]} pages there with URLs like {shape} were read, and hardly any of the last ones"
            " had new text"
        )

    def state(self) -> dict[str, Any]:
        if self._changed:
            self._file = self._store.write_array("trap-shapes", self._yields.counts, self._file)
            self._changed = False
        return {
            "shapes_file": self._file,
            "shapes": len(self._yields.counts),
            "probes": self.probes.state(),
            "variants": self._variants.state(),
            **self._testimony.state(),
        }


def _give(reasons: Reasons, why: Why, which: Places) -> None:
    """Make `why` the reason of those URLs for which `which` (int64[n]) is not -1."""
    given = which >= 0
    reasons["why"][given] = why
    reasons["which"][given] = which[given]
