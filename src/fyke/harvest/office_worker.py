"""Reads office documents and EPUB books, which are zipped XML. A part of the program `document_worker`, which loads it.

From OOXML (docx, pptx, xlsx), OpenDocument (odt, ods, odp) and EPUB it takes text, title, and links that lead
elsewhere. The standard library's zipfile and expat are enough for that. It imports nothing of Fyke.

Bounded: all that is unfolded counts against `UNFOLDED_BYTES`, however nested or repeated. Entities are refused, so that
none grows. A part that is not XML gives what stood before its fault.
"""

import io
import posixpath
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from html.entities import html5
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat

UNFOLDED_BYTES = 64 << 20
CHUNK_BYTES = 64 << 10
WORK_S = 2.0  # of processor time for a document
PASSED_S = 4.0  # by the clock, on a busy machine: less than the caller waits
MOST_DEPTH = 1000  # of nested elements
MOST_CHARS = 1 << 20
MOST_LINKS = 10_000
MOST_STRINGS = 1 << 20  # that cells of a workbook share
URL_CHARS = 4 << 10
# What reading a damaged document raises beside ValueError and MemoryError.
FAULTS = (
    *(zipfile.BadZipFile, zlib.error, struct.error, expat.ExpatError),
    *(RuntimeError, LookupError, OverflowError, EOFError, OSError),
)

