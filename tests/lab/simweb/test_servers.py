"""The servers, over real sockets: names, oddities, pipelining, old protocols, speed."""

import asyncio
import io
import os
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import dnslib
import pycurl
import pytest
import uvloop

from fyke.lab.simweb import (
    AuditRule,
    NameShares,
    PageShares,
    RobotsShares,
    Web,
    audit_politeness,
    lively,
    plain,
    running_web,
)
from fyke.lab.simweb.kinds import NameKind, PageKind
from fyke.lab.simweb.old_tree import ftp_targets, gopher_targets


@pytest.fixture(scope="module")
def web():
    pages = PageShares(slow=0.1, stalled=0.1, stalled_midway=0.1, reset=0.1, truncated=0.1, throttled=0.1, pdf=0.1)
    names = NameShares(several=0.15, alias=0.15, slow=0.1, flaky=0.1, servfail=0.1, silent=0.1, missing=0.1)
    spec = lively(pages=900, hosts=80, page_shares=pages, name_shares=names, slow_s=0.05)
    with running_web(spec) as running:
        yield running


def ask(web, name, kind="A", timeout_s=2.0):
    host, port = web.dns.split(":")
    packet = dnslib.DNSRecord.question(name, kind).send(host, int(port), timeout=timeout_s)
    return dnslib.DNSRecord.parse(packet)


def answer_of(record):
    return [str(one.rdata) for one in record.rr if one.rtype == dnslib.QTYPE.A]


def hosts_of(web, kind):
    names = web.layout.names
    return [host for host in range(names.hosts) if names.name_kind(host) is kind]


@pytest.mark.parametrize("kind", [NameKind.PLAIN, NameKind.SEVERAL, NameKind.ALIAS, NameKind.SLOW, NameKind.FLAKY])
def test_names_are_answered(web, kind):
    names = web.layout.names
    for host in hosts_of(web, kind)[:4]:
        record = ask(web, names.name(host).upper())
        if kind is NameKind.FLAKY:
            assert record.header.rcode == dnslib.RCODE.SERVFAIL
            record = ask(web, names.name(host))
        assert answer_of(record) == list(names.addresses(host))
        assert all(one.ttl == web.spec.dns_ttl_s for one in record.rr)
        assert len(record.rr) == (1 if kind in (NameKind.PLAIN, NameKind.SLOW, NameKind.FLAKY) else 2)
        sixes = ask(web, names.name(host), "AAAA")
        assert sixes.header.rcode == 0 and not answer_of(sixes) and sixes.auth


def test_names_that_fail(web):
    names = web.layout.names
    assert ask(web, names.name(hosts_of(web, NameKind.SERVFAIL)[0])).header.rcode == dnslib.RCODE.SERVFAIL
    for name in (names.name(hosts_of(web, NameKind.MISSING)[0]), "h0.d99.sim", "example.com", "sim"):
        record = ask(web, name)
        assert record.header.rcode == dnslib.RCODE.NXDOMAIN and record.auth[0].rtype == dnslib.QTYPE.SOA
    with pytest.raises(TimeoutError):
        ask(web, names.name(hosts_of(web, NameKind.SILENT)[0]), timeout_s=0.05)
    asked = web.queries()["name"].to_pylist()
    assert asked.count("example.com") == 1


def exchange(web, address, *requests, until=None, timeout_s=0.3):
    """Send all requests at once; everything that comes back until the end, `until` bytes, or silence."""
    with socket.create_connection((address, web.ports.http), timeout_s) as sock:
        sock.sendall(b"".join(requests))
        data = b""
        while until is None or data.count(until) < len(requests):
            try:
                piece = sock.recv(1 << 16)
            except TimeoutError:
                return data, "silence"
            except ConnectionResetError:
                return data, "reset"
            if not piece:
                return data, "end"
            data += piece
        return data, "whole"


