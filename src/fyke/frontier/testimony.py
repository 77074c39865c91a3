"""What does a page say of URLs like its own? Rows for the counts of their shapes (`fyke.frontier.yields`).

A page that was read says of its own shapes whether they bring new text, and, if it does, of the page that it was met on
that this led to new text. It does not count for all its shapes if its URL differs in one thing only from another page's
(`fyke.frontier.variants`). If it is *stale*, not fresh, a session or a name in the query in which it differs explains
that, and it says nothing of the rest of its URL.
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
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, Mask, texts, u64
from fyke.core.shapes import (
    DIGEST,
    FOLDERS,
    QUERY,
    VARIANTS,
    Shapes,
    first_folder,
    lacks,
    name_of,
    shape_keys,
    shapes,
    skeleton,
)
from fyke.disk.store import Store
from fyke.frontier.probes import Probes
from fyke.frontier.tries import FirstTries
from fyke.frontier.variants import Variants, names_left_out, variant_shapes
from fyke.frontier.yields import Yields

RECENT = 1 << 15
FOLDER_PAGES = 6
STEPS = 2  # redirects that sites chain for one: to another scheme, then to another name
MOST_STEPS = 100
# A redirect has the number of its `steps`, the `own` and `host` of the first, and `fresh` of the page that was met on.
# `led`: whether a page said that it was met here. `differs`: bits of `VARIANTS`.
_PAGE = np.dtype(
    [("key", "<u8"), ("own", "<u8"), ("host", "<u8"), ("fresh", "?"), ("steps", "u1"), ("led", "?"), ("differs", "u1")]
)
Row = tuple[int, int, int, int, bool, bool]  # as `fyke.frontier.yields.COUNT`


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
            differs: list[int] = []
            if fresh is None:
                first = (parent["own"], parent["host"]) if steps else (own, host)
                varied = _bits(self._variants.differs(url, host))
                self._recent[key % RECENT] = (key, *first, met_on_fresh, min(steps + 1, MOST_STEPS), False, varied)
                if steps < STEPS:
                    continue
            else:
                differs = self._read(url, host, found, sharp, fresh=fresh)
                self._recent[key % RECENT] = (key, own, host, fresh, 0, False, _bits(differs))
                if not fresh and set(differs) & set(lacks(url)):
                    continue  # the page itself, after a variant of it
            if is_known and parent["own"] != own and (steps or (fresh and not parent["led"])):
                of_sharp += _led(parent, fresh)
            if fresh:
                self._probes.note_fresh(url, found, host, domain)
            owns = own, first_folder(found, host)
            of_sharp += _rows(sharp, host, differs, fresh, owns, names_left_out(url))
            if own not in tried and (fresh or not differs) and not self._yields.pages(own):
                of_coarse += self._of_coarse(coarse, host, domain, in_folder, fresh=fresh)
            tried.add(own)
        return of_sharp, of_coarse

    def _read(self, url: str, host: int, found: Shapes, sharp: list[int], *, fresh: bool) -> list[int]:
        """Note that the page `url` was read. Returns the ways in which it differs from others. Takes out of `sharp`,
        the keys of the shapes `found`, those for which the page does not count."""
        differs = self._variants.note_read(url, host, fresh=fresh)
        if not fresh and max(differs, default=0) >= len(VARIANTS):  # a name says why, so its query does not
            differs = [at for at in differs if at != QUERY]
        self._tries.query(found, host)
        sharp[1 : 1 + len(found.names) + len(found.words)] = (
            self._told_by_query(found, sharp, fresh=fresh) if QUERY in differs else []
        )
        if not fresh and differs == [DIGEST]:  # a session says why, so nothing else does
            sharp.clear()
        return differs

    def _told_by_query(self, found: Shapes, sharp: Sequence[int], *, fresh: bool) -> list[int]:
        """Return for which names in the query, and names with words, a page counts: some of the keys `sharp` of the
        shapes `found`. If the page brought nothing, it does not count for a name whose word was counted before."""
        ends = 1 + len(found.names), 1 + len(found.names) + len(found.words)
        names, words = sharp[1 : ends[0]], sharp[ends[0] : ends[1]]
        if not fresh:
            known = {name_of(word) for word, key in zip(found.words, words, strict=True) if self._yields.pages(key)}
            names = [key for name, key in zip(found.names, names, strict=True) if name_of(name) not in known]
        return [*names, *words]

    def _of_coarse(
        self, coarse: Sequence[int], host: int, domain: int, in_folder: Counter[int], *, fresh: bool | None
    ) -> list[Row]:
        """Return what a page says of its coarse shapes. `in_folder` counts the pages of this batch that spoke for each
        folder."""
        rows: list[Row] = []
        speaks = True
        for folder in reversed(coarse[1:-2]):
            if speaks:
                rows += _rows([folder], host, [], fresh)
                speaks = in_folder[folder] + self._yields.pages(folder) < FOLDER_PAGES
                in_folder[folder] += 1
        if speaks:
            rows += _rows([coarse[0], coarse[-2]], host, [], fresh) + _rows([coarse[-1]], domain, [], fresh)
        return rows

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


def _led(parent: Any, fresh: bool | None) -> list[Row]:
    """Return what a page, fresh or not, says of `parent`, the page it was met on (dtype `_PAGE`, marked as `led`
    here)."""
    parent["led"] = True
    varied = [at for at in range(len(VARIANTS)) if parent["differs"] >> at & 1]
    return _rows([int(parent["own"])], int(parent["host"]), varied, fresh)


def _bits(differs: Sequence[int]) -> int:
    """Return a bit for each place in `VARIANTS` among `differs`."""
    return sum(1 << at for at in differs if at < len(VARIANTS))


def _rows(
    keys: Sequence[int],
    host: int,
    differs: Sequence[int],
    fresh: bool | None,
    owns: Sequence[int] = (),
    names: Sequence[str] = (),
) -> list[Row]:
    """Return a page's rows, fresh or not, for the shapes with these keys, and for variants that differ in the ways
    `differs` with these `names` in their query: of its `host`, and of its `owns`, its own shape and folder."""
    varied = [variant_shapes(host, names)[at] for at in differs]
    varied += [variant_shapes(owns[at == FOLDERS], names)[at] for at in differs if owns]
    return [(key, host, 0, 0, bool(fresh), False) for key in (*keys, *varied)]
