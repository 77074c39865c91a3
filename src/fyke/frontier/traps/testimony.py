"""What does a page say of URLs like its own? Rows for the counts of their shapes (`yields`).

A page counts for the shapes of its own URL: fresh or stale. If it is fresh, the page that linked to it also gets
credit, once. It does not count for all its shapes if its URL differs in one thing only from another page's
(`variants`). If it is *stale*, not fresh, a session or a name in the query in which it differs explains that, and it
says nothing of the rest of its URL.
- A variant counts for the way in which it differs, of its host and of its own shape. If its folders differ, it counts
  for its first folder in place of its own shape, because a site in two languages has the same names in both.
- Names in a query count for and against variants alone. A stale variant says nothing of its folder and host.
- A stale page without a query that comes after one with a query says nothing.
- A redirect is a step towards a page. The page counts as met where the first step was met, and it speaks for the shape
  of the first step too. A redirect counts as stale only after `STEPS` in a row, or if it leads to its like, to a page
  that came already, or to a trap.
- For coarse shapes one page of each own shape counts. A folder says little of another one: at most `FOLDER_PAGES` pages
  of each folder count for the folder around it, and as many of each outermost folder for the host and similar hosts.

Bounded: `RECENT` pages are known to have been fresh or not; newer pages replace older ones.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, Mask, texts, u64
from fyke.core.shapes import Shapes, first_folder, name_of, shape_keys, shapes, skeleton
from fyke.disk.store import Store
from fyke.frontier.traps.probes import Probes
from fyke.frontier.traps.tries import FirstTries
from fyke.frontier.traps.variants import Variants
from fyke.frontier.traps.ways import NAMES, Difference, lacks, way_keys, ways_in_words
from fyke.frontier.traps.yields import Yields

RECENT = 1 << 15
FOLDER_PAGES = 6
STEPS = 2  # redirects that sites chain for one: to another scheme, then to another name
MOST_STEPS = 100
# A redirect has the number of its `steps`, the `own` and `host` of the first, and `fresh` of the page that was met on.
# `led`: whether a page said that it was met here. `differs`: a bit for each `Difference`.
_PAGE = np.dtype(
    [("key", "<u8"), ("own", "<u8"), ("host", "<u8"), ("fresh", "?"), ("steps", "u1"), ("led", "?"), ("differs", "u1")]
)
Row = tuple[int, int, int, int, bool, bool]  # as `fyke.frontier.traps.yields.COUNT`


class Testimony:
    """The latest pages, on a file of `store`, and what they say."""

    def __init__(
        self,
        store: Store,
        yields: Yields,
        variants: Variants,
        tries: FirstTries,
        probes: Probes,
        state: Mapping[str, Any],
    ) -> None:
        """`yields`, the counts of shapes, are only looked at; the other three are told of the pages that were read."""
        self._store = store
        self._yields = yields
        self._variants = variants
        self._tries = tries
        self._probes = probes
        self._file = str(state.get("recent_file", ""))
        recent = store.array(self._file, _PAGE, int(state.get("recent", 0)))
        self._recent = np.zeros(RECENT, _PAGE)
        self._recent[recent["key"] % RECENT] = recent
        self._changed = False

    def __repr__(self) -> str:
        return f"Testimony({np.count_nonzero(self._recent['key'])} pages)"

    def of_pages(self, judged: pa.RecordBatch) -> tuple[list[Row], list[Row]]:
        """Return what pages and redirects say of their sharp shapes, and of their coarse ones: rows of `COUNT`."""
        self._changed = True
        of_sharp: list[Row] = []
        of_coarse: list[Row] = []
        tried: set[int] = set()
        in_folder: Counter[int] = Counter()
        for page in _pages(judged):
            parent = self._known(page.via)
            met_on_fresh = parent is not None and bool(parent["fresh"])
            keys = shape_keys(page.shapes, page.host, page.domain, met_on_fresh=met_on_fresh)
            steps = 0 if parent is None else int(parent["steps"])
            if page.fresh is None:
                self._note_redirect(page, keys.own, parent)
                if steps < STEPS:
                    continue
                differs, sharp = list[int](), keys.sharp
            else:
                differs = self._note_page(page, keys.own)
                if not page.fresh and set(differs) & set(lacks(page.url)):
                    continue  # the page itself, after a variant of it
                sharp = self._told_sharply(page, keys, differs)
            if parent is not None and parent["own"] != keys.own and (steps or (page.fresh and not parent["led"])):
                of_sharp += _led(parent, page.fresh)
            if page.fresh:
                self._probes.note_fresh(page.url, page.shapes, page.host, page.domain)
            varied = _of_variant(page, keys.own, differs)
            of_sharp += _rows([*sharp, *varied], page.host, page.fresh)
            if keys.own not in tried and (page.fresh or not differs) and not self._yields.pages(keys.own):
                of_coarse += self._of_coarse(page, keys, in_folder)
            tried.add(keys.own)
        return of_sharp, of_coarse

    def _known(self, key: int) -> Any:
        """Return the record of the page with this key (dtype `_PAGE`), or None if it is not known."""
        record = self._recent[key % RECENT]
        return record if key and record["key"] == key else None

    def _note_redirect(self, page: "_Witness", own: int, parent: Any) -> None:
        """Note that the redirect `page`, of the shape `own`, was followed. It was met on `parent` (dtype `_PAGE`, or
        None)."""
        met_on_fresh, first, steps = False, (own, page.host), 0
        if parent is not None:
            met_on_fresh, steps = bool(parent["fresh"]), int(parent["steps"])
            first = (int(parent["own"]), int(parent["host"])) if steps else first
        varied = _bits(self._variants.differs(page.url, page.host))
        steps = min(steps + 1, MOST_STEPS)
        self._recent[page.key % RECENT] = (page.key, *first, met_on_fresh, steps, False, varied)

    def _note_page(self, page: "_Witness", own: int) -> list[int]:
        """Note that `page`, of the shape `own`, was read. Returns the ways in which it differs from others."""
        differs = self._variants.note_read(page.url, page.host, fresh=bool(page.fresh))
        if not page.fresh and max(differs, default=0) >= NAMES:  # a name says why, so its query does not
            differs = [way for way in differs if way != Difference.QUERY]
        self._tries.query(page.shapes, page.host)
        self._recent[page.key % RECENT] = (page.key, own, page.host, page.fresh, 0, False, _bits(differs))
        return differs

    def _told_sharply(self, page: "_Witness", keys: Shapes[int], differs: Sequence[int]) -> list[int]:
        """Return the keys of the sharp shapes for which `page` counts, whose URL `differs` in these ways."""
        if not page.fresh and differs == [Difference.DIGEST]:  # a session says why, so nothing else does
            return []
        of_query = self._told_by_query(page, keys) if Difference.QUERY in differs else []
        return [keys.own, *of_query, *keys.mixes, *keys.traits]

    def _told_by_query(self, page: "_Witness", keys: Shapes[int]) -> list[int]:
        """Return the keys of the names in the query, and names with words, for which `page` counts. If it brought
        nothing, it does not count for a name whose word was counted before."""
        if page.fresh:
            return [*keys.names, *keys.words]
        words = zip(page.shapes.words, keys.words, strict=True)
        known = {name_of(word) for word, key in words if self._yields.pages(key)}
        names = zip(page.shapes.names, keys.names, strict=True)
        return [*(key for name, key in names if name_of(name) not in known), *keys.words]

    def _of_coarse(self, page: "_Witness", keys: Shapes[int], in_folder: Counter[int]) -> list[Row]:
        """Return what `page` says of its coarse shapes. `in_folder` counts the pages of this batch that spoke for each
        folder."""
        rows: list[Row] = []
        for folder in reversed(keys.folders):
            rows += _rows([folder], page.host, page.fresh)
            speaks = in_folder[folder] + self._yields.pages(folder) < FOLDER_PAGES
            in_folder[folder] += 1
            if not speaks:
                return rows
        return [
            *rows,
            *_rows([keys.kinds, keys.host], page.host, page.fresh),
            *_rows([keys.hosts], page.domain, page.fresh),
        ]

    def of_traps(self, traps: pa.RecordBatch) -> list[Row]:
        """Note that these URLs (n rows) wait as traps. Returns rows that count redirects to them as stale."""
        said: list[Row] = []
        via_of = u64(traps, "via")
        for via in via_of[self._recent["steps"][via_of % np.uint64(RECENT)] > 0].tolist():
            redirect = self._recent[via % RECENT]
            if redirect["key"] == via and not redirect["led"]:
                said += _led(redirect, False)
        self._changed |= bool(said)
        return said

    def met_on_fresh(self, via: U64) -> Mask:
        """Return which pages with these keys (uint64[n]) were fresh: URLs met there are counted apart."""
        pages = self._recent[via % np.uint64(RECENT)]
        met: Mask = (pages["key"] == via) & pages["fresh"]
        return met

    def state(self) -> dict[str, Any]:
        recent = self._recent[self._recent["key"] != 0]
        if self._changed:
            self._file = self._store.write_array("trap-pages", recent, self._file)
            self._changed = False
        return {"recent_file": self._file, "recent": len(recent)}


class _Witness(NamedTuple):
    """A page that was read, fresh or not, or a redirect that was followed: `fresh` is None."""

    url: str
    shapes: Shapes[str]
    fresh: bool | None
    key: int
    host: int
    domain: int
    via: int


def _pages(judged: pa.RecordBatch) -> Iterator[_Witness]:
    """Yield each row of `judged` (schema `JUDGED`)."""
    columns = [u64(judged, name).tolist() for name in ("key", "host", "domain", "via")]
    for url, fresh, *numbers in zip(texts(judged), judged.column("fresh").to_pylist(), *columns, strict=True):
        yield _Witness(url, shapes(skeleton(url)), fresh, *numbers)


def _led(parent: Any, fresh: bool | None) -> list[Row]:
    """Return what a page, fresh or not, says of `parent`, the page it was met on (dtype `_PAGE`, marked as `led`
    here)."""
    parent["led"] = True
    host = int(parent["host"])
    keys = way_keys(host)
    varied = [keys[way] for way in Difference if parent["differs"] >> way & 1]
    return _rows([int(parent["own"]), *varied], host, fresh)


def _bits(differs: Sequence[int]) -> int:
    """Return a bit for each `Difference` among `differs`."""
    return sum(1 << way for way in differs if way < NAMES)


def _of_variant(page: _Witness, own: int, differs: Sequence[int]) -> list[int]:
    """Return the keys of variants that differ as `page` does: of its host, and of its shape `own` or its folder."""
    if not differs:
        return []
    words = ways_in_words(page.url)
    of_host, of_own = way_keys(page.host, words), way_keys(own, words)
    of_own[Difference.FOLDERS] = way_keys(first_folder(page.shapes, page.host))[Difference.FOLDERS]
    return [keys[way] for keys in (of_host, of_own) for way in differs]


def _rows(keys: Sequence[int], owner: int, fresh: bool | None) -> list[Row]:
    """Return a page's rows, fresh or not, for the shapes with these keys of `owner`."""
    return [(key, owner, 0, 0, bool(fresh), False) for key in keys]
