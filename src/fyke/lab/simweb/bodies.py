"""The bytes of a page: the filler, the links, and the ways of writing them.

`answers` and `perfect` call it. A plain page is one `join` over ready pieces; careless pages and pages in other
charsets take the long way.

Invariant: a page's bytes depend on its number, the spec and the ports only, and hold the links of `layout.targets` in
that order.
"""

import zlib
from typing import NamedTuple

from fyke.lab.simweb import sloppy
from fyke.lab.simweb.dice import bits
from fyke.lab.simweb.hosts import FTP_HOST, GOPHER_HOST
from fyke.lab.simweb.kinds import BEGINNING, Charset, Declared, FeedKind, PageKind
from fyke.lab.simweb.layout import Layout, Resource, ResourceKind
from fyke.lab.simweb.text import SAMPLES, Filler

ANCHOR_BYTES = 56  # the approximate size of a link in a page
CACHED_ANCHORS = 1 << 16

_CODECS = {Charset.WINDOWS_1252: "cp1252", Charset.SHIFT_JIS: "cp932", Charset.EUC_KR: "cp949"}


class Body(NamedTuple):
    """A body and its declared media type, with the charset if the header says it."""

    data: bytes
    media_type: str


class Bodies:
    """The page writer of one web."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        spec = layout.spec
        self._count = spec.links_per_page
        self._filler = Filler(spec.seed, self._count, max(0, spec.mean_page_bytes // self._count - ANCHOR_BYTES))
        self._words = [words.decode() for words in self._filler.anchors]
        self._whole: dict[int, bytes] = {}
        self._short: dict[int, bytes] = {}
        styles = spec.style_shares
        self._sloppy, self._foreign = int(styles.sloppy * 0x10000), int(styles.foreign * 0x10000)

    # -- pages -------------------------------------------------------------------------------------

    def page(self, page: int) -> Body:
        """Return the body of a page that has one."""
        layout = self.layout
        kind, draw = layout.kind(page), layout.bits(page)
        if kind is PageKind.PDF:
            return Body(pdf(layout.url(layout.page(page))), "application/pdf")
        if kind is PageKind.TEXT:
            text = b"\n".join(self._filler.paragraphs(draw, self._count))
            return Body(f"Page {page}, as text\n".encode() + text, "text/plain; charset=utf-8")
        if kind is PageKind.DUPLICATE:
            return self._duplicate(layout.names.host_of(page), draw >> 40 & 3)
        html = self._careless(page) if self.is_sloppy(page) else self._plain(page)
        return self._encode(page, self._begun(page, html) if kind in BEGINNING else html)

    def is_sloppy(self, page: int) -> bool:
        """Return whether a page is written carelessly."""
        return self._sloppy > 0 and bits(self.layout.spec.seed, b"sloppy", page) & 0xFFFF < self._sloppy

    def charset(self, page: int) -> tuple[Charset, Declared]:
        """Return a page's charset, and where the page declares it."""
        draw = bits(self.layout.spec.seed, b"charset", page) if self._foreign else 0
        if not self._foreign or (draw & 0xFFFF) >= self._foreign:
            return Charset.UTF_8, Declared.HEADER
        charset = tuple(Charset)[(draw >> 16) % len(Charset)]
        return charset, tuple(Declared)[(draw >> 32) % len(Declared)]

    def _plain(self, page: int) -> bytes:
        layout, names = self.layout, self.layout.names
        targets = layout.targets(page)
        host = names.host_of(page)
        start, end = names.starts[host], names.starts[host + 1]
        short, whole = self._short, self._whole
        anchors = []
        for target in targets:
            cache = short if start <= target < end else whole
            anchor = cache.get(target)
            if anchor is None:
                anchor = self._anchor(target, host if cache is short else None)
                # Most links go to few pages, which are met early, so a full cache holds them.
                if len(cache) < CACHED_ANCHORS:
                    cache[target] = anchor
            anchors.append(anchor)
        pieces = [b""] * (2 * len(anchors) + 2)
        pieces[0] = self._head(page, host)
        pieces[1:-1:2] = anchors
        pieces[2:-1:2] = self._filler.paragraphs(layout.bits(page) >> 26, len(anchors))
        pieces[-1] = self._tail(page, host)
        return b"".join(pieces)

    def _anchor(self, page: int, own: int | None) -> bytes:
        """Return the link to a page, without its origin if it lies on the host `own`."""
        layout, names = self.layout, self.layout.names
        host = names.host_of(page) if own is None else own
        draw = layout.bits(page)
        local = page - names.starts[host]
        target = layout.form(page, host, draw) % local if local else "/"
        words = self._words[draw >> 50 & 1023]
        return f'<a href="{layout.origin(host) if own is None else ""}{target}">{words}</a>\n'.encode()

    def anchor(self, page: int) -> str:
        """Return the words of links to a page, which are also in its title."""
        return self._words[self.layout.bits(page) >> 50 & 1023]

    def _careless(self, page: int) -> bytes:
        layout = self.layout
        host = layout.names.host_of(page)
        draw = bits(layout.spec.seed, b"careless", page)
        own, origin = layout.target(layout.page(page)), layout.origin(host)
        literal = self.charset(page) == (Charset.UTF_8, Declared.HEADER)
        with_base = draw & 7 == 0
        pieces = [self._head(page, host).decode()]
        if with_base:
            pieces.append(f'<base href="{origin}/x/y/"><base href="http://nowhere.sim/">\n')
        paragraphs = self._filler.paragraphs(layout.bits(page) >> 26, self._count)
        for place, (target, prose) in enumerate(zip(layout.targets(page), paragraphs, strict=True)):
            there = layout.page(target)
            link = sloppy.Link(own, origin, layout.origin(there.host), layout.target(there), literal)
            anchor, ways = self.anchor(target), bits(draw, b"way", place)
            pieces.append(sloppy.based(link, anchor) if with_base else sloppy.write(link, ways, anchor))
            pieces.append(prose.decode())
            if ways >> 56 < 32 and not with_base:
                pieces.append(sloppy.NOISE[ways % len(sloppy.NOISE)])
        tail = self._tail(page, host).decode()
        return ("".join(pieces) + tail.removesuffix("</body></html>\n")).encode()

    def _begun(self, page: int, html: bytes) -> bytes:
        """Return `html` behind a beginning of the same length, which has a link to a page found nowhere else."""
        where = self.layout.target(Resource(ResourceKind.BEGUN, self.layout.names.host_of(page), page))
        words = self.anchor(page)
        first = f'<!doctype html>\n<html><head><title>{words}</title></head><body>\n<a href="{where}">{words}</a>\n'
        prose = b"".join(self._filler.paragraphs(page, self._count)) or b"<p>"
        return first.encode() + (prose * (len(html) // len(prose) + 1))[: len(html)] + html

    def _encode(self, page: int, html: bytes) -> Body:
        charset, declared = self.charset(page)
        if not self._foreign:
            return Body(html, "text/html; charset=utf-8")
        says = str(charset)
        if declared is Declared.WRONGLY:
            says = "utf-8" if charset is not Charset.UTF_8 else "iso-8859-1"
        sample = f"<p>{SAMPLES[charset]}</p>\n"
        if declared in (Declared.META, Declared.WRONGLY) and charset is not Charset.UTF_16:
            html = html.replace(b"<title>", f'<meta charset="{says}"><title>'.encode(), 1)
        media_type = f"text/html; charset={says}" if declared is Declared.HEADER else "text/html"
        if charset is Charset.UTF_16:  # its byte order mark outranks every declaration
            return Body((html.decode() + sample).encode("utf-16"), media_type)
        return Body(html + sample.encode(_CODECS.get(charset, str(charset))), media_type)

    def _head(self, page: int, host: int) -> bytes:
        layout = self.layout
        name = layout.names.name(host)
        words = self.anchor(page)
        lines = [f"<!doctype html>\n<html><head><title>{words}: page {page} of {name}</title>\n"]
        kind = layout.kind(page)
        if kind is PageKind.NOINDEX or kind is PageKind.NOFOLLOW:
            lines.append(f'<meta name="robots" content="{kind}">\n')
        if page == layout.names.starts[host] and (feed := layout.names.feed_kind(host)) is not FeedKind.NONE:
            where = layout.target(Resource(ResourceKind.FEED, host))
            lines.append(f'<link rel="alternate" type="application/{feed}+xml" href="{where}">\n')
        lines += [_requisite(layout.url(one)) for one in layout.requisites(page)]
        lines.append(f"</head><body>\n<h1>{words}</h1>\n")
        return "".join(lines).encode()

    def _tail(self, page: int, host: int) -> bytes:
        layout = self.layout
        lines = []
        if layout.has_nofollow_link(page):
            rel = "" if layout.kind(page) in (PageKind.NOFOLLOW, PageKind.NOFOLLOW_HEADER) else ' rel="nofollow"'
            lines.append(
                f'<a{rel} href="{layout.url(Resource(ResourceKind.NOFOLLOWED, host, page))}">do not follow</a>\n'
            )
        if page == layout.names.starts[host] and layout.names.has_trap(host):
            lines.append(f'<a href="{layout.url(Resource(ResourceKind.TRAP, host, 1))}">a calendar</a>\n')
        if page == 0:
            lines += [f'<a href="{url}">elsewhere</a>\n' for url in self.elsewhere()]
        lines.append("</body></html>\n")
        return "".join(lines).encode()

    def elsewhere(self) -> list[str]:
        """Return the URLs of the gopher hole and the FTP server, to which page 0 links."""
        ports = self.layout.ports
        found = [f"gopher://{GOPHER_HOST}:{ports.gopher}/1/"] if ports.gopher else []
        return [*found, f"ftp://{FTP_HOST}:{ports.ftp}/pub/"] if ports.ftp else found

    # -- bodies outside the tree --------------------------------------------------------------------

    def duplicate_links(self, host: int, group: int) -> list[Resource]:
        """Return the links of the body that several pages of a host share."""
        pages = [self.layout.open_page(host, bits(group, b"copy", number)) for number in range(4)]
        return [self.layout.page(page) for page in pages]

    def _duplicate(self, host: int, group: int) -> Body:
        lines = [f"<!doctype html><title>Copy {group} of {self.layout.names.name(host)}</title>\n"]
        lines += [f'<a href="{self.layout.url(one)}">one</a>\n' for one in self.duplicate_links(host, group)]
        prose = b"".join(self._filler.paragraphs(group, self._count))
        return Body("".join(lines).encode() + prose, "text/html; charset=utf-8")

    def leaf(self, resource: Resource) -> Body:
        """Return a page beside the tree (listed, fed, nofollowed, begun) with one link, to its host's front page."""
        title = f"{resource.kind} {resource.number} of {self.layout.names.name(resource.host)}"
        prose = self._filler.paragraphs(resource.number, 4)
        html = f'<!doctype html><title>{title}</title>\n<h1>{title}</h1>\n<a href="/">home</a>\n'
        return Body(html.encode() + b"".join(prose), "text/html; charset=utf-8")

    def trap(self, resource: Resource) -> Body:
        """Return a page of the trap, which leads on to two more, for ever."""
        number = resource.number
        links = "".join(f'<a href="/trap/{one}/">{one}</a>\n' for one in (2 * number, 2 * number + 1))
        return Body(f"<!doctype html><title>Day {number}</title>\n{links}".encode(), "text/html; charset=utf-8")


def _requisite(url: str) -> str:
    if url.endswith(".css"):
        return f'<link rel="stylesheet" href="{url}">\n'
    if url.endswith(".js"):
        return f'<script src="{url}"></script>\n'
    return f'<img alt="" src="{url}">\n'


def pdf(title: str) -> bytes:
    """Return a minimal PDF with one line of text."""
    stream = f"BT /F1 12 Tf 40 700 Td ({title}) Tj ET".encode()
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(data))
        data += b"%d 0 obj%b endobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n%b" % (len(parts) + 1, table)
    return data + head + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(parts) + 1, len(data))


def png(number: int) -> bytes:
    """Return a PNG of one pixel, coloured by `number`."""

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data)
        return len(data).to_bytes(4, "big") + name + data + check.to_bytes(4, "big")

    head = bytes.fromhex("0000000100000001080200 0000".replace(" ", ""))
    pixel = zlib.compress(b"\x00" + number.to_bytes(3, "big"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