def request(web, resource, *headers):
    name = web.layout.names.name(resource.host)
    lines = [
        f"GET {web.layout.target(resource)} HTTP/1.1",
        f"Host: {name}:{web.ports.http}",
        "User-Agent: fyke",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def pages_of(web, kind):
    layout = web.layout
    found = [layout.page(page) for page in range(web.spec.pages) if layout.kind(page) is kind]
    assert found, kind
    return found


def last_row(web):
    return web.ledger().to_pylist()[-1]


@pytest.mark.parametrize(
    ("kind", "ending", "sent"),
    [
        (PageKind.STALLED, "silence", False),
        (PageKind.STALLED_MIDWAY, "silence", True),
        (PageKind.RESET, "reset", False),
        (PageKind.TRUNCATED, "end", True),
    ],
)
def test_bad_manners(web, kind, ending, sent):
    at = ((page, web.layout.names.addresses(page.host)[0]) for page in pages_of(web, kind))
    resource, address = next(found for found in at if found[1] != "127.254.254.254")  # where nobody listens
    data, how = exchange(web, address, request(web, resource))
    assert how == ending and bool(data) == sent
    if sent:
        head, _, body = data.partition(b"\r\n\r\n")
        declared = int(re.search(rb"Content-Length: (\d+)", head)[1])
        assert 0 < len(body) < declared
        assert b"/begun/" in body
    row = last_row(web)
    assert row["path"] == web.layout.target(resource) and row["status"] == (200 if sent else 0)
    assert row["size_bytes"] == len(data) and row["ended"] >= row["arrived"]


def test_slow_page_takes_its_time_and_throttled_one_says_when(web):
    slow = pages_of(web, PageKind.SLOW)[0]
    names = web.layout.names
    data, how = exchange(web, names.addresses(slow.host)[0], request(web, slow), until=b"</html>\n", timeout_s=0.4)
    assert data.startswith(b"HTTP/1.1 200") and how in ("whole", "silence")
    row = last_row(web)
    assert row["ended"] - row["arrived"] >= 0.04
    throttled = pages_of(web, PageKind.THROTTLED)[0]
    ask_it = (web, names.addresses(throttled.host)[0], request(web, throttled, "Connection: close"))
    assert b" 429 " in exchange(*ask_it)[0] and last_row(web)["retry_after_s"] == 1.0
    assert b"HTTP/1.1 200" in exchange(*ask_it)[0] and last_row(web)["retry_after_s"] == 0.0


def test_pipelined_and_cut_requests_are_answered_in_order():
    spec = plain(pages=100, hosts=2)
    with running_web(spec) as web:
        layout = web.layout
        pages = [layout.page(page) for page in range(40) if layout.names.host_of(page) == 0][:20]
        requests = [request(web, page) for page in pages]
        address = layout.names.addresses(0)[0]
        data, how = exchange(web, address, *requests, until=b"</html>\n")
        assert how == "whole"
        titles = [int(number) for number in re.findall(rb"<title>[^<]*page (\d+) of", data)]
        assert titles == [page.number for page in pages]
        with socket.create_connection((address, web.ports.http), 2) as sock:
            for byte in requests[3]:
                sock.sendall(bytes([byte]))
            assert sock.recv(100).startswith(b"HTTP/1.1 200 OK")
        table = web.ledger()
        assert len(table) == 21 and set(table["client_port"].to_pylist()[:20]) != {0}
        wrong = request(web, pages[0]).replace(b"h0.d0", b"h9.d0")
        assert exchange(web, address, wrong, b"")[0].startswith(b"HTTP/1.1 421")
        assert exchange(web, address, b"nonsense\r\n\r\n")[0].startswith(b"HTTP/1.1 400")
        assert exchange(web, address, b"POST / HTTP/1.1\r\n\r\n")[0].startswith(b"HTTP/1.1 405")


def curl(url, resolve=(), **options):
    handle, body = pycurl.Curl(), io.BytesIO()
    handle.setopt(pycurl.URL, url)
    handle.setopt(pycurl.WRITEDATA, body)
    handle.setopt(pycurl.RESOLVE, list(resolve))
    handle.setopt(pycurl.TIMEOUT, 5)
    for name, value in options.items():
        handle.setopt(getattr(pycurl, name), value)
    handle.perform()
    handle.close()
    return body.getvalue()


def test_gopher_and_ftp_by_curl(web):
    address = answer_of(ask(web, "gopher.d0.sim"))[0]
    for target in gopher_targets():
        url = f"gopher://gopher.d0.sim:{web.ports.gopher}{target}"
        body = curl(url, [f"gopher.d0.sim:{web.ports.gopher}:{address}"])
        assert body.endswith(b".\r\n") and not body.startswith(b"3")
    resolve = [f"ftp.d0.sim:{web.ports.ftp}:{address}"]
    for target in ftp_targets():
        body = curl(f"ftp://ftp.d0.sim:{web.ports.ftp}{target}", resolve)
        assert body
    root = f"ftp://ftp.d0.sim:{web.ports.ftp}/"
    assert curl(root + "pub/", resolve, DIRLISTONLY=True).split() == [b"index.html", b"notes.txt", b"old"]
    assert curl(root + "pub/notes.txt", resolve, FTP_USE_EPSV=False, OPT_FILETIME=True) == b"Notes on nets.\n"
    with pytest.raises(pycurl.error):
        curl(root + "pub/missing", resolve)
    rows = [row for row in web.ledger().to_pylist() if row["scheme"] in ("gopher", "ftp")]
    assert [row["status"] for row in rows if row["scheme"] == "gopher"] == [200] * len(gopher_targets())
    assert [row["path"] for row in rows if row["scheme"] == "ftp"][: len(ftp_targets())] == ftp_targets()


def test_https_with_an_authority_of_its_own(tmp_path):
    spec = plain(pages=50, hosts=3, https=True)
    with running_web(spec) as web:
        seed = web.seeds[0]
        assert seed.startswith("https://")
        pem = tmp_path / "authority.pem"
        pem.write_bytes(web.authority_pem)
        resolve = [f"h0.d0.sim:{web.ports.http}:{web.layout.names.addresses(0)[0]}"]
        assert b"</html>" in curl(seed, resolve, CAINFO=str(pem))
        assert web.ledger()["scheme"].to_pylist() == ["https"]


def test_in_the_running_loop_with_a_port_on_all_addresses():
    async def visit():
        async with Web(plain(pages=200, hosts=40, addresses=9)) as web:
            for address in web.layout.names.all_addresses():
                reader, writer = await asyncio.open_connection(address, web.ports.http)
                writer.write(b"GET / HTTP/1.1\r\nHost: nobody\r\nConnection: close\r\n\r\n")
                assert (await reader.read()).startswith(b"HTTP/1.1 421")
                writer.close()
                await writer.wait_closed()
            return web.ledger.requests()

    table = uvloop.run(visit())
    assert len(set(table["server"].to_pylist())) == 9


def test_crawl_delays_feed_the_audit():
    spec = lively(pages=400, hosts=60, robots_shares=RobotsShares(delay=1.0))
    with running_web(spec) as web:
        delays = web.crawl_delays()
        host = web.layout.names.find(next(iter(delays)))
        name, address = web.layout.names.name(host), web.layout.names.addresses(host)[0]
        ask_robots = f"GET /robots.txt HTTP/1.1\r\nHost: {name}\r\n\r\n".encode()
        data, _ = exchange(web, address, ask_robots, ask_robots, until=b"Crawl-delay: 0.5")
        assert data.count(b"200 OK") == 2
        found = audit_politeness(web.ledger(), 0.0, crawl_delays=delays)
        assert [(one.rule, one.place) for one in found] == [(AuditRule.CRAWL_DELAY, name)]
        assert "fyke crawl" in web.welcome() and web.dns in web.welcome()


def test_pages_by_the_thousand():
    """A floor far below what a quiet core serves, so that only a mistake goes under it."""
    spec = plain(pages=100_000, hosts=8, addresses=1, links_per_page=60, mean_page_bytes=21_000)
    with running_web(spec) as web:
        layout, count = web.layout, 400

        def pull(worker):
            pages = [layout.page(worker * count + number) for number in range(count)]
            address = layout.names.addresses(pages[0].host)[0]
            requests = [request(web, page) for page in pages]
            data, how = exchange(web, address, *requests, until=b"</html>\n", timeout_s=5)
            assert how == "whole"
            return len(data)

        start = time.perf_counter()
        with ThreadPoolExecutor(3) as pool:
            sizes = list(pool.map(pull, range(3)))
        rate = 3 * count / (time.perf_counter() - start)
        assert sum(sizes) > 3 * count * 15_000
        assert rate > 300
        assert web.statistics().requests == 3 * count


def test_weather_passes():
    """Trouble with all servers and names for as long as it is asked for; each request that was read has its row."""
    with running_web(plain(pages=20, hosts=4)) as web:
        layout = web.layout
        page, name = layout.page(0), layout.names.name(0)
        address = layout.names.addresses(0)[0]
        whole = exchange(web, address, request(web, page))
        web.change_weather(server="reset", names="servfail")
        assert exchange(web, address, request(web, page)) != whole
        assert ask(web, name).header.rcode == dnslib.RCODE.SERVFAIL
        web.change_weather(server="stall", names="silent")
        assert exchange(web, address, request(web, page)) != whole
        with pytest.raises(TimeoutError):
            ask(web, name, timeout_s=0.3)
        web.change_weather(server="refuse", names="malformed")
        with suppress(OSError):  # it may be reset before the request is sent
            assert exchange(web, address, request(web, page)) != whole
        with pytest.raises(dnslib.DNSError):
            ask(web, name)
        web.change_weather()
        assert exchange(web, address, request(web, page)) == whole
        assert answer_of(ask(web, name)) == [address]
        assert sorted(web.ledger()["status"].to_pylist()) == [0, 0, 200, 200]


def test_a_web_says_when_it_did_not_get_to_run():
    with running_web(plain(pages=20, hosts=4)) as web:
        web.stalls()
        os.kill(web.pid, signal.SIGSTOP)
        stopped_at = time.time()
        time.sleep(0.3)
        went_on_at = time.time()
        os.kill(web.pid, signal.SIGCONT)
        assert any(begun <= stopped_at + 0.1 and went_on_at <= until for begun, until in web.stalls())
