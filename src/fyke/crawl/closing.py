"""What does a crawl leave for people to read when it closes? The tables of hosts and domains, archive and tables whole.

The agent calls it before its last checkpoint, which thus names finished files.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from fyke.archive.directory import CrawlDirectory
from fyke.archive.schemas import SCHEMAS
from fyke.archive.summaries import HostRow, write_domains, write_hosts
from fyke.core.urls import key_of
from fyke.crawl.opening import Rooms
from fyke.frontier.domains import waiting_urls


def close_whole(directory: CrawlDirectory, rooms: Rooms) -> None:
    """Finish all files that `rooms` write into `directory`, and tell the sinks that this is the end. Raises
    PluginError."""
    rooms.fetcher.state()
    write_hosts(directory.path, _host_rows(rooms), directory.part)
    write_domains(directory.path, _domain_rows(rooms), directory.part)
    for writer in (rooms.archive, rooms.pages, rooms.links):
        writer.close()
    for table in rooms.extracted.values():
        table.close()
    rooms.barn.close_sinks()


def _host_rows(rooms: Rooms) -> Iterator[HostRow]:
    for host in rooms.book.hosts():
        yield HostRow(
            host.name,
            host.domain,
            host.addresses[0] if host.addresses else "",
            rooms.book.robots_state(host.name),
            host.crawl_delay_s or None,
            host.pages,
            host.failures,
            host.retired,
            host.first_seen or None,
            host.last_seen or None,
        )


def _domain_rows(rooms: Rooms) -> Iterator[pa.RecordBatch]:
    star, schema = rooms.frontier.star, SCHEMAS["domains"]
    for names, records in rooms.frontier.domains.named():
        keys = np.fromiter(map(key_of, names), np.uint64, len(names))
        budgets = star.budgets(keys, records["in_degree"])
        columns = {
            "domain": names,
            "in_degree": records["in_degree"],
            "rank": star.ranking.rank(records["in_degree"]),
            "budget": budgets,
            "urls": records["urls"],
            "fetched": records["fetched"],
            "waiting": waiting_urls(records),
            "host_delay_s": [rooms.bench.delays.of_domain(budget) for budget in budgets.tolist()],
        }
        yield pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
