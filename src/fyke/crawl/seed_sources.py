"""Where seeds come from besides the command line: lists, sitemaps, archives, other crawls.

Called by `fyke crawl --seeds`. A source is known by its content, not its name: text with a URL or host a line, a
sitemap in XML or a CDXJ index, each also in gzip and, with a byte order mark, in UTF-16; a WACZ file, or the directory
of a crawl. `SeedSources` gives their URLs in canonical form, one after the other.

Invariant: a source is streamed, whatever its length; only a sitemap is read whole, up to a limit. Entries that are no
URLs are left out, counted, and told with the place of the first.
"""

import gzip
import json
import lzma
import re
import sys
import zipfile
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedReader, BytesIO, FileIO, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.json import ParseOptions, ReadOptions, read_json

from fyke.archive.directory import CrawlDirectory
from fyke.archive.lost import require_rows
from fyke.archive.reading import scan_table
from fyke.core.errors import BadUrl, ConfigurationError, DirectoryError
from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES, decoded
from fyke.core.seeds import bad_url, seed_url
from fyke.core.text_files import require_writer
from fyke.core.urls import text_of
from fyke.harvest.charset import charset_of
from fyke.harvest.sitemap import MAX_UNFOLDED_BYTES, ROOTS, sitemap_links
from fyke.harvest.xmlscan import root_of

STDIN = "-"
LINE_BYTES = 1 << 16  # a longer line is no URL
PAGE_BYTES = 32 << 20  # of a page in a WACZ, whose text may stand beside its URL
PARSED_BYTES = 1 << 20  # of a page in a WACZ that Python reads
NAMES_BYTES = 8 << 20  # of the list of files in a WACZ, some 100,000: zipfile takes nine times as much memory
SHOWN_CHARS = 80

_CDXJ = re.compile(r"\S+ \d{4,17} (\{.*)")
_URL_ALONE = ParseOptions(pa.schema([("url", pa.string())]), unexpected_field_behavior="ignore")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_PEEKED = 1 << 12
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


class SeedSources:
    """The URLs of `names`: files, `-` for stdin, and directories of crawls. Iterate once."""

    def __init__(self, names: Sequence[str], schemes: Collection[str]) -> None:
        """`schemes`: those that the crawl fetches."""
        self._names = names
        self._schemes = schemes
        self.seeds = 0
        self.refused = 0
        self._first_refused = ""

    def __repr__(self) -> str:
        return f"SeedSources({', '.join(self._names)})"

    def __iter__(self) -> Iterator[str]:
        """Yield canonical URLs, without repeats in a row. Raises ConfigurationError for a source without any."""
        last = ""
        for name in self._names:
            before = self.seeds
            for place, text in _texts_of(name):
                url = self._url(name, place, text)
                if url and url != last:
                    self.seeds += 1
                    last = url
                    yield url
            if self.seeds == before:
                why = f": {self._first_refused}" if self._first_refused else ""
                raise ConfigurationError(f"--seeds {name}: no URL in it{why}")

    def _url(self, name: str, place: str, text: str) -> str:
        try:
            if isinstance(text, _NoUrl):
                raise bad_url(text, "it is too long, or the entry has no URL")
            return seed_url(text, self._schemes)
        except BadUrl as error:
            self.refused += 1
            self._first_refused = self._first_refused or f"{name}, {place}: {error}"
            return ""

    @property
    def complaint(self) -> str:
        """What was left out, in a line; empty if nothing was."""
        if not self.refused:
            return ""
        lines = (
            "1 entry is not a URL and was" if self.refused == 1 else f"{self.refused:,} entries are not URLs and were"
        )
        return f"of the seeds, {lines} left out; the first: {self._first_refused}"


class _NoUrl(str):
    """An entry that is no URL, whatever it looks like: its end was not read, or it is no entry at all."""

    __slots__ = ()


def _texts_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield the entries of one source: where each stands, and what it says."""
    try:
        if name != STDIN and Path(name).is_dir():
            yield from _of_crawl(Path(name))
            return
        if name == STDIN and sys.stdin is None:
            raise EOFError("stdin is closed")
        if name != STDIN:
            require_writer(Path(name))
        with ExitStack() as stack:
            file = sys.stdin.buffer if name == STDIN else stack.enter_context(Path(name).open("rb"))
            yield from _of_stream(cast("BufferedReader", file), name)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError) as error:
        # RuntimeError: a ZIP file with a password, or packed in an unknown way
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigurationError(f"--seeds {name} cannot be read: {reason}") from None


def _of_stream(file: BufferedReader, name: str, *, packed: bool = False) -> Iterator[tuple[str, str]]:
    head = file.peek(_PEEKED)
    if head.startswith(_GZIP) and not packed:
        with gzip.open(file) as unpacked:
            yield from _of_stream(BufferedReader(cast("RawIOBase", unpacked)), name, packed=True)
    elif head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        with BufferedReader(_InUtf8(file)) as text:
            yield from _of_stream(cast("BufferedReader", text), name, packed=True)
    elif head.startswith(_ZIP):
        if name == STDIN:
            raise ConfigurationError(f"--seeds {name}: a WACZ cannot be read from a pipe; name the file")
        with _ShortReads(FileIO(name)) as seekable, zipfile.ZipFile(seekable) as bundle:
            yield from _of_wacz(bundle, name)
    elif head.lstrip(BOM_UTF8 + b" \t\r\n").startswith(b"<"):
        yield from _of_sitemap(file.read(MAX_UNFOLDED_BYTES), name)
    else:
        yield from _of_lines(file)


class _ShortReads(BufferedReader):
    """A ZIP file whose list of files, which zipfile reads at once, may not be long."""

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes. Raises BadZipFile if very many are asked for."""
        if size is not None and size > NAMES_BYTES:
            raise zipfile.BadZipFile(f"its list of files is longer than {NAMES_BYTES >> 20} MB")
        return super().read(size)


