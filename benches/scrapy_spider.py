"""Scrapy doing what Fyke does in `against_scrapy.py`: robots.txt, every link, every page into a WARC.

python scrapy_spider.py SEED PAGES WARC      prints pages and seconds as JSON
"""

import io
import json
import sys
import time
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from twisted.internet import defer
from twisted.internet.base import ThreadedResolver
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

SEED, PAGES, WARC = sys.argv[1], int(sys.argv[2]), sys.argv[3]


class AllAtHome(ThreadedResolver):
    """Every name is at 127.0.0.1."""

    @classmethod
    def from_crawler(cls, crawler, reactor):
        return cls(reactor)

    def install_on_reactor(self):
        self.reactor.installResolver(self)

    def getHostByName(self, name, timeout=()):  # noqa: N802 - Twisted's name
        return defer.succeed("127.0.0.1")


class Spider(scrapy.Spider):
    name = "bench"
    start_urls = (SEED,)
    links = LinkExtractor()
    pages = 0
    started = time.perf_counter()

    def __init__(self):
        super().__init__()
        self.file = Path(WARC).open("wb")  # noqa: SIM115 - the process ends with it
        self.writer = WARCWriter(self.file, gzip=True)

    def parse(self, response):
        type(self).pages += 1
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, vs in response.headers.items() for v in vs]
        record = self.writer.create_warc_record(
            response.url,
            "response",
            payload=io.BytesIO(response.body),
            http_headers=StatusAndHeaders(f"{response.status} OK", headers, protocol="HTTP/1.1"),
        )
        self.writer.write_record(record)
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)


process = CrawlerProcess(
    {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 100,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "CLOSESPIDER_PAGECOUNT": PAGES,
        "DNS_RESOLVER": AllAtHome,
        "RETRY_ENABLED": True,
        "COOKIES_ENABLED": False,
    }
)
process.crawl(Spider)
process.start()
print(json.dumps({"pages": Spider.pages, "elapsed_s": time.perf_counter() - Spider.started}))
