"""Scrapy in the race: every link of every page, robots.txt obeyed, every page into a WARC through warcio.

python scrapy_spider.py SEED PAGES WARC
"""

import io
import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

SEED, PAGES, WARC = sys.argv[1], int(sys.argv[2]), sys.argv[3]


class Spider(scrapy.Spider):
    name = "race"
    start_urls = (SEED,)
    links = LinkExtractor()

    def __init__(self):
        super().__init__()
        self.file = Path(WARC).open("wb")  # noqa: SIM115 - the process ends with it
        self.writer = WARCWriter(self.file, gzip=True)

    def parse(self, response):
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
        "COOKIES_ENABLED": False,
    }
)
process.crawl(Spider)
process.start()
