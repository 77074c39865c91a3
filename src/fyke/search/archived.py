"""A page out of the archive: from a row of the pages table to a page understood.

The indexer calls `read` for each page to be indexed. The record is read with fastwarc where the row says it
lies; its bytes are decoded and parsed by the rooms that did so when it was fetched, so indexing and crawling
agree on what a page says. Invariant: what cannot be read is None and counted, never raised: one bad record costs one
page.
"""

from collections import OrderedDict
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecordType
from isal import isal_zlib

from fyke.archive.warc_reading import taken_apart
from fyke.core.config import FetchSection
from fyke.core.decoding import decode_body
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import Exchange, Page, Visit
from fyke.harvest import Parser

OPEN_FILES = 8
_GZIP = 31  # the number that zlib has for it
_ISAL_ERROR: Any = isal_zlib.error  # its stub takes the class for an instance
_WANTED = (WarcRecordType.response, WarcRecordType.resource)


class ArchiveReader:
    """The archive of the crawl directory `crawl`; `product` is our name in robots directives."""

    def __init__(self, crawl: Path, product: str = "fyke") -> None:
        self._crawl = crawl
        self._parser = Parser(product=product, shared=True)
        self._limits = FetchSection()
        self._files: OrderedDict[str, BinaryIO] = OrderedDict()
        self.unreadable = 0  # records so far that were not there or not whole

    def __repr__(self) -> str:
        return f"ArchiveReader({str(self._crawl)!r}, {len(self._files)} files open)"

    def read(self, row: dict[str, Any]) -> Page | None:
        """The page that `row` of the pages table archived; None for a revisit, or a record that cannot be read."""
        exchange = self._exchange(row)
        return None if exchange is None else self._parser.parse(exchange, decode_body(exchange, self._limits).content)

    def _exchange(self, row: dict[str, Any]) -> Exchange | None:
        try:
            packed = self._bytes(row["warc_file"], row["warc_offset"], row["warc_length"])
            member = isal_zlib.decompress(packed, wbits=_GZIP)  # by itself, as it checks length and CRC-32
            record = next(iter(ArchiveIterator(BytesIO(member), parse_http=False)), None)
            if record is None or record.headers.get("WARC-Target-URI") != row["url"]:
                self.unreadable += 1
                return None
            if record.record_type not in _WANTED:  # a revisit: its body is where it was met first
                return None
            block: bytes = record.reader.read()
        except (OSError, ValueError, EOFError, _ISAL_ERROR):
            self.unreadable += 1
            return None
        head, body = taken_apart(block) if record.is_http else (b"", block)
        at = locate(row["url"])
        visit = Visit(row["url"], at.key, at.host, at.domain)
        return Exchange(
            visit, Outcome(row["outcome"]), row["fetched_at"].timestamp(), 0.0, status=row["status"], head=head,
            body=Document(body),
        )  # fmt: skip

    def _bytes(self, name: str, offset: int, length: int) -> bytes:
        file = self._files.get(name)
        if file is None:
            while len(self._files) >= OPEN_FILES:
                self._files.popitem(last=False)[1].close()
            file = self._files[name] = (self._crawl / name).open("rb")
        file.seek(offset)
        return file.read(length)

    def close(self) -> None:
        """Let go of the files."""
        while self._files:
            self._files.popitem()[1].close()
