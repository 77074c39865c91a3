"""Menus and directories: the link pages of protocols older than HTML.

Processing modules run by `fyke.harvest.parser`: gopher menus (RFC 1436, and the `h`/`URL:` convention), and FTP
directory listings as servers write them (`ls -l`, Windows, RFC 3659's MLSD).

Invariant: links are absolute URLs, with names percent-encoded byte by byte; a directory's ends in `/`.

Bounded: lines are read one by one, and at most `MOST_LINKS` links are taken, or as many as are resolved of any page. So
memory holds little beside the page.
"""

import re
from io import BytesIO
from itertools import islice
from urllib.parse import quote

from fyke.core.pages import Page
from fyke.core.resolve import MOST_WRITTEN_BYTES
from fyke.harvest.links import MOST_LINKS
from fyke.harvest.media import FTP_LISTING, GOPHER_MENU

_NOT_FETCHED = frozenset(b"i3 8T27+")  # text, errors, telnet, directories of people, searches without a query
_LINE_BYTES = 4096
_PATH = "/:@!$&'()*+,;=~|"
# A line of `ls -l` in two steps, its kind, then the first date, because owners' names may have blanks.
_UNIX = re.compile(rb"([-dlbcps])[-rwxsStTlL]{9}\S*+\s++\d++(?=\s)")
_DATED = re.compile(
    rb"\s(?:\w{3}\s++\d{1,2}|\d{1,2}\s++\w{3}|\d{4}-\d\d-\d\d)\s++(?:\d{1,2}:\d\d(?::\d\d)?|\d{4})\s(.+)"
)
_WINDOWS = re.compile(rb"\d\d-\d\d-(?:\d\d){1,2}\s+\d\d:\d\d(?:[AaPp][Mm])?\s+(?:(<DIR>)|\d+)\s+(.+)")
_MLSD = re.compile(rb"((?:[\w.-]+=[^;]*;)+) (.+)")
_TYPE = re.compile(rb"(?:^|;)type=([^;]*)", re.IGNORECASE)


class GopherMenu:
    """Reads the items of a gopher menu."""

    media_types = (GOPHER_MENU,)

    def process(self, page: Page) -> None:
        """Add the items of a menu to the links of `page`."""
        items = (_item(line.rstrip(b"\r\n")) for line in BytesIO(page.content) if len(line) <= _LINE_BYTES)
        page.links.pages += dict.fromkeys(islice(filter(None, items), MOST_LINKS))


class FtpListing:
    """Reads the entries of an FTP directory."""

    media_types = (FTP_LISTING,)

    def process(self, page: Page) -> None:
        """Add the entries of a directory to the links of `page`."""
        folder = page.url if page.url.endswith("/") else f"{page.url}/"
        room = MOST_WRITTEN_BYTES  # a short name below a long folder is a long URL
        for line in BytesIO(page.content):
            name, is_folder = _entry(line.rstrip(b"\r\n")) if len(line) <= _LINE_BYTES else (b"", False)
            if name and name not in (b".", b"..") and b"/" not in name:
                page.links.pages.append(f"{folder}{quote(name, safe=_PATH)}{'/' if is_folder else ''}")
                room -= len(page.links.pages[-1])
                if room < 0 or len(page.links.pages) >= MOST_LINKS:
                    break


def _item(line: bytes) -> str:
    """Return the URL of a menu line, empty if it has none."""
    fields = line.split(b"\t")
    if len(fields) < 4 or not line or line[0] in _NOT_FETCHED:
        return ""
    selector, host, port = fields[1], fields[2].strip(), fields[3].strip()
    if line[:1] == b"h" and selector.lstrip(b"/")[:4].upper() == b"URL:":
        return selector.lstrip(b"/")[4:].decode("utf-8", "replace").strip()
    if not host or not port.isdigit():
        return ""
    return f"gopher://{host.decode('utf-8', 'replace')}:{port.decode()}/{chr(line[0])}{quote(selector, safe=_PATH)}"


def _entry(line: bytes) -> tuple[bytes, bool]:
    """Return the name on a line of a listing, and whether it is a directory's. The name is empty if the line has
    none."""
    if (match := _UNIX.match(line)) and (dated := _DATED.search(line, match.end())):
        kind, name = match[1], dated[1]
        return (name.partition(b" -> ")[0] if kind == b"l" else name), kind == b"d"
    if match := _WINDOWS.fullmatch(line):
        return match[2], match[1] is not None
    if match := _MLSD.fullmatch(line):
        kind_of = _TYPE.search(match[1])
        kind = kind_of[1].lower() if kind_of else b"file"
        return (match[2] if kind in (b"file", b"dir") else b""), kind == b"dir"
    return b"", False
