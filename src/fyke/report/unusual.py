"""Domains that differ from the others of the same crawl, and how: signals, not verdicts.

`fyke.report.page` calls it. `fyke index` writes the table (`fyke.search.domain_signals`). Bounded: memory holds a batch
of its rows and those that are shown.
"""

from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from fyke.archive.lost import require_of_index
from fyke.archive.reading import read_file
from fyke.archive.table_files import TABLES, as_file
from fyke.report.sql import Rows

MOST_DOMAINS = 20
_COLUMNS = ["linkers", "domain", "pages", "reasons"]


@dataclass(frozen=True, slots=True)
class UnusualDomains:
    """`most` are those with the most linkers: number of linkers, domain, its pages, what is unusual."""

    domains: int  # with something unusual
    of: int
    most: Rows


def unusual_domains(crawl: Path) -> UnusualDomains | None:
    """Return the unusual domains of the crawl directory `crawl`; None without an index, or with one of an older
    version.

    Raises StateDamaged.
    """
    path = crawl / TABLES / "domainrank.parquet"
    require_of_index(path)
    if not path.exists():
        return None
    batches = read_file(path, ["domain"])
    known = sum(batch.num_rows for batch in batches)
    if "reasons" not in pq.read_schema(as_file(path)).names:
        return None
    count, most = 0, list[tuple[Any, ...]]()
    for batch in read_file(path, _COLUMNS):
        found = batch.filter(pc.not_equal(batch.column("reasons"), ""))
        count += found.num_rows
        rows = zip(*(found.column(name).to_pylist() for name in _COLUMNS), strict=True)
        most = nlargest(MOST_DOMAINS, [*most, *rows])
    return UnusualDomains(count, known, most)
