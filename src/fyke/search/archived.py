"""A page out of the archive: from a row of the pages table to a page understood.

The indexer calls `read` for each page to be indexed. fastwarc reads the record where the row says it lies. Its bytes
are decoded and parsed by the rooms that did so when it was fetched, so indexing and crawling agree on what a page says.
Invariant: a record that cannot be read is None and counted, never raised, so that it costs one page. Bounded: of a
record, and of the body in it, 1 MB is in memory, the rest in a temporary file.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Any, BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecordType
from isal import isal_zlib

from fyke.archive.captures import Captures
from fyke.archive.records import GZIP, Original
from fyke.archive.warc_reading import HEADER_BYTES, taken_apart
from fyke.core.closing import Closing
from fyke.core.codings import ISAL_ERROR
from fyke.core.config import FetchSection
from fyke.core.decoding import decode_body
from fyke.core.document import MEMORY_BYTES, PIECE_BYTES, Document
from fyke.core.memory import Trimmer
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.visits import Exchange, visit_to
from fyke.disk.files import allowed, open_file, writing
from fyke.harvest import Parser

COLUMNS = ("url", "outcome", "status", "fetched_at", "warc_file", "warc_offset", "warc_length")  # that `read` needs
OPEN_FILES = 8
_WANTED = (WarcRecordType.response, WarcRecordType.resource)


class ArchiveReader(Closing):
    """The archive of the crawl directory `crawl`; `product` is our name in robots directives."""

    def __init__(self, crawl: Path, product: str = "fyke") -> None:
        self._crawl = crawl
        self._captures = Captures(crawl)
        self._parser = Parser(product=product, shared=True)
        self._most_bytes = FetchSection().max_body_bytes
        self._files: OrderedDict[str, BinaryIO] = OrderedDict()
        self._trimmer = Trimmer()
        self._was_large = False  # the last page
        self.unreadable = 0  # records so far that were missing or incomplete

    def __repr__(self) -> str:
        return f"ArchiveReader({str(self._crawl)!r}, {len(self._files)} files open)"

    def read(self, row: dict[str, Any]) -> Page | None:
        """Return the page that `row` (with `COLUMNS` at least) archived, also for a revisit. None if there is no whole
        record.

        Raises DirectoryError if this user may not read the archive.
        """
        if self._was_large:
            self._trimmer.trim()  # what was made of it, which later pages would keep
        exchange = self._exchange(row)
        if exchange is None:
            return None
        page = self._parser.page_of(exchange, decode_body(exchange, self._most_bytes).content)
        self._parser.process(page)
        self._was_large = page.size_bytes > PIECE_BYTES
        if self._was_large:
            self._trimmer.trim()
        return page

    def _exchange(self, row: dict[str, Any]) -> Exchange | None:
        try:
            with self._record((row["warc_file"], row["warc_offset"], row["warc_length"]), row["url"]) as record:
                found = self._message(record)
        except (OSError, ValueError, EOFError, ISAL_ERROR):
            found = None
        if found is None:
            self.unreadable += 1
            return None
        head, body = found
        visit = visit_to(row["url"])
        return Exchange(
            visit, Outcome(row["outcome"]), row["fetched_at"].timestamp(), 0.0, status=row["status"], head=head,
            body=body,
        )  # fmt: skip

    @contextmanager
    def _record(self, place: tuple[str, int, int], url: str) -> Iterator[Any]:
        """Yield the record of `url` at a place. Raises ValueError and others if it is missing or incomplete."""
        with SpooledTemporaryFile(MEMORY_BYTES) as member:
            for piece in self._unpacked(*place):
                with writing(Path(gettempdir())):
                    member.write(piece)
            with writing(Path(gettempdir())):
                member.seek(0)
            record = next(iter(ArchiveIterator(member, parse_http=False)), None)
            if record is None or record.headers.get("WARC-Target-URI") != url:
                raise ValueError("another record")
            yield record

    def _message(self, record: Any) -> tuple[bytes, Document] | None:
        """Return head and body. A revisit has the body of its original, and its own head unless that is empty."""
        start: bytes = record.reader.read(PIECE_BYTES)
        if record.record_type is WarcRecordType.revisit:
            found = self._original(record)
            return (start or found[0], found[1]) if found else None
        if record.record_type not in _WANTED:
            return None
        head, start = taken_apart(start) if record.is_http else (b"", start)
        return head, _document(chain([start], iter(lambda: record.reader.read(PIECE_BYTES), b"")))

    def _original(self, revisit: Any) -> tuple[bytes, Document] | None:
        """Return head and body of the record that `revisit` stands for; None if the archive no longer has it."""
        names = ("WARC-Refers-To-Target-URI", "WARC-Refers-To-Date", "WARC-Payload-Digest")
        at = self._captures.original(Original(*(revisit.headers.get(name, "") for name in names)))
        if at is None:
            return None
        with self._record((at.file, at.offset, at.length), at.url) as original:
            return None if original.record_type is WarcRecordType.revisit else self._message(original)

    def _unpacked(self, name: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the record at a place in pieces, at most the longest that a page may have. Raises ValueError and others
        if it does not end."""
        file = self._file(name)
        file.seek(offset)
        left = min(length, os.fstat(file.fileno()).st_size)  # an index may say any length
        room = self._most_bytes + HEADER_BYTES
        unpacker = isal_zlib.decompressobj(wbits=GZIP)  # apart from fastwarc, because this checks length and CRC-32
        while room and not unpacker.eof:
            packed = unpacker.unconsumed_tail
            if not packed:
                packed = file.read(min(left, PIECE_BYTES))
                left -= len(packed)
            piece = unpacker.decompress(packed, min(room, PIECE_BYTES))
            if not packed and not piece:
                raise ValueError("a record that does not end")
            room -= len(piece)
            yield piece

    def _file(self, name: str) -> BinaryIO:
        file = self._files.get(name)
        if file is None:
            while len(self._files) >= OPEN_FILES:
                self._files.popitem(last=False)[1].close()
            with allowed(self._crawl / name):
                file = self._files[name] = open_file(self._crawl / name)
        return file

    def close(self) -> None:
        """Let go of the files, and of the process that reads documents. A later `read` takes them up again."""
        self._parser.close()
        while self._files:
            self._files.popitem()[1].close()


def _document(pieces: Iterable[bytes]) -> Document:
    """Return a document of `pieces`. Raises DiskFull."""
    document = Document()
    for piece in pieces:
        with writing(Path(gettempdir())):
            document.write(piece)
    return document
