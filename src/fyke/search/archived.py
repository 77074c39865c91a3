"""A page out of the archive: from a row of the pages table to a page understood.

The indexer calls `read` for each page to be indexed. fastwarc reads the record where the row says it lies. Its bytes
are decoded and parsed by the rooms that did so when it was fetched, so indexing and crawling agree on what a page says.
Invariant: a record that cannot be read is None and counted, never raised, so that it costs one page.
"""

import os
from collections import OrderedDict
from io import BytesIO
from pathlib import Path
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
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Page, visit_to
from fyke.disk.files import allowed, open_file
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
        self.unreadable = 0  # records so far that were missing or incomplete

    def __repr__(self) -> str:
        return f"ArchiveReader({str(self._crawl)!r}, {len(self._files)} files open)"

    def read(self, row: dict[str, Any]) -> Page | None:
        """Return the page that `row` (with `COLUMNS` at least) archived, also for a revisit. None if there is no whole
        record.

        Raises DirectoryError if this user may not read the archive.
        """
        exchange = self._exchange(row)
        if exchange is None:
            return None
        return self._parser.parse(exchange, decode_body(exchange, self._most_bytes).content)

    def _exchange(self, row: dict[str, Any]) -> Exchange | None:
        try:
            record = self._record((row["warc_file"], row["warc_offset"], row["warc_length"]), row["url"])
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
            body=Document(body),
        )  # fmt: skip

    def _record(self, place: tuple[str, int, int], url: str) -> Any:
        """Return the record of `url` at a place. Raises ValueError and others if it is missing or incomplete."""
        unpacker = isal_zlib.decompressobj(wbits=GZIP)  # apart from fastwarc, because this checks length and CRC-32
        packed = self._bytes(*place)
        member = unpacker.decompress(packed, self._most_bytes + HEADER_BYTES)
        if not unpacker.eof and not unpacker.unconsumed_tail:
            raise ValueError("a record that does not end")
        record = next(iter(ArchiveIterator(BytesIO(member), parse_http=False)), None)
        if record is None or record.headers.get("WARC-Target-URI") != url:
            raise ValueError("another record")
        return record

    def _message(self, record: Any) -> tuple[bytes, bytes] | None:
        """Return head and body. A revisit has the body of its original, and its own head unless that is empty."""
        block: bytes = record.reader.read()
        if record.record_type is WarcRecordType.revisit:
            original = self._original(record)
            is_there = original is not None and original.record_type is not WarcRecordType.revisit
            found = self._message(original) if is_there else None
            return (block or found[0], found[1]) if found else None
        if record.record_type not in _WANTED:
            return None
        return taken_apart(block) if record.is_http else (b"", block)

    def _original(self, revisit: Any) -> Any | None:
        """Return the record that `revisit` stands for; None if the archive no longer has it."""
        names = ("WARC-Refers-To-Target-URI", "WARC-Refers-To-Date", "WARC-Payload-Digest")
        at = self._captures.original(Original(*(revisit.headers.get(name, "") for name in names)))
        return None if at is None else self._record((at.file, at.offset, at.length), at.url)

    def _bytes(self, name: str, offset: int, length: int) -> bytes:
        file = self._files.get(name)
        if file is None:
            while len(self._files) >= OPEN_FILES:
                self._files.popitem(last=False)[1].close()
            with allowed(self._crawl / name):
                file = self._files[name] = open_file(self._crawl / name)
        file.seek(offset)
        return file.read(min(length, os.fstat(file.fileno()).st_size))  # an index may say any length

    def close(self) -> None:
        """Let go of the files."""
        while self._files:
            self._files.popitem()[1].close()
