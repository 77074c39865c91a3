"""Near-duplicates: how many pages say nearly what another said, and which of these others have the most.

`fyke.report.page` calls it. `fyke index` writes the table. Bounded: as in `fyke.report.survey`.
"""

from dataclasses import dataclass

from fyke.archive.lost import require_of_index
from fyke.archive.table_files import parquet_path
from fyke.report.sql import Questions, Rows

MOST_CLUSTERS = 10


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """`clusters`: number of pages that others are near to; `largest`: URL of the first page, pages near it, URL of
    one."""

    pages: int
    clusters: int
    largest: Rows


def near_duplicates(questions: Questions) -> NearDuplicates | None:
    """Return the near-duplicates; None without an index. Raises StateDamaged."""
    require_of_index(parquet_path(questions.crawl, "near", 0))
    if not questions.has("near"):
        return None
    ((pages, clusters),) = questions.ask("select count(*), count(distinct near_of) from near", near=["near_of"])
    largest = questions.ask(
        "with largest as materialized (select near_of, count(*) as pages, min(key) as one from near group by near_of"
        " order by 2 desc, 1 limit ?), named as materialized (select key, any_value(url) as url from pages"
        " where key in (select near_of from largest union all select one from largest) group by key)"
        " select first.url, pages, other.url from largest join named first on first.key = near_of"
        " join named other on other.key = one order by pages desc, near_of",
        MOST_CLUSTERS,
        near=["key", "near_of"],
        pages=["key", "url"],
    )
    return NearDuplicates(pages, clusters, largest)
