"""Crawlee (Python) in the race: every link of every page, robots.txt obeyed, all in memory.

python crawlee_crawler.py SEED PAGES
"""

import asyncio
import sys

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

SEED, PAGES = sys.argv[1], int(sys.argv[2])


async def main() -> None:
    crawler = ParselCrawler(
        max_requests_per_crawl=PAGES,
        respect_robots_txt_file=True,
        concurrency_settings=ConcurrencySettings(desired_concurrency=100, max_concurrency=100),
        storage_client=MemoryStorageClient(),
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def follow(context: ParselCrawlingContext) -> None:
        await context.enqueue_links(strategy="all")

    await crawler.run([SEED])


asyncio.run(main())