_PACKINGS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_WORD_PART = re.compile(r"word/(?:document|footnotes|endnotes|comments)\d{0,6}\.xml")  # SharePoint numbers them
_SLIDE = re.compile(r"ppt/slides/slide(\d{1,6})\.xml")
_SHEET = re.compile(r"xl/worksheets/sheet(\d{1,6})\.xml")
_RELATIONS = re.compile(r"(?:word|ppt/slides|xl/worksheets)/_rels/[^/]+\.rels")
_ELSEWHERE = re.compile(r"(?:https?|ftp|gopher)://", re.IGNORECASE)
_BLOCKS = [
    *("p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "tr", "dt", "dd", "br", "hr", "pre", "blockquote", "title"),
    *("section", "article", "header", "footer", "table", "ul", "ol", "dl", "figcaption"),
]
_ODF_BREAKS = {"p": "\n", "h": "\n", "table-cell": "\t", "tab": "\t", "line-break": "\n"}


class _LimitReached(Exception):
    """No more of the document may be read."""


class _Package:
    """The parts of a document, read within its limits, and what they said."""

    def __init__(self, data: bytes) -> None:
        self._began, self._began_at = time.process_time(), time.monotonic()
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self.names = dict.fromkeys(self._zip.namelist())  # there may be very many
        self._left = UNFOLDED_BYTES
        self._texts: list[str] = []
        self._chars = 0
        self.title = ""
        self.links: dict[str, None] = {}

    def say(self, text: str) -> None:
        self._texts.append(text)
        self._chars += len(text)
        if self._chars > MOST_CHARS:
            raise _LimitReached

    def link(self, url: str) -> None:
        if len(self.links) < MOST_LINKS and 0 < len(url) <= URL_CHARS:
            self.links[url] = None

    @property
    def text(self) -> str:
        lines = (line.rstrip() for line in "".join(self._texts)[:MOST_CHARS].split("\n"))
        return "\n".join(filter(None, lines))

    def _use(self, size_bytes: int) -> None:
        """Count `size_bytes` more as unfolded. Raises _LimitReached if that, or the time taken, is too much."""
        self._left -= size_bytes
        is_late = time.process_time() - self._began > WORK_S or time.monotonic() - self._began_at > PASSED_S
        if self._left < 0 or is_late:
            raise _LimitReached

    def parse(self, name: str, part: "_XmlPart") -> None:
        """Feed the XML file `name`, if present, to `part`. A part without a byte takes time as well."""
        self._use(0)
        if name not in self.names or self._zip.getinfo(name).compress_type not in _PACKINGS:
            return
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = part.started, part.ended
        parser.CharacterDataHandler = part.said
        parser.EntityDeclHandler = _refuse
        parser.UseForeignDTD(True)  # otherwise a page of a book ends at an &nbsp; that it does not declare
        parser.SkippedEntityHandler = lambda named, _: part.said(_character(named))
        with self._zip.open(name) as file:
            while chunk := file.read(CHUNK_BYTES):
                self._use(len(chunk))
                try:
                    parser.Parse(chunk, False)
                except expat.ExpatError:
                    return


def _character(named: str) -> str:
    """Return what HTML calls `named`; a blank for `nbsp`, and for other names."""
    return html5.get(f"{named};", " ").replace("\xa0", " ")


def _refuse(*_: object) -> None:
    raise ValueError("it declares entities")


class _XmlPart:
    """A reader of text `inside` some elements, with `breaks` where others end, and without those to `skip`."""

    def __init__(self, package: _Package, inside: str, breaks: Mapping[str, str], skip: str = "") -> None:
        self.package = package
        self._inside, self._breaks, self._skip = set(inside.split()), breaks, set(skip.split())
        self._open = self._depth = self._skipped = 0

    def started(self, name: str, attributes: Mapping[str, str]) -> None:
        self._open += 1
        if self._open > MOST_DEPTH:
            raise _LimitReached
        local = name.rpartition(" ")[2]
        self._skipped += local in self._skip
        self._depth += local in self._inside
        if not self._skipped:
            self.begin(local, {key.rpartition(" ")[2]: value for key, value in attributes.items()})

    def begin(self, local: str, attributes: Mapping[str, str]) -> None:
        """Handle the begin of an element: a link, or a space."""
        if local == "a" and _ELSEWHERE.match(url := attributes.get("href", "")):
            self.package.link(url)
        elif local == "s" and self._depth:
            self.package.say(" ")

    def ended(self, name: str) -> None:
        self._open -= 1
        local = name.rpartition(" ")[2]
        self._skipped -= local in self._skip
        self._depth -= local in self._inside
        if local in self._breaks and not self._skipped:
            self.package.say(self._breaks[local])

    def said(self, text: str) -> None:
        if self._depth and not self._skipped:
            self.package.say(text)


class _Noted(_XmlPart):
    """Titles, and the attributes of some elements, in order."""

    def __init__(self, package: _Package, elements: str) -> None:
        super().__init__(package, "title", {})
        self._elements = set(elements.split())
        self.noted: list[tuple[str, Mapping[str, str]]] = []

    def begin(self, local: str, attributes: Mapping[str, str]) -> None:
        if local in self._elements and len(self.noted) < MOST_LINKS:
            self.noted.append((local, attributes))

    def said(self, text: str) -> None:
        if self._depth and len(self.package.title) < URL_CHARS:
            self.package.title += text


class _Relations(_XmlPart):
    """The links of a part, noted as they come, so that a limit within them keeps those before."""

    def begin(self, local: str, attributes: Mapping[str, str]) -> None:
        is_link = local == "Relationship" and attributes.get("Type", "").endswith("/hyperlink")
        if is_link and attributes.get("TargetMode") == "External":
            self.package.link(attributes.get("Target", ""))


class _Strings(_XmlPart):
    """The strings that cells of a workbook share."""

    def __init__(self, package: _Package) -> None:
        super().__init__(package, "t", {}, "rPh")
        self.strings: list[str] = []

    def begin(self, local: str, attributes: Mapping[str, str]) -> None:
        if local == "si":
            if len(self.strings) == MOST_STRINGS:
                raise _LimitReached
            self.strings.append("")

    def said(self, text: str) -> None:
        if self._depth and not self._skipped and self.strings:
            self.strings[-1] += text


class _Sheet(_XmlPart):
    """Rows of cells, with tabs between the cells."""

    def __init__(self, package: _Package, strings: list[str]) -> None:
        super().__init__(package, "v t", {"c": "\t", "row": "\n"}, "rPh f")
        self._strings = strings
        self._number: str | None = None  # of the shared string that a cell names, as far as read

    def begin(self, local: str, attributes: Mapping[str, str]) -> None:
        if local == "c":
            self._number = "" if attributes.get("t") == "s" else None

    def said(self, text: str) -> None:
        if self._number is None:
            super().said(text)
        elif self._depth:
            self._number = (self._number + text)[:9]

    def ended(self, name: str) -> None:
        if name.rpartition(" ")[2] == "v" and self._number is not None:
            at = int(self._number) if self._number.isascii() and self._number.isdigit() else len(self._strings)
            self.package.say(self._strings[at] if at < len(self._strings) else "")
        super().ended(name)


def read_office(data: bytes) -> dict[str, Any]:
    """Return what the document `data` says, as far as time and limits allow. Raises FAULTS, ValueError, MemoryError."""
    package = _Package(data)
    cut = False  # whether the end was not read
    try:
        for read in (_read_ooxml, _read_odf, _read_epub):
            read(package)
    except _LimitReached:
        cut = True
    return {"title": package.title, "text": package.text, "links": [*package.links], "cut": cut}


def _read_ooxml(package: _Package) -> None:
    if "[Content_Types].xml" not in package.names:
        return
    package.parse("docProps/core.xml", _Noted(package, ""))
    for name in filter(_RELATIONS.fullmatch, package.names):
        package.parse(name, _Relations(package, "", {}))
    words = {"p": "\n", "tab": "\t", "br": "\n", "cr": "\n"}
    for name in filter(_WORD_PART.fullmatch, package.names):
        package.parse(name, _XmlPart(package, "t", words, "pPr Fallback"))
    for name in _numbered(_SLIDE, package.names):
        package.parse(name, _XmlPart(package, "t", words, "pPr Fallback"))
    strings = _Strings(package)
    package.parse("xl/sharedStrings.xml", strings)
    for name in _numbered(_SHEET, package.names):
        package.parse(name, _Sheet(package, strings.strings))


def _numbered(pattern: re.Pattern[str], names: Iterable[str]) -> list[str]:
    found = [(int(match[1]), match[0]) for match in map(pattern.fullmatch, names) if match]
    return [name for _, name in sorted(found)]


def _read_odf(package: _Package) -> None:
    if "content.xml" in package.names:
        package.parse("meta.xml", _Noted(package, ""))
        package.parse("content.xml", _XmlPart(package, "p h", _ODF_BREAKS, "tracked-changes"))


def _read_epub(package: _Package) -> None:
    container = _Noted(package, "rootfile")
    package.parse("META-INF/container.xml", container)
    for _, root in container.noted[:1]:
        path = root.get("full-path", "")
        book = _Noted(package, "item itemref")
        package.parse(path, book)
        for name in _chapters(book, path.rpartition("/")[0]):
            package.parse(name, _XmlPart(package, "body", dict.fromkeys(_BLOCKS, "\n"), "script style"))


def _chapters(book: _Noted, folder: str) -> Iterable[str]:
    """Return the files of a book in reading order, each once. They are named as relative URLs."""
    files = {said.get("id"): said.get("href", "") for kind, said in book.noted if kind == "item"}
    order = dict.fromkeys(files.get(said.get("idref"), "") for kind, said in book.noted if kind == "itemref")
    paths = (f"/{folder}/{unquote(href.partition('#')[0])}" for href in filter(None, order))
    return dict.fromkeys(posixpath.normpath(path).lstrip("/") for path in paths)
