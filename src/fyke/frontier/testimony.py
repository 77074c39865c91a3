"""What does a page show of URLs like its own? Rows for the counts of their shapes (`fyke.frontier.yields`).

A page that was read says of its own shapes whether such bring new text, and of the page that it was met on, that it led
to some. For which shapes it counts depends on what it differs in from others that were read (`fyke.frontier.variants`):
what a session or a name in the query explains says nothing of what else the URL has.

A variant counts for the way in which it differs, of its host and of its own shape; what only differs in its folders for
its first folder in place of its own shape, since a site in two languages has the same names in both. The names in a
query count for and against variants alone, and what such a page lacks says nothing of its folder and host. The page
that has no query, and comes after one that has, says nothing at all.

A redirect is a step on the way to a page, which was met where the first step was: what is said of the page is said of
URLs like that as well. Only who leads on after `STEPS` redirects in a row shows nothing, or who leads to its like, to a
page that came already, or to a trap.

Of coarse shapes one page counts for each own shape. What lies in one folder says little of another: `FOLDER_PAGES` of
each speak for that which it is in, and of each of those for their host, and for the hosts like it.

Bounded: `RECENT` pages are known to have been fresh or not, of which newer ones take the place of older ones.
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
STEPS = 2  # redirects that sites make of one: to another scheme, then to another name
MOST_STEPS = 100
# A redirect, the last of so many `steps`, is as `fresh` as where the first one was met, whose `own` and `host` it has.
# `led`: whether it was said of it that it led to a fresh page. `differs`: bits, in which of `VARIANTS` from another.
_PAGE = np.dtype(
    [("key", "<u8"), ("own", "<u8"), ("host", "<u8"), ("fresh", "?"), ("steps", "u1"), ("led", "?"), ("differs", "u1")]
)
Row = tuple[int, int, int, int, bool, bool]  # of `fyke.frontier.yields.COUNT`


class Testimony:
    """The latest pages, on a file of `store`, and what comes of them."""

    def __init__(
        self,
        store: Store,
        yields: Yields,
        variants: Variants,
        tries: FirstTries,
        probes: Probes,
        state: Mapping[str, Any],
    ) -> None:
        """`yields`: what is known of shapes, which is only looked at; the other three are told of what was read."""
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
        """What pages and redirects say of each of their sharp shapes, and of their coarse ones: rows of `COUNT`."""
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
                    continue  # it is the page itself, of which a variant was read before
            if is_known and parent["own"] != own and (steps or (fresh and not parent["led"])):
                of_sharp += _led(parent, fresh)
            if fresh:
                self._probes.fresh(url, found, host, domain)
            owns = own, first_folder(found, host)
            of_sharp += _rows(sharp, host, differs, fresh, owns, names_left_out(url))
            if own not in tried and (fresh or not differs) and not self._yields.pages(own):
                of_coarse += self._of_coarse(coarse, host, domain, in_folder, fresh=fresh)
            tried.add(own)
        return of_sharp, of_coarse

    def _read(self, url: str, host: int, found: Shapes, sharp: list[int], *, fresh: bool) -> list[int]:
        """The page `url` was read: the places of what it differs in from others. Of the keys `sharp` of what was
        `found` those stay for which it counts."""
        differs = self._variants.read(url, host, fresh=fresh)
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
        """Of the names in a query, and those with words, among the keys `sharp` of what was `found`: those for which a
        page with them counts. Where it brought nothing, a word that was read before answers for its name."""
        ends = 1 + len(found.names), 1 + len(found.names) + len(found.words)
        names, words = sharp[1 : ends[0]], sharp[ends[0] : ends[1]]
        if not fresh:
            known = {name_of(word) for word, key in zip(found.words, words, strict=True) if self._yields.pages(key)}
            names = [key for name, key in zip(found.names, names, strict=True) if name_of(name) not in known]
        return [*names, *words]

    def _of_coarse(
        self, coarse: Sequence[int], host: int, domain: int, in_folder: Counter[int], *, fresh: bool | None
    ) -> list[Row]:
        """What a page says of its coarse shapes, after others of the batch in so many folders, where it is counted."""
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
        """What it says that these URLs (n rows) wait as traps: a redirect that led to one of them showed nothing."""
        said: list[Row] = []
        via_of = u64(traps, "via")
        for via in via_of[self._recent["steps"][via_of % np.uint64(RECENT)] > 0].tolist():
            redirect = self._recent[via % RECENT]
            if redirect["key"] == via and not redirect["led"]:
                said += _led(redirect, False)
        self._changed |= bool(said)
        return said

    def met_on_fresh(self, via: U64) -> Mask:
        """Whether the pages with these keys (uint64[n]) were fresh: what they lead to is apart from what others do."""
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
    """What a page says of the one that it was met on (dtype `_PAGE`, which notes it): that it led to it."""
    parent["led"] = True
    varied = [at for at in range(len(VARIANTS)) if parent["differs"] >> at & 1]
    return _rows([int(parent["own"])], int(parent["host"]), varied, fresh)


def _bits(differs: Sequence[int]) -> int:
    """The places in `VARIANTS` among `differs`."""
    return sum(1 << at for at in differs if at < len(VARIANTS))


def _rows(
    keys: Sequence[int],
    host: int,
    differs: Sequence[int],
    fresh: bool | None,
    owns: Sequence[int] = (),
    names: Sequence[str] = (),
) -> list[Row]:
    """A page, which was fresh or not, counts for the shapes with these keys, and for those of variants that have the
    places `differs`, with these `names` in their query: of its `host`, and of its `owns`: its own shape, its folder."""
    varied = [variant_shapes(host, names)[at] for at in differs]
    varied += [variant_shapes(owns[at == FOLDERS], names)[at] for at in differs if owns]
    return [(key, host, 0, 0, bool(fresh), False) for key in (*keys, *varied)]
