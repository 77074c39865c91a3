"""What each protocol's answers mean, and who is asked: http, https, plug-ins."""

import asyncio
import struct
from collections import Counter
from contextlib import suppress

import pytest
from tests.fetcher.wire.conftest import LOCAL, Client, listening, saying, tls, visit_to, web

from fyke.core.outcomes import Outcome
from fyke.core.urls import canonical, robots_url, split
from fyke.core.visits import Earlier, Exchange
from fyke.fetcher.wire.http import condition_of

# http


@pytest.mark.parametrize(
    ("status", "fields", "outcome"),
    [
        (200, b"", Outcome.OK),
        (206, b"", Outcome.OK),
        (301, b"Location: /x\r\n", Outcome.REDIRECTED),
        (307, b"location: /x\r\n", Outcome.REDIRECTED),
        (300, b"", Outcome.OK),
        (302, b"", Outcome.OK),
        (401, b"", Outcome.CLIENT_ERROR),
        (404, b"", Outcome.CLIENT_ERROR),
        (429, b"", Outcome.THROTTLED),
        (500, b"", Outcome.SERVER_ERROR),
        (503, b"", Outcome.THROTTLED),
        (599, b"", Outcome.SERVER_ERROR),
        (999, b"", Outcome.SERVER_ERROR),
    ],
)
async def test_status_means(status, fields, outcome):
    head = b"HTTP/1.1 %d Word\r\n%sContent-Length: 2\r\n\r\nhi" % (status, fields)
    async with web(saying(head)) as server, Client() as client:
        answer = await client.get(server.url())
        assert (answer.outcome, answer.status, answer.body.read()) == (outcome, status, b"hi")
        assert server.heads == [answer.request]  # nothing was followed


