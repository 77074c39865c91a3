"""What is unusual about a domain, in numbers and in words? Reported, and held against nobody.

The numbers are the supporters of its linkers (`fyke.search.supporters`), and what the table of pages says of its
content at no cost: how well its pages compress, because text made by programs repeats itself, what share of them is a
copy, and how many links they have (Ntoulas, Najork, Manasse, Fetterly, "Detecting spam web pages through content
analysis", WWW 2006, sections 4.4 to 4.6). A domain is unusual if it differs from others of the same crawl; nothing is
trained. Called by `fyke.search.linkage`, which writes them into `domainrank.parquet`.

Bounded: memory holds a range of domains, and three numbers of `MOST_ASKED` of them.
"""

from bisect import bisect_left
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import U64
from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES
from fyke.core.sorting import looked_up
from fyke.disk.ranges import Buckets, append, mapped, ranges_for

LEAST_LINKERS = 10  # of a domain whose linkers may be called dependent
DEPENDENT = 0.1  # linkers are, below this independence
LEAST_PAGES = 10  # of a domain whose content is judged
LEAST_DOMAINS = 30  # from which to say what is usual
DEVIATIONS = 6.0  # from the median, in median absolute deviations as of a normal distribution
LEAST_SHARE = 0.5  # of copies, from which it is unusual
MOST_ASKED = 1 << 20
PAGE_COLUMNS = ["outcome", "media_type", "content_bytes", "warc_length", "links", "duplicate"]
MEASURES = {"compression": "its pages compress to 1/{:.1f}", "links_per_page": "{:.0f} links a page"}
_SUMS = ("pages", "content", "packed", "links", "copies")
_ROW = np.dtype([("domain", "<u8"), *((name, "<f8") for name in _SUMS)])
_HTML = pa.array(sorted(HTML_TYPES), pa.string())

Table = npt.NDArray[Any]


class ContentSums:
    """Sums over the HTML pages of each domain, of about `rows` pages; on disk below `scratch` if they are many."""

    def __init__(self, scratch: Path, rows: int) -> None:
        self._parts = Buckets(scratch, "contents", _ROW, ranges_for(rows))
        self._path = scratch / "contents.sums"

    def __repr__(self) -> str:
        return f"ContentSums({self._parts!r})"

    def add(self, pages: pa.RecordBatch, domains: U64) -> None:
        """Add pages (with `PAGE_COLUMNS`) of these `domains` (uint64[n])."""
        read = pc.and_(
            pc.equal(pages.column("outcome").cast(pa.string()), Outcome.OK.value),
            pc.is_in(pages.column("media_type").cast(pa.string()), value_set=_HTML),
        )
        rows = np.flatnonzero(read.to_numpy(zero_copy_only=False))
        if not len(rows):
            return
        unique, places = np.unique(domains[rows], return_inverse=True)
        sums = np.zeros(len(unique), _ROW)
        sums["domain"], sums["pages"] = unique, np.bincount(places)
        for name, column in zip(_SUMS[1:], ("content_bytes", "warc_length", "links", "duplicate"), strict=True):
            values = pages.column(column).take(pa.array(rows)).cast(pa.float64()).fill_null(0)
            sums[name] = np.bincount(places, values.to_numpy(zero_copy_only=False))
        self._parts.add(unique, sums)

    def settle(self) -> None:
        """Sum up by domain, once all pages were added."""
        self._path.unlink(missing_ok=True)
        for part in self._parts:
            unique, places = np.unique(part["domain"], return_inverse=True)
            sums = np.zeros(len(unique), _ROW)
            sums["domain"] = unique
            for name in _SUMS if len(unique) else ():
                sums[name] = np.bincount(places, part[name])
            append(self._path, sums)
        self._parts.close()

    def of(self, keys: U64) -> Table:
        """Return `pages` of the domains `keys` (uint64[n], sorted) and means over them: a field each, zeros if
        unknown."""
        table = mapped(self._path, _ROW)
        if len(keys):
            first, last = (bisect_left(table["domain"], int(key)) for key in (keys[0], keys[-1]))
            table = table[first : last + 1]
        places = looked_up(table["domain"], keys)
        sums = np.zeros(len(keys), _ROW)
        sums[places >= 0] = table[places[places >= 0]]
        return measured(sums)

    def usual(self) -> dict[str, tuple[float, float]]:
        """Return median and deviation of the logarithm of each of `MEASURES`, if enough domains have it."""
        table = mapped(self._path, _ROW)
        some = np.asarray(table[:: max(1, len(table) // MOST_ASKED)])
        some = measured(some[some["pages"] >= LEAST_PAGES])
        found = {}
        for name in MEASURES:
            values = np.log(some[name][some[name] > 0])
            if len(values) >= LEAST_DOMAINS:
                middle = float(np.median(values))
                found[name] = middle, max(1.4826 * float(np.median(np.abs(values - middle))), 0.05)
        return found


def measured(sums: Table) -> Table:
    """Return the means that sums over pages make: `pages`, `compression`, `links_per_page`, `copies` (a share)."""
    found = np.zeros(len(sums), [("pages", "<u4"), *((name, "<f4") for name in (*MEASURES, "copies"))])
    pages = np.maximum(sums["pages"], 1)
    found["pages"] = sums["pages"]
    found["compression"] = sums["content"] / np.maximum(sums["packed"], 1)
    found["links_per_page"], found["copies"] = sums["links"] / pages, sums["copies"] / pages
    return found


def reasons(support: Table, content: Table, usual: dict[str, tuple[float, float]]) -> list[str]:
    """Return what is unusual about each domain, in words; empty for most. `support` is of `supporters`, `content` of
    `ContentSums.of`, [n] both."""
    words: list[list[str]] = [[] for _ in range(len(support))]
    dependent = (support["linkers"] >= LEAST_LINKERS) & (support["independence"] < DEPENDENT)
    for at in np.flatnonzero(dependent).tolist():
        linkers, behind, share = support[at].item()
        words[at].append(
            f"{linkers:,} domains link to it, and about {behind:,.0f} others link to those, {share:.0%} of the usual"
            " number"
        )
    known = content["pages"] >= LEAST_PAGES
    for name, phrase in MEASURES.items():
        middle, deviation = usual.get(name, (np.inf, 0.0))
        high = known & (np.log(np.maximum(content[name], 1e-9)) > middle + DEVIATIONS * deviation)
        for at in np.flatnonzero(high).tolist():
            words[at].append(f"{phrase.format(content[name][at])}, where {np.exp(middle):.1f} is usual")
    for at in np.flatnonzero(known & (content["copies"] >= LEAST_SHARE)).tolist():
        words[at].append(f"{content['copies'][at]:.0%} of its pages are exact copies of others")
    return ["; ".join(some) for some in words]
