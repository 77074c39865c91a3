"""Answers that no server should give, made from a seed, and a server that gives them byte for byte.

Half of them are valid answers with a few mutations, so that they get past the first check and break the next one.
"""

import asyncio
import gzip
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random

import brotli
import zstandard

_PAGE = b"<!doctype html><title>One</title><a href='/0'>a</a><a href='../1?q=2'>b</a><base href='x:/'><a href='c'>c</a>"
_BODIES = [
    ("text/html", _PAGE),
    ("text/html; charset=utf-16", _PAGE.decode().encode("utf-16")),
    ("application/xhtml+xml", b"<html xmlns='http://www.w3.org/1999/xhtml'><a href='/2'>x</a></html>"),
    ("text/xml", b"<sitemapindex><sitemap><loc>/3</loc></sitemap></sitemapindex>"),
    ("application/xml", b"<?xml version='1.0' encoding='koi8-r'?><urlset><url><loc>/4</loc></url></urlset>"),
    ("application/rss+xml", b"<rss><channel><title>t</title><item><link>/5</link></item></channel></rss>"),
    ("application/feed+json", b'{"version": "https://jsonfeed.org/version/1", "items": [{"url": "/6"}, 7, null]}'),
    ("text/plain", b"User-agent: *\nDisallow: /7\nSitemap: /8\n"),
    ("application/x-gzip", gzip.compress(b"<urlset><url><loc>/9</loc></url></urlset>")),
    ("image/png", b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
    ("", b""),
]
_CODINGS: dict[bytes, Callable[[bytes], bytes]] = {
    b"gzip": gzip.compress,
    b"deflate": zlib.compress,
    b"br": brotli.compress,
    b"zstd": zstandard.compress,
}
_STATUSES = [b"200"] * 12 + b"0 1 99 099 000 100 101 102 103 199 201 204 205 206 299 300 301 302 304 307".split()
_STATUSES += b"400 401 404 410 429 451 500 503 599 600 999 1000 20 2000 -1 2x0 +200 0200 \xb2".split()
_STATUSES += [b"", b" "]
_LENGTHS = [b"abc", b"-1", b"0x5", b"5 5", b"5, 5", b"5, 6", b"", b"+5", b"5;", b"99999999999999999999", b"1" * 99]
_FIELDS = [
    b"Location: http://[", b"Location: \xff\xfe\x00", b"Location: //", b"Location: ?", b"Location: http://a:99999999/",
    b"Content-Type: \x00", b"Content-Type: text/html; charset=\xff", b"Content-Type: " + b"a/" * 3000,
    b"Content-Encoding: gzip, br, zstd, deflate", b"Content-Encoding: \x00", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: nonsense", b"Transfer-Encoding:",
    b"Connection: Upgrade", b"Upgrade: h2c, websocket", b"Link: <" + b"<" * 500, b"Refresh: 0;url=/0",
    b"Link: </9>; rel=next, <::>; rel=canonical",
    b"X-Robots-Tag: none", b"X-Robots-Tag: \xe9:,:,", b"Trailer: Content-Length", b": no name", b"no colon", b" folded",
    b"\tfolded\x00", b"Set-Cookie: " + b"x" * 9000, b"Date: never", b"Expires: 0", b"Cache-Control: max-age=-1, =,",
    b"Alt-Svc: h3=\":1\"; ma=1", b"Content-Range: bytes */*", b"Keep-Alive: timeout=x",
]  # fmt: skip
_WHOLE = [
    b"", b"\r\n", b"\n" * 99, b"\x00" * 99, b"<html>an answer without a head", b"HTTP/0.9 200 OK\r\n\r\nhi",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
    b"HTTP/2 200 OK\r\n\r\nhi", b"HTTP/3 200 OK\r\n\r\nhi", b"ICY 200 OK\r\n\r\nhi", b"\x16\x03\x01\x02\x00\x01\x00",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05hello",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 500, b"HTTP/\r\n\r\nhi",
    b"HTTP/1.1 103 Early\r\nLink: </x>\r\n\r\n" * 50 + b"HTTP/1.1 200\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60_000 + b"\r\nhi", b"HTTP/1.1 200 " + b"O" * 400_000 + b"\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhi",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nContent-Length: abc\r\nHTTP/1.1 101\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n\r\nanother", b"220 ftp.example ready\r\n",
]  # fmt: skip
_TOKENS = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\x00",
    b" ",
    b":",
    b"\r\n\r\n",
    b"HTTP/1.1 ",
    b"\xff",
    b"9" * 40,
    b"<",
    b"&#0;",
    b"%",
    b"\xf0",
]


