"""What the tables of a crawl have of one URL: its visits, and the links that lead to it. Asked by `fyke why`."""

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from fyke.archive.directory import CrawlDirectory
from fyke.archive.lost import require_rows
from fyke.archive.reading import scan_table, segments
from fyke.archive.schemas import SCHEMAS
from fyke.core.batches import LinkKind, u64
from fyke.core.errors import StateDamaged
from fyke.core.urls import key_of

MOST_HOPS = 10  # of redirects that are followed, since each is looked up in the whole table


def visits_to(directory: CrawlDirectory, key: int) -> tuple[list[dict[str, Any]], list[StateDamaged]]:
    """Return the visits to the page with `key`, in order, and the damage that hides others."""
    rows: list[dict[str, Any]] = []
    damage: list[StateDamaged] = []
    where = ds.field("key") == pa.scalar(key, pa.uint64())
    for segment in segments(directory.path, "pages") if directory.tables.is_dir() else []:
        try:
            rows += [row for batch in segment.batches(SCHEMAS["pages"].names, where) for row in batch.to_pylist()]
        except StateDamaged as error:
            damage.append(error)
    try:
        require_rows(directory, "pages")
    except StateDamaged as error:
        damage = damage or [error]
    return rows, damage


def redirects_from(directory: CrawlDirectory, row: dict[str, Any]) -> list[str]:
    """Return the URLs to which the visit of `row` redirects, one after the other, until one is met again."""
    way: list[str] = []
    while (target := row["redirect_to"]) and target not in way and len(way) < MOST_HOPS:
        way.append(target)
        rows, _ = visits_to(directory, key_of(target))
        row = rows[-1] if rows else {"redirect_to": ""}
    return way


def url_with(directory: CrawlDirectory, name: str, value: int, other_than: int = 0) -> str:
    """Return a URL whose visit has `value` in the column `name`, except for the one with the key `other_than`."""
    where = (ds.field(name) == pa.scalar(value, pa.uint64())) & (ds.field("key") != pa.scalar(other_than, pa.uint64()))
    for segment in segments(directory.path, "pages") if value else []:
        with suppress(StateDamaged):
            found = next((batch for batch in segment.batches(["url"], where) if batch.num_rows), None)
            if found is not None:
                return str(found.column("url")[0].as_py())
    return ""


def shortest_link_to(directory: CrawlDirectory, key: int) -> tuple[str, int] | None:
    """Return the page from which a link or redirect leads to the URL with `key` at the least depth, and this depth;
    None if none does. Links that say nofollow, and those of images, styles and scripts, do not count.

    Raises StateDamaged.
    """
    if not directory.tables.is_dir():
        return None
    require_rows(directory, "links")
    found: list[tuple[int, str]] = []
    for kind, steps in ((LinkKind.REDIRECT, 0), (LinkKind.PAGE, 1)):
        where = (ds.field("target") == pa.scalar(key, pa.uint64())) & (ds.field("kind") == kind.value)
        links = scan_table(directory.path, "links", ["source"], where)
        sources = np.unique(np.concatenate([np.zeros(0, np.uint64), *(u64(batch, "source") for batch in links)]))
        pages = scan_table(directory.path, "pages", ["url", "depth"], ds.field("key").isin(pa.array(sources)))
        for batch in pages if len(sources) else ():
            found += [(row["depth"] + steps, row["url"]) for row in batch.to_pylist()]
            found = [min(found)] if found else []
    depth, url = min(found, default=(0, ""))
    return (url, depth) if url else None
