"""A host with several addresses is asked at another one if nobody answers at the first, also after a kill."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dnslib import AAAA, RCODE, RR, A, DNSRecord
from dnslib.server import DNSHandler, DNSServer

from crawl.raw_answers import raw_server
from crawl.runs import archived, begin, crawl, settings
from crawl.small_site import small_site
from fyke.archive.reading import read_table

DEAD, DEAD_TOO, ALIVE, LAST = (f"127.0.16.{number}" for number in range(41, 45))
SIX = "::1"
PAGES = 12
NO_RULES = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"


@contextmanager
def names(addresses: list[str]) -> Iterator[str]:
    """A name server that has these addresses for every name, believed for a second; where it listens."""

    class Zone:
        def resolve(self, request: DNSRecord, handler: DNSHandler) -> DNSRecord:
            reply = request.reply()
            reply.header.rcode = RCODE.NOERROR
            for address in addresses:
                if ":" in address and request.q.qtype == 28:
                    reply.add_answer(RR(request.q.qname, 28, rdata=AAAA(address), ttl=1))
                elif ":" not in address and request.q.qtype == 1:
                    reply.add_answer(RR(request.q.qname, rdata=A(address), ttl=1))
            return reply

    server = DNSServer(Zone(), address="127.0.0.1", port=0)
    server.start_thread()
    try:
        yield "{}:{}".format(*server.server.server_address)
    finally:
        server.stop()
        server.server.server_close()


@pytest.mark.parametrize(
    ("first", "alive"), [([DEAD], ALIVE), ([DEAD, DEAD_TOO], ALIVE), ([DEAD], SIX), ([DEAD, DEAD_TOO], SIX)]
)
def test_every_address_is_tried(tmp_path: Path, first: list[str], alive: str) -> None:
    """Also those of version 6, which are asked for last."""

    def answer(host: str, path: str) -> bytes:
        body = "".join(f"<a href=/{number}>{number}</a>" for number in range(PAGES) if path == "/").encode()
        return NO_RULES if path == "/robots.txt" else PAGE % (len(body), body)

    with raw_server([alive], answer) as server, names([*first, alive, LAST]) as names_at:
        port = server.seeds[0].rpartition(":")[2].strip("/")
        seed, into = f"http://a.example:{port}/", tmp_path / "crawl"
        rests = {"host_delay_s": 0.2, "min_host_delay_s": 0.2, "failure_delay_s": 0.2, "host_failures": 4}
        config = settings(tmp_path, politeness=rests, dns={"servers": [names_at], "private": ["example"]})
        with begin(into, config, seed) as killed:
            server.wait_until_asked(4)
            killed.kill()
        run = crawl(into, config, seed)
        assert run.summary["ending"] == "finished", run.errors
    table = read_table(into, "pages", ["url", "outcome", "address"]).to_pydict()
    assert sorted(table["url"]) == sorted([seed, *(f"{seed}{number}" for number in range(PAGES))])
    assert set(table["outcome"]) == {"ok"} and set(table["address"]) == {alive}


def test_localhost_is_whichever_address_a_server_listens_at(tmp_path: Path) -> None:
    with small_site(pages=4, host=SIX) as site:
        url = site.url.replace(f"[{SIX}]", "localhost")
        run = crawl(tmp_path / "crawl", settings(tmp_path, politeness={"failure_delay_s": 0.2}), url)
        assert run.summary["ending"] == "finished" and len(archived(tmp_path / "crawl")) == 4, run.errors
