"""What a proxy may say before there is a way through it to a server."""

import asyncio
from base64 import b64encode

import pytest
import trustme
from tests.fetcher.wire.conftest import LOCAL, Client, listening, saying, tls, web

from fyke.core.outcomes import Outcome
from fyke.core.site import SiteSection
from fyke.fetcher.addresses import PROXIED

CONNECTED = b"HTTP/1.1 200 Connection established\r\n"
REFUSED = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x\r\n"
SMALL = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")


def answering(said: bytes, more: bytes = b""):
    """A proxy that answers CONNECT with `said`, then with `more` without end, or carries bytes where there is none."""

    async def serve(reader, writer):
        target = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        writer.write(said)
        while more:
            writer.write(more)
            await writer.drain()
        if not said.startswith(CONNECTED):
            writer.close()
            return
        theirs, ours = await asyncio.open_connection(LOCAL, int(target.rpartition(b":")[2]))
        try:
            await asyncio.gather(carry(reader, ours), carry(theirs, writer))
        finally:
            ours.transport.abort()
            await asyncio.sleep(0)

    return serve


async def carry(source, sink):
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        pass
    sink.close()


async def asked_through(authority, handler, *paths, proxy_tls=None, **limits):
    """The answers of an https server to requests for `paths` in turn, by way of the proxy that `handler` plays."""
    issuer, ca_file = authority
    scheme = "https" if proxy_tls else "http"
    async with (
        web(SMALL, ssl=tls(issuer, "site.test", "http/1.1")) as server,
        listening(handler, ssl=proxy_tls) as port,
        Client(ca_file=ca_file, site=SiteSection(match="*", proxy=f"{scheme}://{LOCAL}:{port}"), **limits) as client,
    ):
        urls = [server.url(path).replace("http:", "https:") for path in paths]
        return [await client.get(url, f"{PROXIED}site.test") for url in urls]


@pytest.mark.parametrize("field_bytes", [0, 60, 200, 8000])
async def test_a_way_is_made_however_much_a_proxy_says_of_it(authority, field_bytes):
    field = b"Via: " + b"x" * field_bytes + b"\r\n" if field_bytes else b""
    for answer in await asked_through(authority, answering(CONNECTED + field + b"\r\n"), "/a", "/b"):
        assert (answer.outcome, answer.status) == (Outcome.OK, 200), answer.detail


@pytest.mark.parametrize(
    ("said", "more"),
    [
        (REFUSED + b"Content-Length: 300\r\n\r\n" + b"x" * 300, b""),
        (REFUSED + b"Content-Length: 99999999999\r\n\r\n", b"x" * 65536),
        (REFUSED + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    ],
    ids=["page", "endless", "chunks"],
)
async def test_a_proxy_that_asks_for_a_login_is_understood(authority, said, more):
    (answer,) = await asked_through(authority, answering(said, more), "/")
    assert answer.outcome is Outcome.CONNECT_FAILED
    assert answer.detail == "the proxy asks for a user name and password"


@pytest.mark.parametrize(
    ("said", "more"),
    [
        (CONNECTED, b"X-A: " + b"a" * 8000 + b"\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        (b"HTTP/1.1 403 No\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65536),
    ],
    ids=["head", "interim", "body"],
)
async def test_an_answer_to_connect_that_does_not_end_is_left(authority, said, more):
    (answer,) = await asked_through(authority, answering(said, more), "/")
    assert answer.outcome in (Outcome.BAD_ANSWER, Outcome.CONNECT_FAILED)
    assert "CONNECT" in answer.detail


@pytest.mark.parametrize("named", [LOCAL, "other.test"])
@pytest.mark.parametrize("verify", [True, False])
async def test_a_proxy_behind_tls_is_trusted_as_servers_are(authority, named, verify):
    """By `fetch.ca_file`, under its own name, and not asked who it is where `verify_tls` is false."""
    issuer, _ = authority
    way, context = answering(CONNECTED + b"\r\n"), tls(issuer, named)
    (answer,) = await asked_through(authority, way, "/", proxy_tls=context, verify_tls=verify)
    assert answer.outcome is (Outcome.OK if named == LOCAL or not verify else Outcome.TLS_FAILED), answer.detail


async def test_a_proxy_behind_tls_that_nobody_vouches_for(authority):
    stranger = tls(trustme.CA(), LOCAL)
    (answer,) = await asked_through(authority, answering(CONNECTED + b"\r\n"), "/", proxy_tls=stranger)
    assert answer.outcome is Outcome.TLS_FAILED


@pytest.mark.parametrize("user", ["me", "jürgen", "me%41"])
@pytest.mark.parametrize("password", ["hüntersecret", "50%25 + 1", "a:b"])
async def test_a_login_reaches_the_proxy_as_it_is_written(monkeypatch, user, password):
    monkeypatch.setenv("PASSWORD", password)
    async with web(SMALL) as proxy:
        login = {"proxy_user": user, "proxy_password": "env:PASSWORD"}
        table = SiteSection(match="*", proxy=f"http://{LOCAL}:{proxy.port}", **login)
        async with Client(site=table) as client:
            answer = await client.get("http://site.test/", f"{PROXIED}site.test")
            assert answer.outcome is Outcome.OK, answer.detail
    assert b64encode(f"{user}:{password}".encode()) in proxy.heads[0]