def raw_answer(random: Random) -> bytes:
    """One answer, as bytes on the wire."""
    if random.random() < 0.15:
        answer = random.choice(_WHOLE)
    elif random.random() < 0.05:
        answer = random.randbytes(random.randrange(2000))
    else:
        answer = _composed(random)
    for _ in range(random.choice((0, 0, 0, 0, 1, 1, 2, 8))):
        answer = _mutated(answer, random)
    return answer


def _composed(random: Random) -> bytes:
    media_type, body = random.choice(_BODIES)
    fields = [b"Content-Type: " + media_type.encode()]
    if random.random() < 0.3:
        coding = random.choice(list(_CODINGS))
        body = _CODINGS[coding](body)
        fields.append(b"Content-Encoding: " + (coding if random.random() < 0.9 else random.choice(list(_CODINGS))))
    how = random.random()
    if how < 0.3:
        step = random.randrange(1, 200)
        pieces = [body[at : at + step] for at in range(0, len(body), step)]
        body = b"".join(b"%x%s\r\n%s\r\n" % (len(one), random.choice((b"", b";a=b")), one) for one in pieces) + b"0\r\n"
        body += random.choice((b"\r\n", b"Trailer: x\r\n\r\n", b"Content-Length: 1\r\n\r\n", b""))
        fields.append(b"Transfer-Encoding: chunked")
    elif how < 0.8:
        length = len(body) + random.choice((0, 0, 0, 0, -1, 1, 1000))
        fields += [b"Content-Length: %d" % length] * random.choice((1, 1, 1, 1, 2))
    if random.random() < 0.15:
        fields.append(b"Content-Length: " + random.choice(_LENGTHS))
    fields += random.choices(_FIELDS, k=random.choice((0, 0, 1, 2, 5)))
    random.shuffle(fields)
    status = random.choice(_STATUSES)
    if status.startswith(b"3"):
        fields.append(random.choice((b"Location: /1", b"Location: ", b"location: ../..//0?#x")))
    end = random.choice((b"\r\n", b"\r\n", b"\r\n", b"\n"))
    version = random.choice((b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.9", b"HTTP/2", b"http/1.1"))
    before = random.choice(
        (b"", b"", b"", b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nX: y\r\n\r\n")
    )
    return before + version + b" " + status + b" Word" + end + end.join(fields) + end + end + body


def _mutated(answer: bytes, random: Random) -> bytes:
    at = random.randrange(len(answer) + 1)
    to = min(len(answer), at + random.randrange(1, 20))
    match random.randrange(6):
        case 0:
            return answer[:at]
        case 1:
            return answer[:at] + answer[to:]
        case 2:
            return answer[:at] + random.choice(_TOKENS) + answer[at:]
        case 3:
            return answer[:at] + answer[at:to] * random.choice((2, 50)) + answer[to:]
        case 4:
            return answer[:at] + random.randbytes(to - at) + answer[to:]
        case _:
            return answer[:at] + bytes(byte ^ 1 << random.randrange(8) for byte in answer[at:to]) + answer[to:]


Answering = Callable[[str, str], bytes]  # host and path of a request


class RawServer:
    """Gives an `answer` to each request at `hosts`, addresses of this machine; some end in a reset, some never."""

    def __init__(self, hosts: Sequence[str], answer: Answering) -> None:
        self._answer = answer
        self._sockets = [
            socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64)
            for host in hosts
        ]
        spelled = [f"[{host}]" if ":" in host else host for host in hosts]
        self.origins = [
            f"http://{host}:{one.getsockname()[1]}" for host, one in zip(spelled, self._sockets, strict=True)
        ]
        self.seeds = [f"{origin}/" for origin in self.origins]
        self._asked = 0
        self._more = threading.Condition()
        self._loop = asyncio.new_event_loop()

    def wait_until_asked(self, times: int, timeout_s: float = 60) -> None:
        with self._more:
            assert self._more.wait_for(lambda: self._asked >= times, timeout_s)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def run(self) -> None:
        """Serve until `stop`, in a thread of its own."""
        for one in self._sockets:
            self._loop.run_until_complete(asyncio.start_server(self._serve, sock=one))
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left))
        self._loop.close()
        for one in self._sockets:
            one.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            with self._more:
                self._asked += 1
                self._more.notify_all()
            path = head.split(b" ")[1].decode()
            number = zlib.crc32(path.encode())
            writer.write(self._answer(writer.get_extra_info("sockname")[0], path))
            if number % 64 == 1:
                writer.transport.abort()
                return
            if number % 256 == 2:
                await reader.read()  # until the other side is tired of waiting
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()


@contextmanager
def raw_server(hosts: Sequence[str], answer: Answering) -> Iterator[RawServer]:
    """A RawServer until the block ends."""
    server = RawServer(hosts, answer)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