class _InUtf8(RawIOBase):
    """The text of `file`, in UTF-16 with a byte order mark, as UTF-8."""

    def __init__(self, file: BufferedReader) -> None:
        self._text = TextIOWrapper(file, "utf-16", "replace", newline="")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill `buffer`, which is longer than any letter."""
        piece = self._text.read(len(buffer) // 4).encode()
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._text.close()
        super().close()


def _lines(file: IO[bytes], most: int) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the number of each line of `file`, its first `most` bytes, and whether these are all."""
    number = 0
    while line := file.readline(most):
        number += 1
        whole = line.endswith(b"\n") or len(line) < most
        yield number, line, whole
        while not whole:
            rest = file.readline(LINE_BYTES)
            whole = not rest or rest.endswith(b"\n")


def _of_lines(file: IO[bytes]) -> Iterator[tuple[str, str]]:
    for number, line, whole in _lines(file, LINE_BYTES):
        said = text_of(line.removeprefix(BOM_UTF8) if number == 1 else line).strip()
        capture = _CDXJ.fullmatch(said) if whole else None
        if capture:
            text = _page_of(capture[1])
        elif said.startswith("!"):  # the header of a CDXJ
            text = ""
        else:
            text = _COMMENT.sub("", said).strip()
            if not whole and len(text) == len(said):  # otherwise the rest is comment too
                text = _NoUrl(said)
        if text:
            yield f"line {number:,}", text


def _page_of(capture: str) -> str:
    """Return the URL of a capture in a CDXJ if it is of a page; empty otherwise, because images are no seeds."""
    try:
        fields = json.loads(capture)
        kind, status, url = fields.get("mime", "text/html"), fields.get("status", "200"), fields["url"]
    except (ValueError, KeyError, AttributeError, RecursionError):
        return capture[:SHOWN_CHARS]
    return str(url) if str(kind) in HTML_TYPES and str(status) == "200" else ""


def _of_sitemap(content: bytes, name: str) -> Iterator[tuple[str, str]]:
    root = root_of(content)
    if root not in ROOTS:
        raise ConfigurationError(f"--seeds {name}: XML or HTML, but not a sitemap: its outermost element is {root!r}")
    charset = charset_of(content)

    def in_utf8() -> Iterator[bytes]:
        return (text.encode("utf-8", "replace") for text in decoded(BytesIO(content), charset))

    found, _ = sitemap_links(in_utf8, "")
    if found and not re.search(rb"</(?:[\w.-]+:)?%s\s*>" % root.encode(), content):
        most = f", or is longer than {MAX_UNFOLDED_BYTES >> 20} MB" * (len(content) == MAX_UNFOLDED_BYTES)
        raise ConfigurationError(
            f"--seeds {name} breaks off before </{root}>{most}: get the whole file, or close the element"
        )
    for number, url in enumerate(found, 1):
        yield f"entry {number:,}", url


def _of_wacz(bundle: zipfile.ZipFile, wacz: str) -> Iterator[tuple[str, str]]:
    pages = [name for name in bundle.namelist() if name.startswith("pages/") and name.endswith(".jsonl")]
    if not pages:
        raise ConfigurationError(f"--seeds {wacz}: a ZIP file without a list of pages, so not a WACZ")
    for name in pages:
        with bundle.open(name) as file:
            for number, line, _ in _lines(file, PAGE_BYTES):
                try:
                    url = _url_of(line)
                except (ValueError, RecursionError):
                    url = _NoUrl(line.decode("utf-8", "replace").strip())
                if url:
                    yield f"{name}, line {number:,}", url


def _url_of(line: bytes) -> str:
    """Return the URL of a page of a WACZ, empty if it has none. Python may take thirty times the length of a line, so
    a long one is read by Arrow, which makes nothing of the rest. Raises ValueError if no URL can be read."""
    if len(line) <= PARSED_BYTES:
        page = json.loads(line)
        if not isinstance(page, dict):
            raise ValueError
        return str(page.get("url", ""))
    size = ReadOptions(use_threads=False, block_size=len(line) + 1)
    urls = read_json(pa.BufferReader(line), size, _URL_ALONE).column("url").to_pylist()
    return urls[0] or ""


def _of_crawl(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the pages that another crawl fetched."""
    wanted = (ds.field("outcome") == Outcome.OK.value) & ~ds.field("kind").isin(["requisite", "listing"])
    number = 0
    try:
        require_rows(CrawlDirectory(folder), "pages")
        for batch in scan_table(folder, "pages", ["url"], wanted):
            for url in batch.column("url").to_pylist():
                number += 1
                yield f"page {number:,}", url
    except DirectoryError as error:
        raise ConfigurationError(f"--seeds {folder}: {error}") from None