BODY_FAULTS = {
    "ends early": (b"Content-Length: 9\r\n\r\nhi", "close", Outcome.BROKEN_OFF),
    "is reset": (b"Content-Length: 9\r\n\r\nhi", "abort", Outcome.BROKEN_OFF),
    "stalls": (b"Content-Length: 9\r\n\r\nhi", "wait", Outcome.STALLED),
    "takes too long": (b"Content-Length: 9\r\n\r\n", "wait", Outcome.TIMED_OUT),
    "has a bad chunk": (b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhi", "close", Outcome.BAD_ANSWER),
    "is too large": (b"Connection: close\r\n\r\n" + b"x" * 5000, "close", Outcome.TOO_LARGE),
}


@pytest.mark.parametrize("fault", BODY_FAULTS)
async def test_whose_head_says_all_needs_no_body(fault):
    """A server that asks for patience is left in peace, and a redirect leads on, whatever becomes of their bodies."""
    rest, end, otherwise = BODY_FAULTS[fault]
    heads = {
        b"/429": (b"429 Much\r\nRetry-After: 20", Outcome.THROTTLED),
        b"/503": (b"503 Busy\r\nRetry-After: 20", Outcome.THROTTLED),
        b"/302": (b"302 Found\r\nLocation: /x", Outcome.REDIRECTED),
        b"/300": (b"300 Choices", otherwise),
        b"/200": (b"200 OK\r\nLocation: /x\r\nRetry-After: 20", otherwise),
        b"/404": (b"404 None", otherwise),
        b"/500": (b"500 Error", otherwise),
    }

    async def script(head, _reader, writer):
        writer.write(b"HTTP/1.1 %s\r\n%s" % (heads[head.split()[1]][0], rest))
        await writer.drain()
        await asyncio.sleep(60 if end == "wait" else 0.05)
        writer.transport.abort() if end == "abort" else writer.close()

    limits = {"max_body_bytes": 1000} | ({"stall_s": 1} if fault == "stalls" else {"timeout_s": 0.5})
    async with web(script) as server, Client(**limits) as client:
        answers = await client.get_all([server.url(path.decode()) for path in heads])
        for (said, outcome), answer in zip(heads.values(), answers, strict=True):
            assert (answer.outcome, answer.status) == (outcome, int(said[:3])), answer.detail
            assert answer.detail, "it says what became of the body"
            assert not answer.body.size or answer.truncated


@pytest.mark.parametrize("fields", [b"", b"Transfer-Encoding: gzip\r\n"])
@pytest.mark.parametrize("closes", [True, False])
async def test_who_gives_no_length_must_close_the_connection(fields, closes):
    """If the last transfer coding is not chunked, the connection's end is the body's (RFC 9112, 6.3)."""
    script = saying(b"HTTP/1.1 200 OK\r\n", fields, b"\r\nhi", close=closes)
    async with web(script) as server, Client(stall_s=1) as client:
        answer = await client.get(server.url("/"))
        kept_open = "gives no length, and the server kept the connection open" in answer.detail
        assert (answer.outcome, kept_open) == ((Outcome.OK, False) if closes else (Outcome.STALLED, True)), (
            answer.detail
        )
        assert answer.body.read() == b"hi"


async def test_of_all_3xx_those_lead_on_that_may():
    """RFC 9110, 15.4: a 300 may be followed, and an unknown 3xx is like it. A 305 would name a proxy for us, and 306
    means nothing. A 304 says that nothing moved."""

    async def script(head, _reader, writer):
        _, status, located = head.split()[1].split(b"/")
        fields = b"Location: /elsewhere\r\n" * (located == b"located")
        writer.write(b"HTTP/1.1 %s Word\r\n%sContent-Length: 0\r\n\r\n" % (status, fields))

    async with web(script) as server, Client() as client:
        for located, means in (("located", Outcome.REDIRECTED), ("bare", Outcome.OK)):
            answers = await client.get_all([server.url(f"/{status}/{located}") for status in range(300, 400)])
            for status, answer in zip(range(300, 400), answers, strict=True):
                never = status in (304, 305, 306)
                assert (answer.status, answer.outcome) == (status, Outcome.BAD_ANSWER if never else means)
                assert (str(status) in answer.detail) is never, "it says why"
        assert len(server.heads) == 200


async def test_a_304_that_nobody_asked_for_is_no_page():
    """Else it would stand for the page from then on, without a word of it."""
    async with web(saying(b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n')) as server, Client() as client:
        answer = await client.get(server.url())
        assert (answer.outcome, answer.status) == (Outcome.BAD_ANSWER, 304)
        assert answer.detail == "status 304 is not an answer to this request"


@pytest.mark.parametrize("tag", ["*", '*, "a"', '"a"\x01', "é", ""])
def test_a_condition_holds_for_our_copy_alone(tag):
    """`If-None-Match: *` holds for any page (RFC 9110, 13.1.2), so that no change would ever be seen."""
    visit = visit_to("http://there.test/")
    fields = {"ETag": tag, "Last-Modified": "Mon, 02 Nov 2026 10:00:00 GMT"}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode("latin-1")
    visit.earlier = Earlier(head=b"HTTP/1.1 200 OK\r\n" + head + b"\r\n", original=("", "", ""))
    assert condition_of(visit) == "If-Modified-Since: Mon, 02 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("fields", "outcome", "detail"),
    [
        (b"Content-Range: bytes 0-1/9", Outcome.BAD_ANSWER, "a part that was not requested: bytes 0-1/9"),
        (b"Content-Range: bytes 7-8/9", Outcome.BAD_ANSWER, "a part that was not requested: bytes 7-8/9"),
        (b"Content-Range: bytes 0-1/*", Outcome.BAD_ANSWER, "a part that was not requested: bytes 0-1/*"),
        (b"Content-Range: bytes 0-1/2", Outcome.OK, ""),
        (b"content-type: multipart/byteranges; boundary=x", Outcome.BAD_ANSWER, "several in one body"),
    ],
)
async def test_a_part_that_nobody_asked_for_is_no_page(fields, outcome, detail):
    """Else it would stand for the page, or for rules of which others are missing."""
    head = b"HTTP/1.1 206 Partial Content\r\n%s\r\nContent-Length: 2\r\n\r\nhi" % fields
    async with web(saying(head)) as server, Client() as client:
        answer = await client.get(server.url())
        assert (answer.outcome, answer.status) == (outcome, 206)
        assert answer.detail.endswith(detail)


@pytest.mark.parametrize("status", [421, 408])
async def test_who_is_asked_on_a_wrong_connection_is_asked_once_more_on_another(status):
    """On a new one the same status is an answer (RFC 9110, 15.5.20). A server says 408 on a connection that waited, and
    ends it; if that crosses our request, it looks like the answer (15.5.9). What a crawl does with `kept_broke`, rests
    first, is tried in `test_curl`."""
    asked = []

    async def serve(head, _reader, writer):
        path = head.split()[1]
        kept = any(one is writer for one, _ in asked)
        asked.append((writer, path))
        wrong = path == b"/never" or (path == b"/wrong" and kept)
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nhi" % (b"%d Word" % status if wrong else b"200 OK"))

    async with web(serve) as server, Client() as client:
        assert (await client.get(server.url("/right"))).outcome is Outcome.OK
        wrong = await client.get(server.url("/wrong"))
        assert (wrong.outcome, wrong.kept_broke, wrong.status) == (Outcome.BROKEN_OFF, True, status)
        assert (await client.get(server.url("/wrong"))).outcome is Outcome.OK
        never = await client.get(server.url("/never"))
        assert never.outcome is Outcome.BROKEN_OFF and never.kept_broke
        never = await client.get(server.url("/never"))
        assert (never.outcome, never.kept_broke, never.status) == (Outcome.CLIENT_ERROR, False, status)
        assert (await client.get(server.url("/right"))).outcome is Outcome.OK
    writers = [writer for writer, _ in asked]
    assert [path for _, path in asked] == [b"/right", b"/wrong", b"/wrong", b"/never", b"/never", b"/right"]
    assert writers[0] is writers[1] and writers[2] not in writers[:2] and writers[4] not in writers[:4]


async def test_a_status_of_another_kind_may_name_a_range():
    """It means nothing there (RFC 9110, 14.4)."""
    head = b"HTTP/1.1 200 OK\r\nContent-Range: bytes 7-8/9\r\nContent-Length: 2\r\n\r\nhi"
    async with web(saying(head)) as server, Client() as client:
        assert (await client.get(server.url())).outcome is Outcome.OK


@pytest.mark.parametrize("length", [b"abc", b"-1", b"", b"5x", b"0x2", b"3\r\nContent-Length: 4"])
async def test_a_length_that_is_none_is_passed_over(length):
    """At the second visit to it; others are still held to their length."""

    async def odd(head, _reader, writer):
        said = b"3" if b"/short" in head else length
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\nhi" % said)
        writer.close()

    async with web(odd) as server, Client() as client:
        first = await client.get(server.url())
        assert first.outcome is Outcome.BROKEN_OFF and "Content-Length" in first.detail
        again = await client.get(server.url())
        assert (again.outcome, again.body.read()) == (Outcome.OK, b"hi"), again.detail
        assert (await client.get(server.url("/short"))).outcome is Outcome.BROKEN_OFF
        assert (await client.get(server.url("/other"))).outcome is Outcome.BROKEN_OFF


async def test_user_agent_says_who_we_are():
    async with web(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as server, Client() as client:
        answer = await client.get(server.url())
        assert b"\r\nUser-Agent: fyke-test/" in answer.request
        assert b" (+https://example.org/bot)\r\n" in answer.request
        assert b"\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n" in answer.request


# https


@pytest.mark.parametrize("code", [7, 13], ids=["REFUSED_STREAM", "HTTP_1_1_REQUIRED"])
async def test_who_will_not_do_it_in_http_2_is_asked_in_http_1(authority, code):
    """libcurl would ask anew at once; our second request, after the host's rest, is in HTTP/1.1."""
    issuer, ca_file = authority
    spoken = []

    async def serve(reader, writer):
        protocol = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        if protocol == "h2":
            await reader.readexactly(24)  # the client's preface
            writer.write(bytes.fromhex("000000040000000000"))  # no settings of ours
            kind = 0
            while kind != 1:  # the frame that asks
                length, kind, _, stream = struct.unpack(">3sBB4s", await reader.readexactly(9))
                await reader.readexactly(int.from_bytes(length))
            spoken.append(protocol)
            writer.write(struct.pack(">3sBB4sI", (4).to_bytes(3), 3, 0, stream, code))
            await reader.read()
        else:
            with suppress(asyncio.IncompleteReadError):  # libcurl has connected, and is not let go on
                await reader.readuntil(b"\r\n\r\n")
                spoken.append(protocol)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    async with (
        listening(serve, ssl=tls(issuer, "site.test", "h2", "http/1.1")) as port,
        Client(ca_file=ca_file) as client,
    ):
        url = f"https://site.test:{port}/"
        assert (await client.get(url)).outcome is Outcome.BROKEN_OFF
        assert spoken == ["h2"], "it asked anew by itself"
        answer = await client.get(url)
        assert (answer.outcome, answer.effective_protocol) == (Outcome.OK, "http/1.1"), answer.detail
        assert spoken == ["h2", "http/1.1"]


async def test_a_kept_connection_in_http_2_is_used_again(authority):
    issuer, ca_file = authority
    connections = []

    async def serve(reader, writer):
        connections.append(writer)
        await reader.readexactly(24)
        writer.write(bytes.fromhex("000000040000000000"))
        with suppress(asyncio.IncompleteReadError):
            while True:
                length, kind, _, stream = struct.unpack(">3sBB4s", await reader.readexactly(9))
                await reader.readexactly(int.from_bytes(length))
                if kind == 1:
                    writer.write(struct.pack(">3sBB4sB", (1).to_bytes(3), 1, 4, stream, 0x88))  # :status 200
                    writer.write(struct.pack(">3sBB4s2s", (2).to_bytes(3), 0, 1, stream, b"hi"))
        writer.close()

    async with listening(serve, ssl=tls(issuer, "site.test", "h2")) as port, Client(ca_file=ca_file) as client:
        for number in range(3):
            answer = await client.get(f"https://site.test:{port}/{number}")
            assert (answer.outcome, answer.body.read()) == (Outcome.OK, b"hi"), answer.detail
    assert len(connections) == 1


@pytest.mark.parametrize("said", [b"", bytes.fromhex("000000040000000000")], ids=["closes", "frames"])
async def test_who_speaks_http_2_alone_is_asked_in_it_again(authority, said):
    """One break is followed by one try in HTTP/1.1, which fails; the try after that brings the page."""
    issuer, ca_file = authority
    spoken = []

    async def serve(reader, writer):
        if writer.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            spoken.append("http/1.1")
            writer.write(said)
            writer.close()
            return
        await reader.readexactly(24)
        writer.write(bytes.fromhex("000000040000000000"))
        kind = 0
        while kind != 1:
            length, kind, _, stream = struct.unpack(">3sBB4s", await reader.readexactly(9))
            await reader.readexactly(int.from_bytes(length))
        if not spoken:
            writer.write(struct.pack(">3sBB4sI", (4).to_bytes(3), 3, 0, stream, 7))  # REFUSED_STREAM
        else:
            writer.write(struct.pack(">3sBB4sB", (1).to_bytes(3), 1, 4, stream, 0x88))  # :status 200
            writer.write(struct.pack(">3sBB4s2s", (2).to_bytes(3), 0, 1, stream, b"hi"))
        spoken.append("h2")
        await reader.read()
        writer.close()

    async with listening(serve, ssl=tls(issuer, "site.test", "h2")) as port, Client(ca_file=ca_file) as client:
        url = f"https://site.test:{port}/"
        for _ in range(2):
            failed = await client.get(url)
            assert failed.outcome is Outcome.BROKEN_OFF, failed.detail
        answer = await client.get(url)
        assert (answer.outcome, answer.effective_protocol, answer.body.read()) == (Outcome.OK, "h2", b"hi"), (
            answer.detail
        )
        assert spoken == ["h2", "http/1.1", "h2"]


async def test_a_page_in_small_pieces_comes_whole(authority):
    """They come as fast as they can: what is no answer at all is told from them by what it brings."""
    issuer, ca_file = authority
    pieces = [b"1\r\nx\r\n"] * 5000
    script = saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *pieces, b"0\r\n\r\n")
    async with web(script, ssl=tls(issuer, "site.test", "http/1.1")) as server, Client(ca_file=ca_file) as client:
        for path in ("/a", "/b"):
            answer = await client.get(server.url(path).replace("http:", "https:"))
            assert answer.outcome is Outcome.OK, answer.detail
            assert answer.body.size == 6 * len(pieces) + 5


async def test_a_head_in_small_pieces_comes_whole(authority):
    """Each line in a TLS record of its own, and all at once: a server that writes its head line by line."""
    issuer, ca_file = authority
    lines = [b"HTTP/1.1 200 OK\r\n", *(b"X-%d: y\r\n" % n for n in range(400)), b"Content-Length: 2\r\n", b"\r\n"]

    async def serve(_head, _reader, writer):
        for line in lines:
            writer.write(line)
        writer.write(b"hi")

    async with web(serve, ssl=tls(issuer, "site.test", "http/1.1")) as server, Client(ca_file=ca_file) as client:
        answer = await client.get(server.url("/a").replace("http:", "https:"))
        assert answer.outcome is Outcome.OK, answer.detail
        assert answer.head == b"".join(lines)


async def test_frames_that_bring_nothing_are_not_read_for_ever(authority):
    """However fast they come: each megabyte of them takes the loop milliseconds."""
    issuer, ca_file = authority
    sent = 0

    async def serve(reader, writer):
        nonlocal sent
        await reader.readexactly(24)  # the client's preface
        writer.write(bytes.fromhex("000000040000000000"))
        await reader.read(1 << 16)
        updates = bytes.fromhex("00000408000000000000000001") * 10_000  # the window of the connection, one byte larger
        with suppress(ConnectionError):
            while True:
                writer.write(updates)
                await writer.drain()
                sent += len(updates)

    async with listening(serve, ssl=tls(issuer, "site.test", "h2")) as port, Client(ca_file=ca_file) as client:
        answer = await client.get(f"https://site.test:{port}/")
        assert answer.outcome is Outcome.BAD_ANSWER, answer.detail
        assert 1 << 19 < sent < 64 << 20


async def test_https_is_verified(authority):
    issuer, ca_file = authority
    small = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    async with web(small, ssl=tls(issuer, "site.test", "http/1.1")) as server:
        url = server.url("/a").replace("http:", "https:")
        other = server.url("/a", "other.test").replace("http:", "https:")
        async with Client(ca_file=ca_file) as client:
            answer = await client.get(url)
            assert (answer.outcome, answer.effective_protocol) == (Outcome.OK, "http/1.1")
            assert server.heads == [answer.request]
            assert (await client.get(other)).outcome is Outcome.TLS_FAILED
        async with Client() as client:  # the system's certificates do not have our authority
            answer = await client.get(url)
            assert answer.outcome is Outcome.TLS_FAILED
            assert "certificate" in answer.detail
        async with Client(verify_tls=False) as client:
            assert (await client.get(other)).outcome is Outcome.OK


@pytest.mark.parametrize("kept", [40, 10])
def test_a_host_is_greeted_once_and_its_session_taken_up_when_the_connection_is_gone(run, authority, kept):
    """Many hosts in turn: each makes one whole handshake, however often it is visited; where its connection was given
    up for those of others, the next takes the session up."""
    issuer, ca_file = authority
    hosts, rounds = 40, 3
    greetings = Counter()
    greeted = set()

    async def serve(_head, _reader, writer):
        if writer not in greeted:
            greeted.add(writer)
            greetings[writer.get_extra_info("ssl_object").session_reused] += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    async def main():
        async with web(serve, ssl=tls(issuer, "*.site.test", "http/1.1")) as server:
            urls = [server.url("/", f"h{n}.site.test").replace("http:", "https:") for n in range(hosts)]
            async with Client(ca_file=ca_file, kept=kept) as client:
                for url in urls * rounds:
                    assert (await client.get(url)).outcome is Outcome.OK

    run(main())
    again = hosts * (rounds - 1) if kept < hosts else 0
    assert greetings == {False: hosts, True: again} if again else {False: hosts}


@pytest.mark.parametrize("hosts", [3, 30])
async def test_few_connections_are_kept_to_an_address_however_many_hosts_it_has(hosts):
    most, now_open = 3, set()

    async def serve(_head, _reader, writer):
        now_open.add(writer)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    async with web(serve) as server, web(serve) as other, Client(kept=100, of_address=most) as client:
        for _ in range(3):
            for number in range(hosts):
                for at in (server, other):
                    assert (await client.get(at.url("/", f"h{number}.test"))).outcome is Outcome.OK
        while sum(not writer.is_closing() for writer in now_open) > 2 * most:
            await asyncio.sleep(0.01)  # the server hears of what was closed
        answers = await client.get_all([server.url("/", f"h{number}.test") for number in range(hosts)])
        assert {answer.outcome for answer in answers} == {Outcome.OK}
        assert server.connections == hosts or hosts > most


async def test_tls_with_a_server_that_has_none():
    async def plain(reader, writer):
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(plain) as port, Client() as client:
        answer = await client.get(f"https://site.test:{port}/")
        assert answer.outcome is Outcome.TLS_FAILED

    async def mute(_reader, _writer):
        await asyncio.sleep(60)

    async with listening(mute) as port, Client(connect_timeout_s=0.3) as client:
        answer = await client.get(f"https://site.test:{port}/")
        assert answer.outcome is Outcome.TIMED_OUT


async def http2_once(reader, writer):
    """The least HTTP/2 server: settings, then one answer on stream 1 (RFC 9113)."""
    await reader.readexactly(24)  # the client's preface

    def frame(kind, flags, stream, payload):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    writer.write(frame(4, 0, 0, b""))
    while True:
        header = await reader.readexactly(9)
        await reader.readexactly(int.from_bytes(header[:3], "big"))
        kind, flags, stream = header[3], header[4], int.from_bytes(header[5:9], "big")
        if kind == 4 and not flags & 1:
            writer.write(frame(4, 1, 0, b""))
        if kind == 1:
            # :status 200 (indexed), then x-a: b as a literal
            writer.write(frame(1, 4, stream, b"\x88\x00\x03x-a\x01b") + frame(0, 1, stream, b"hello"))
            await writer.drain()


async def test_http2_is_offered_and_recorded_in_the_form_of_http1(authority):
    issuer, ca_file = authority

    async def serve(reader, writer):
        if writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2":
            try:
                await http2_once(reader, writer)
            except asyncio.IncompleteReadError:
                writer.close()
        else:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold")

    async with listening(serve, ssl=tls(issuer, "site.test", "h2", "http/1.1")) as port:
        url = f"https://site.test:{port}/a"
        async with Client(ca_file=ca_file) as client:
            answer = await client.get(url)
            assert (answer.outcome, answer.effective_protocol, answer.status) == (Outcome.OK, "h2", 200)
            assert answer.body.read() == b"hello"
            assert answer.head == b"HTTP/2 200 \r\nx-a: b\r\n\r\n"
            assert answer.request.startswith(b"GET /a HTTP/1.1\r\nHost: site.test")
    one_only = tls(issuer, "site.test", "http/1.1")
    async with listening(serve, ssl=one_only) as port, Client(ca_file=ca_file) as client:
        answer = await client.get(f"https://site.test:{port}/a")
        assert (answer.effective_protocol, answer.body.read()) == ("http/1.1", b"old")


# the registry


class Plugin:
    schemes = ("http", "news")

    def __init__(self, behaviour):
        self.behaviour = behaviour

    def fetch(self, visit, address, done):
        self.behaviour(visit, address, done)


async def test_plugins_come_first_and_are_answered_once():
    def twice(visit, address, done):
        done(Exchange(visit, Outcome.OK, 0.0, 0.0, address, "from the plug-in"))
        done(Exchange(visit, Outcome.OK, 0.0, 0.0, address, "again"))
        raise ValueError("and then")

    async with Client(plugins=[Plugin(twice)]) as client:
        answer = await client.get("http://site.test/")
        assert answer.detail == "from the plug-in"
        await asyncio.sleep(0.01)
        assert client.registry.plugin_failures == {"Plugin": 1}


@pytest.mark.parametrize(
    "answer", [None, 5, Exchange(visit_to("http://site.test/other"), Outcome.OK, 0.0, 0.0, "", "")]
)
async def test_a_plugin_that_answers_with_something_else_costs_its_page(answer):
    async with Client(plugins=[Plugin(lambda _visit, _address, done: done(answer))]) as client:
        answered = await client.get("http://site.test/")
        assert answered.outcome is Outcome.PLUGIN_FAILED
        assert client.registry.plugin_failures == {"Plugin": 1}


async def test_a_plugin_that_raises_costs_its_page():
    def raises(_visit, _address, _done):
        raise ValueError("no")

    async with Client(plugins=[Plugin(raises)]) as client:
        answer = await client.get("http://site.test/")
        assert answer.outcome is Outcome.PLUGIN_FAILED
        assert "Plugin" in answer.detail


async def test_a_scheme_nobody_speaks():
    async with Client() as client:
        visit = visit_to("http://site.test/")
        visit.url = "news://site.test/"
        answered = asyncio.get_running_loop().create_future()
        client.registry.fetch(visit, LOCAL, answered.set_result)
        assert not answered.done()
        assert (await answered).outcome is Outcome.UNSUPPORTED


@pytest.mark.parametrize(
    ("url", "robots"),
    [
        ("http://site.test/a", "http://site.test/robots.txt"),
        ("https://site.test:444/a", "https://site.test:444/robots.txt"),
        ("https://[::1]:443/", "https://[::1]/robots.txt"),
        ("http://site.test:443/", "http://site.test:443/robots.txt"),
        ("ftp://site.test/a", "ftp://site.test/robots.txt"),
        ("gopher://site.test/1/a", "gopher://site.test/0/robots.txt"),
    ],
)
def test_robots_url(url, robots):
    origin = split(canonical(url)).origin
    assert robots_url(origin) == robots == canonical(robots)
