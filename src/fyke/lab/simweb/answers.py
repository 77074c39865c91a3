"""The server's reply to one request, decided without I/O.

`http` calls it. Invariant: a reply depends on spec and ports. Only for a passing fault it also depends on how often
the URL was asked for; that count is the only thing remembered.
"""

import zlib
from enum import Enum
from typing import NamedTuple

import brotli

from fyke.lab.simweb import listings, robots
from fyke.lab.simweb.bodies import Bodies, Body, png
from fyke.lab.simweb.kinds import FAILING, PASSING, REDIRECTING, PageKind, RobotsKind
from fyke.lab.simweb.layout import MEDIA_TYPES, Layout, Resource, ResourceKind

REASONS = {
    200: "OK", 301: "Moved Permanently", 302: "Found", 303: "See Other", 307: "Temporary Redirect",
    308: "Permanent Redirect", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 410: "Gone", 421: "Misdirected Request", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip
CHUNK_BYTES = 4096
_HTML = "text/html; charset=utf-8"
_MEDIA = {"css": "text/css", "js": "text/javascript", "png": "image/png"}
_OK = b"HTTP/1.1 200 OK\r\nServer: simweb\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n%b"


class Manner(Enum):
    """How the bytes of a reply are sent."""

    WHOLE = "whole"
    SLOWLY = "slowly"  # in drips, over `slow_s`
    NEVER = "never"  # nothing at all; the connection stays open
    HALF = "half"  # the first half, then nothing
    CUT = "cut"  # the first half, then the end of the connection
    RESET = "reset"  # a reset instead of any bytes


class Reply(NamedTuple):
    """A reply: its bytes from status line to end, and how to send them."""

    status: int
    data: bytes
    manner: Manner = Manner.WHOLE
    closing: bool = False
    retry_after_s: float = 0.0


_MANNERS = {
    PageKind.SLOW: Manner.SLOWLY,
    PageKind.STALLED: Manner.NEVER,
    PageKind.STALLED_MIDWAY: Manner.HALF,
    PageKind.TRUNCATED: Manner.CUT,
    PageKind.RESET: Manner.RESET,
}


def whole(status: int, body: Body, *headers: str) -> Reply:
    """Return a reply with a Content-Length."""
    lines = [
        f"HTTP/1.1 {status} {REASONS[status]}",
        "Server: simweb",
        f"Content-Type: {body.media_type}",
        *headers,
        f"Content-Length: {len(body.data)}",
    ]
    return Reply(status, "\r\n".join(lines).encode() + b"\r\n\r\n" + body.data, closing="Connection: close" in headers)


def refusal(status: int, *headers: str) -> Reply:
    """Return a reply that says only its status."""
    text = f"<!doctype html><title>{status}</title><h1>{REASONS[status]}</h1>\n"
    return whole(status, Body(text.encode(), _HTML), *headers)


class Responder:
    """The replies of one web."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.bodies = Bodies(layout)
        self._asked: dict[str, int] = {}
        styles = layout.spec.style_shares
        self._chunked = int(styles.chunked * 256)
        self._coded = int(styles.coded * 256)
        self._closing = int(styles.closing * 256)
        self._has_styles = bool(self._chunked or self._coded or self._closing)

    def reply(self, host: int, target: str, accept: bytes, date: str) -> Reply:
        """Return the reply of `host` to a GET for `target`.

        `accept` is the value of Accept-Encoding; `date` is an HTTP-date of now + retry_after_s.
        """
        resource = self.layout.find(host, target)
        if resource is None:
            return refusal(404)
        if resource.kind is ResourceKind.PAGE:
            return self._page(resource, accept, date)
        if resource.kind is ResourceKind.HOP:
            return self._redirect(resource.number, resource.step)
        if resource.kind in (ResourceKind.ROBOTS, ResourceKind.ROBOTS_MOVED):
            return self._robots(resource)
        return whole(200, self._other(resource))

    def _other(self, resource: Resource) -> Body:
        if resource.kind is ResourceKind.SITEMAP:
            return listings.sitemap(self.layout, resource)
        if resource.kind is ResourceKind.FEED:
            return listings.feed(self.layout, resource.host)
        if resource.kind is ResourceKind.TRAP:
            return self.bodies.trap(resource)
        if resource.kind is not ResourceKind.MEDIA:
            return self.bodies.leaf(resource)
        ending = MEDIA_TYPES[resource.number % len(MEDIA_TYPES)]
        text = f"/* {self.layout.url(resource)} */\n".encode() * 8
        return Body(png(resource.number) if ending == "png" else text, _MEDIA[ending])

    # -- pages -------------------------------------------------------------------------------------

    def _page(self, resource: Resource, accept: bytes, date: str) -> Reply:
        page = resource.number
        kind = self.layout.kind(page)
        if kind is PageKind.ORDINARY and not self._has_styles:
            body = self.bodies.page(page)
            if body.media_type == _HTML:
                return Reply(200, _OK % (len(body.data), body.data))
            return whole(200, body)
        if kind in REDIRECTING:
            return self._redirect(page, 0)
        if kind in PASSING and self._fails(self.layout.url(resource)):
            return self._come_again(kind, date)
        if kind in FAILING and kind not in _MANNERS:
            return refusal({PageKind.NOT_FOUND: 404, PageKind.GONE: 410}.get(kind, 500))
        if kind in _MANNERS:
            return whole(200, self.bodies.page(page))._replace(manner=_MANNERS[kind])
        return self._styled_page(page, kind, accept)

    def _styled_page(self, page: int, kind: PageKind, accept: bytes) -> Reply:
        body = self.bodies.page(page)
        draw = self.layout.bits(page) ^ 0x5A5A5A5A5A5A5A5A
        headers = []
        if kind in (PageKind.NOINDEX_HEADER, PageKind.NOFOLLOW_HEADER):
            headers.append(f"X-Robots-Tag: {kind.partition('_')[0]}")
        if self._has_styles and (draw >> 26 & 255) < self._coded:
            coding, data = encode(body.data, accept, draw >> 34)
            if coding:
                headers.append(f"Content-Encoding: {coding}")
                body = Body(data, body.media_type)
        if self._has_styles and (draw >> 36 & 255) < self._closing:
            headers.append("Connection: close")
        if self._has_styles and (draw >> 44 & 255) < self._chunked:
            return _chunked(body, headers)
        return whole(200, body, *headers)

    def _fails(self, url: str) -> bool:
        asked = self._asked[url] = self._asked.get(url, 0) + 1
        return asked <= self.layout.spec.faults_before_success

    def _come_again(self, kind: PageKind, date: str) -> Reply:
        wait = self.layout.spec.retry_after_s
        if kind is PageKind.FLAKY:
            return refusal(503)
        said = date if kind is PageKind.THROTTLED_DATE else str(wait)
        return refusal(429, f"Retry-After: {said}")._replace(retry_after_s=float(wait))

    def _redirect(self, page: int, step: int) -> Reply:
        there = self.layout.redirect(page, step)
        url = self.layout.url(there)
        if there.host == self.layout.names.host_of(page) and self.layout.bits(page) >> 48 & 1:
            url = self.layout.target(there)
        return refusal(self.layout.redirect_status(page, step), f"Location: {url}")

    # -- robots.txt --------------------------------------------------------------------------------

    def _robots(self, resource: Resource) -> Reply:
        moved = resource.kind is ResourceKind.ROBOTS_MOVED
        whose = resource.number if moved else resource.host
        kind = self.layout.names.robots_kind(whose)
        there = self.layout.robots_moved(whose)
        if there is not None and not moved:
            status = 301 if kind is RobotsKind.MOVED else 302
            return refusal(status, f"Location: {self.layout.url(there)}")
        if kind is RobotsKind.NONE or kind is RobotsKind.REFUSED:
            return refusal(404 if kind is RobotsKind.NONE else 403)
        if kind is RobotsKind.DOWN or (kind is RobotsKind.FLAKY and self._fails(f"{whose}/robots.txt")):
            return refusal(503)
        sitemaps = [self.layout.url(one) for one in listings.announced(self.layout, whose)]
        data = robots.text(kind, self.layout.spec.crawl_delay_s, sitemaps)
        return whole(200, Body(data, _HTML if kind is RobotsKind.HTML else "text/plain"))


def encode(data: bytes, accept: bytes, draw: int) -> tuple[str, bytes]:
    """Return a coding allowed by `accept`, chosen by `draw`, and `data` in it; ("", data) if it allows none."""
    offered = [word for word in ("gzip", "deflate", "br") if word.encode() in accept]
    if not offered:
        return "", data
    coding = offered[draw % len(offered)]
    if coding == "br":
        return coding, brotli.compress(data, quality=1)
    # "deflate" is two formats in the wild: with the zlib header, and bare.
    window = {"gzip": 31, "deflate": 15 if draw & 64 else -15}[coding]
    packer = zlib.compressobj(1, zlib.DEFLATED, window)
    return coding, packer.compress(data) + packer.flush()


def _chunked(body: Body, headers: list[str]) -> Reply:
    lines = ["HTTP/1.1 200 OK", "Server: simweb", f"Content-Type: {body.media_type}", *headers]
    data = body.data
    pieces = ["\r\n".join([*lines, "Transfer-Encoding: chunked\r\n\r\n"]).encode()]
    for start in range(0, len(data), CHUNK_BYTES):
        piece = data[start : start + CHUNK_BYTES]
        pieces.append(b"%x\r\n%b\r\n" % (len(piece), piece))
    pieces.append(b"0\r\n\r\n")
    return Reply(200, b"".join(pieces), closing="Connection: close" in headers)
