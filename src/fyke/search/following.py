"""`fyke index`: one run, or one after the other while the crawl goes on.

Each increment costs a pass over what the index knows. So while following, one begins when the waiting pages are a tenth
of those read, and `LEAST_PAGES` at least. Then all increments together are a small multiple of one run's work, and the
index is behind by a tenth at most.

Invariant: the crawl is never waited for and never written to. It may end, be killed, or begin again meanwhile.
"""

import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from fyke.archive.directory import CrawlDirectory
from fyke.archive.inspect import in_use
from fyke.progress import Progress
from fyke.search.indexer import Indexed, Indexer, IndexLimits, be_gentle

POLL_S = 2.0
LEAST_PAGES = 200
SHARE = 0.1  # of the pages read
RANK_GROWTH = 0.5  # of the links, while more are coming

_PHASES = {
    "read": "reading pages",
    "near": "comparing texts",
    "rank": "ranking pages",
    "merge": "comparing with the index",
    "write": "writing",
}


def index_with_status(crawl: Path, console: Console, *, follow: bool, links_memory_bytes: int) -> Indexed:
    """Index `crawl`, tell `console` how it goes, and return the counts. Raises as the indexer does."""
    limits = IndexLimits(links_memory_bytes=links_memory_bytes)
    with Progress(console, _PHASES["read"]) as progress:

        def told(phase: str, done: int, of: int) -> None:
            progress.tell(_PHASES[phase], done, of if done else 0)

        with Indexer(crawl, limits, told) as indexer:
            if not follow:
                return indexer.run()
            be_gentle()
            return follow_crawl(indexer, time.sleep)


def follow_crawl(indexer: Indexer, sleep: Callable[[float], None]) -> Indexed:
    """Index all that comes until the crawl is not running and nothing waits; return the sum of all increments."""
    directory = CrawlDirectory(indexer.folder.crawl)
    read = written = deleted = 0
    while True:
        running = in_use(directory)
        waiting = indexer.waiting()
        if running and waiting < max(LEAST_PAGES, SHARE * indexer.state.pages_read):
            sleep(POLL_S)
            continue
        done = indexer.run(growth=RANK_GROWTH if running else 0.0)
        read, written, deleted = read + done.read, written + done.written, deleted + done.deleted
        if not running:
            return Indexed(read, written, deleted, done.documents, done.unreadable)
