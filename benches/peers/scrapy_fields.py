"""Scrapy beside `fyke extract`: the fields of product pages into a database, through ADBC, a thousand rows at a time.

python scrapy_fields.py SEED CACHE ADDRESS SELECTOR: with its HTTP cache in the folder CACHE, as its documents advise
for changing selectors, so that a second run fetches nothing.
"""

import json
import sys

import adbc_driver_postgresql.dbapi
import pyarrow as pa
import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

SEED, CACHE, ADDRESS, SELECTOR = sys.argv[1:5]
SCHEMA = pa.schema(
    [("url", pa.string()), ("name", pa.string()), ("price", pa.float64()), ("tags", pa.list_(pa.string()))]
)


class Spider(scrapy.Spider):
    name = "fields"
    start_urls = (SEED,)
    links = LinkExtractor()

    def parse(self, response):
        if "/product/" in response.url:
            data = json.loads(response.css("script[type='application/ld+json']::text").get())
            yield {
                "url": response.url,
                "name": (response.css(f"{SELECTOR}::text").get() or "").strip(),
                "price": float(data["offers"]["price"]),
                "tags": response.css(".tag::text").getall(),
            }
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)


class Rows:
    """The item pipeline."""

    def open_spider(self):
        self.connection = adbc_driver_postgresql.dbapi.connect(ADDRESS)
        self.cursor = self.connection.cursor()
        self.cursor.adbc_ingest("scrapy_products", SCHEMA.empty_table(), mode="replace")
        self.rows = []

    def process_item(self, item):
        self.rows.append(item)
        if len(self.rows) >= 1000:
            self.flush()
        return item

    def flush(self):
        self.cursor.adbc_ingest("scrapy_products", pa.RecordBatch.from_pylist(self.rows, SCHEMA), mode="append")
        self.rows = []

    def close_spider(self):
        self.flush()
        self.connection.commit()
        self.cursor.close()
        self.connection.close()


process = CrawlerProcess(
    {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 100,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": CACHE,
        "ITEM_PIPELINES": {Rows: 100},
    }
)
process.crawl(Spider)
process.start()
