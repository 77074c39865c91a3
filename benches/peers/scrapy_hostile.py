"""What Scrapy makes of the same servers: run by the Python that has it, as `scrapy_hostile.py SEED DNS SECONDS`.

As it comes, but for robots.txt, which is obeyed, rests and limits like those that Fyke has beside it, and names, which
it asks of the same name server. Prints a line of JSON: what became of each URL.
"""
# mypy: ignore-errors

import json
import socket
import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

SEED, DNS, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
BECAME = {}


def address_of(name):
    """The first address that the one name server gives for `name`; Scrapy's threads ask for it so."""
    host, _, port = DNS.partition(":")
    asked = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.settimeout(1)
        line.sendto(b"\7\7\1\0\0\1\0\0\0\0\0\0" + asked, (host, int(port)))
        answer = line.recv(4096)
    found = answer.rfind(b"\0\4")
    if answer[6:8] == b"\0\0" or found < 0:
        raise socket.gaierror(f"no address for {name}")
    return socket.inet_ntoa(answer[found + 2 : found + 6])


socket.gethostbyname = address_of


class Spider(scrapy.Spider):
    """Follows every link."""

    name = "hostile"

    async def start(self):
        yield scrapy.Request(SEED, errback=self.failed)

    def parse(self, response):
        BECAME[response.request.url] = f"status {response.status}"
        for link in LinkExtractor().extract_links(response) if hasattr(response, "text") else ():
            yield scrapy.Request(link.url, errback=self.failed)

    def failed(self, failure):
        value = failure.value
        status = getattr(getattr(value, "response", None), "status", None)
        BECAME[failure.request.url] = f"status {status}" if status else type(value).__name__


process = CrawlerProcess(
    {
        "ROBOTSTXT_OBEY": True, "LOG_ENABLED": False, "RETRY_TIMES": 1, "DOWNLOAD_TIMEOUT": 6,
        "CLOSESPIDER_TIMEOUT": SECONDS, "DOWNLOAD_MAXSIZE": 64 << 20, "TELNETCONSOLE_ENABLED": False,
    }
)  # fmt: skip
process.crawl(Spider)
process.start()
print(json.dumps(BECAME))
