"""The domains of a crawl by who links to them, and those that differ from the others: signals, not verdicts.

`fyke.report.page` calls it, for IRLbot's Table 4, the distribution behind it, and what `fyke.search.domain_signals`
found unusual. The table of domains is written when a crawl stops: one that never did has none, and one that runs again
has that of the last stop. `fyke index` writes the table of ranks. Bounded: memory holds a batch of rows and those that
are shown; otherwise as in `fyke.report.survey`.
"""

from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.lost import require_of_index
from fyke.archive.reading import read_file
from fyke.archive.table_files import TABLES
from fyke.report.sql import Questions, Rows

TOP_DOMAINS = 20
UNUSUAL_DOMAINS = 20

_COLUMNS = ["domain", "in_degree", "rank", "budget", "urls", "fetched", "waiting"]
_UNUSUAL = ["linkers", "domain", "pages", "reasons"]


@dataclass(frozen=True, slots=True)
class DomainStanding:
    """`top`: rank, domain, in-degree, PageRank (None if links were not analysed), budget, URLs, pages, waiting."""

    top: Rows
    degrees: Rows  # in-degree, domains that have it
    ranked: bool  # whether there is a PageRank


def domain_standing(questions: Questions, crawl: Path) -> DomainStanding | None:
    """Return how the domains stand; None while there is no table of them."""
    if not questions.has("domains"):
        return None
    top = questions.ask(
        "select rank, domain, in_degree, budget, urls, fetched, waiting from domains"
        " order by in_degree desc, fetched desc, domain limit ?",
        TOP_DOMAINS,
        domains=_COLUMNS,
    )
    ranks = _page_ranks(crawl, [row[1] for row in top])
    rows = [(row[0], row[1], row[2], ranks.get(row[1]), *row[3:]) for row in top]
    degrees = questions.ask(
        "select in_degree, count(*) from domains where in_degree > 0 group by 1 order by 1", domains=["in_degree"]
    )
    return DomainStanding(rows, degrees, bool(ranks))


def _page_ranks(crawl: Path, domains: list[str]) -> dict[str, float]:
    """Return the PageRank of each domain from `fyke index`, in multiples of the mean."""
    path = _ranks(crawl)
    if path is None:
        return {}
    wanted, count = pa.array(domains, pa.string()), 0
    found: dict[str, float] = {}
    for batch in read_file(path, ["domain", "pagerank"]):
        count += batch.num_rows
        few = batch.filter(pc.is_in(batch.column("domain"), wanted))
        found.update(zip(few.column("domain").to_pylist(), few.column("pagerank").to_pylist(), strict=True))
    return {domain: rank * count for domain, rank in found.items()}


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
    path = _ranks(crawl)
    if path is None:
        return None
    batches = read_file(path, ["domain"])
    known = sum(batch.num_rows for batch in batches)
    count, most = 0, list[tuple[Any, ...]]()
    for batch in read_file(path, _UNUSUAL):
        found = batch.filter(pc.not_equal(batch.column("reasons"), ""))
        count += found.num_rows
        rows = zip(*(found.column(name).to_pylist() for name in _UNUSUAL), strict=True)
        most = nlargest(UNUSUAL_DOMAINS, [*most, *rows])
    return UnusualDomains(count, known, most)


def _ranks(crawl: Path) -> Path | None:
    """Return the table of ranks that `fyke index` wrote, if it did. Raises StateDamaged if it is gone."""
    path = crawl / TABLES / "domainrank.parquet"
    require_of_index(path)
    return path if path.exists() else None
