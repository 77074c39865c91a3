"""The kind of an answer: its media type, and the charset label its server gave.

Called by `fyke.harvest.parser` once a page. The server's Content-Type is believed if it says anything. A missing or
generic one is sniffed as in the WHATWG MIME Sniffing Standard (sections 5 and 7), with fewer kinds of audio, video and
archives told apart. Beyond the standard, it recognises documents that servers only call files or archives, or name
after their kin, and binary files that they call HTML: their bytes would be taken for words. Protocols without headers
go by the name: a gopher item type, a file's extension.

Invariant: the result is a lower-case `type/subtype`, and sniffing never turns what a server calls text into something
that is run (section 7.2: the Apache fault only becomes octet-stream).
"""

import mimetypes
import re
from functools import lru_cache
from pathlib import PurePosixPath

from fyke.core.pages import HTML
from fyke.core.urls import split
from fyke.core.visits import Exchange

GOPHER_MENU = "application/gopher-menu"
FTP_LISTING = "text/ftp-dir-listing"
OCTETS = "application/octet-stream"

_FIELD = re.compile(rb"\n[cC][oO][nN][tT][eE][nN][tT]-[tT][yY][pP][eE][ \t]*:([^\r\n]{0,1024})")
_TOKEN = r"[!#$%&'*+.^_`|~0-9a-z-]{1,127}"  # RFC 6838, 4.2
_ESSENCE = re.compile(rf"{_TOKEN}/{_TOKEN}")
_CHARSET = re.compile(r";\s*charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^;,\s]+))", re.IGNORECASE)
MOST_FIELDS = 16  # Content-Type fields of one head
_GENERIC = frozenset({"", "unknown/unknown", "application/unknown", "*/*"})
_FILES = frozenset(
    {
        OCTETS, "binary/octet-stream", "application/download", "application/force-download",
        "application/x-download", "application/zip", "application/x-zip-compressed",
    }
)  # fmt: skip
# How servers also call documents: by names of older formats, of templates, or of nobody.
_KIN = (
    *("application/vnd.openxmlformats", "application/vnd.ms-", "application/msword"),
    *("application/x-pdf", "application/x-epub"),
)
_APACHE_FAULT = frozenset(
    {
        b"text/plain",
        b"text/plain; charset=ISO-8859-1",
        b"text/plain; charset=iso-8859-1",
        b"text/plain; charset=UTF-8",
    }
)
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MARKUP = re.compile(
    rb"[\t\n\f\r ]*<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[ >])",
    re.IGNORECASE,
)
_XML = re.compile(rb"[\t\n\f\r ]*<\?xml")
_FEED = re.compile(rb"(?s)[\t\n\f\r ]*(?:(?><(?:\?.*?\?|!--.*?--|![^>]*)>)[\t\n\f\r ]*+)*+<(rss|feed|rdf:RDF)[\s>]")
_FEED_TYPES = {b"rss": "application/rss+xml", b"feed": "application/atom+xml", b"rdf:RDF": "application/rss+xml"}
GZIP = b"\x1f\x8b\x08"  # how a gzip file begins
PDF, ZIP = b"%PDF-", b"PK\x03\x04"
_MAGIC = (
    (PDF, "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"OggS\x00", "application/ogg"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"ID3", "audio/mpeg"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (GZIP, "application/x-gzip"),
    (ZIP, "application/zip"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
)
_MAGICS = tuple(magic for magic, _ in _MAGIC)
# Books and open documents say their type in an unpacked first member, Office documents by names in their list.
_TYPED_ZIP = re.compile(
    rb"(?s)PK\x03\x04.{26}mimetype"
    rb"(application/(?:epub\+zip|vnd\.oasis\.opendocument\.(?:text|presentation|spreadsheet)))PK"
)
_OFFICE = re.compile(rb"(?s)PK\x01\x02.{42}(word/document|xl/workbook|ppt/presentation)\d{0,6}\.xml")
_OFFICE_TYPES = {
    b"word/document": "wordprocessingml.document",
    b"xl/workbook": "spreadsheetml.sheet",
    b"ppt/presentation": "presentationml.presentation",
}
_LISTED_BYTES = 1 << 16  # at the end of a document, where its list is
_RIFF = {b"WEBPVP": "image/webp", b"AVI ": "video/avi", b"WAVE": "audio/wave"}
_GOPHER_ITEMS = {"0": "text/plain", "1": GOPHER_MENU, "7": GOPHER_MENU, "h": HTML, "g": "image/gif"}
_SNIFFED_BYTES = 1445  # the standard's resource header

# Only the standard library's own types: the machine's tables would change results.
_EXTENSIONS = mimetypes.MimeTypes(filenames=())


def describe(exchange: Exchange, content: bytes) -> tuple[str, str]:
    """Return the media type of an answer and its charset label (both lower case; `""`: none)."""
    value = _said(exchange.head)
    if value is not None:
        essence, label = _parsed(value)
        if essence in _GENERIC:
            return _document(content) or sniff(content), label
        if value in _APACHE_FAULT and looks_binary(content):
            return OCTETS, ""
        if essence == HTML:
            return _html_or_other(content), label
        if essence in _FILES or essence.startswith(_KIN):
            return _document(content) or essence, label
        return essence, label
    if exchange.visit.url.startswith(("ftp:", "gopher:")):
        return named(exchange.visit.url), ""
    return _document(content) or sniff(content), ""


def label_of(exchange: Exchange) -> str:
    """Return only the charset label of an answer that `describe` found to be text."""
    return said_of_kind(exchange)[1]


def said_of_kind(exchange: Exchange) -> tuple[str, str]:
    """Return the media type and the charset label that the server gave (both lower case; `""`: none)."""
    value = _said(exchange.head)
    return _parsed(value) if value is not None else ("", "")


def _said(head: bytes) -> bytes | None:
    """Return the Content-Type of an answer, or None. Of several fields the last that names a type counts, or the last
    of that type with a charset (Fetch Standard, "extract a MIME type")."""
    values = [value.strip(b" \t") for value in _FIELD.findall(head)[-MOST_FIELDS:]]
    if len(values) > 1:
        types = [_parsed(value)[0] for value in values]
        essence = next((one for one in reversed(types) if one not in _GENERIC), types[-1])
        values = [value for value, one in zip(values, types, strict=True) if one == essence]
        values = [value for value in values if _parsed(value)[1]] or values
    return values[-1] if values else None


@lru_cache(maxsize=1024)
def _parsed(value: bytes) -> tuple[str, str]:
    text = value.decode("latin-1").lower()
    essence = text.partition(";")[0].strip()
    match = _CHARSET.search(text)
    label = next(filter(None, match.groups()), "") if match else ""
    return (essence if _ESSENCE.fullmatch(essence) else ""), label.strip()


def _html_or_other(content: bytes) -> str:
    """Return the type of an answer sent as text/html: it may be a feed (section 7.3, "feed or HTML") or a binary
    file."""
    if content[:2] == b"<!" or content[:5] == b"<html":
        return HTML
    if content.startswith(_MAGICS) and (content.startswith(PDF) or looks_binary(content)):
        return _document(content) or sniff(content)
    match = _FEED.match(content, 0, _SNIFFED_BYTES)
    return _FEED_TYPES[match[1]] if match else HTML


def _document(content: bytes) -> str:
    """Return the media type of a document that Fyke reads, by its bytes; empty for others."""
    if content.startswith(PDF):
        return "application/pdf"
    if not content.startswith(ZIP):
        return ""
    if typed := _TYPED_ZIP.match(content):
        return typed[1].decode()
    listed = content[-_LISTED_BYTES:]
    office = _OFFICE.search(listed) if b"[Content_Types].xml" in listed else None
    return f"application/vnd.openxmlformats-officedocument.{_OFFICE_TYPES[office[1]]}" if office else ""


def looks_binary(content: bytes) -> bool:
    """Return whether the beginning of `content` holds bytes no text has."""
    return not content.startswith(_BOMS) and _BINARY.search(content, 0, _SNIFFED_BYTES) is not None


def sniff(content: bytes) -> str:
    """Return the media type of `content` by its first bytes."""
    head = content[:_SNIFFED_BYTES]
    if _MARKUP.match(head.removeprefix(_BOMS[0])):
        return HTML
    if _XML.match(head.removeprefix(_BOMS[0])):
        return "text/xml"
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return media_type
    if head[:4] == b"RIFF":
        return next((kind for mark, kind in _RIFF.items() if head[8:].startswith(mark)), OCTETS)
    if head[4:8] == b"ftyp":
        return "video/mp4"
    return OCTETS if looks_binary(head) else "text/plain"


@lru_cache(maxsize=1024)
def named(url: str) -> str:
    """Return the media type an ftp or gopher URL (canonical) promises."""
    scheme, _, _, target = split(url)
    path = target.partition("?")[0]
    if scheme == "ftp" and path.endswith("/"):
        return FTP_LISTING
    if scheme == "gopher":
        item = path[1:2]
        if not item or item in _GOPHER_ITEMS:
            return _GOPHER_ITEMS.get(item, GOPHER_MENU)
    guess, coding = _EXTENSIONS.guess_type(PurePosixPath(path).name)
    if coding == "gzip":
        return "application/gzip"
    return OCTETS if coding or not guess else guess
