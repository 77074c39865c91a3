"""The tables being written: `pages`, `links`, and those that are extracted from pages.

The loop calls `PagesTable.add` once a visit that ended, `LinksTable.add` once for the links of a batch of pages, and
`LinksTable.write` while too many links are in memory. The tables gather a few thousand rows in memory;
`fyke.archive.table_files` makes files of them and keeps them over a crash. Invariant: `state()` includes every row
added before it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.archive.records import KINDS
from fyke.archive.schemas import LINKS, PAGES, journalled
from fyke.archive.table_files import TableFiles, series
from fyke.archive.warc import RecordPlace
from fyke.core.batches import U64
from fyke.core.pages import Page
from fyke.core.urls import pay_level_domain
from fyke.core.visits import Exchange

PAGES_IN_MEMORY = 2_000
LINKS_IN_MEMORY = 16_000
BYTES_IN_MEMORY = 4 << 20  # of rows: a link below a long base is as long as the base
PIECE_BYTES = 1 << 20  # of links, in one slice of a batch
LINKS_PER_PAGE = 20  # a file of links has this many times the rows of a file of pages

PAGE_ROWS = journalled(PAGES)


class _JournaledTable(ABC):
    """A table with at most `in_memory` rows or `BYTES_IN_MEMORY` in memory, and files for the rest."""

    def __init__(
        self, folder: Path, name: str, schema: pa.Schema, table_rows: int, part: int, *, in_memory: int
    ) -> None:
        self._files = TableFiles(folder, series(name, part), schema, table_rows)
        self._in_memory = in_memory
        self._forget()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rows} rows, {self._files!r})"

    @property
    def rows(self) -> int:
        """Rows of the table, including those in memory."""
        return self._files.rows + self._waiting_rows

    def _put(self, pieces: Sequence[Any], rows: int, size_bytes: int) -> None:
        self._gather(pieces, rows, size_bytes)
        if self._is_full:
            self.flush()

    def _gather(self, pieces: Sequence[Any], rows: int, size_bytes: int) -> None:
        self._waiting += pieces
        self._waiting_rows += rows
        self._waiting_bytes += size_bytes

    @property
    def _is_full(self) -> bool:
        """True if more rows are in memory than should be."""
        return self._waiting_rows >= self._in_memory or self._waiting_bytes >= BYTES_IN_MEMORY

    def flush(self) -> None:
        """Hand the rows in memory to the journal."""
        if self._waiting:
            self._files.append(self._joined(self._waiting))
        self._forget()

    def _forget(self) -> None:
        self._waiting: list[Any] = []
        self._waiting_rows = self._waiting_bytes = 0

    @abstractmethod
    def _joined(self, pieces: list[Any]) -> pa.RecordBatch: ...

    def state(self) -> dict[str, Any]:
        """Return the table's part of a checkpoint. Raises DiskFull or DirectoryError, as all methods."""
        self.flush()
        return self._files.state()

    def dirty_files(self) -> list[Path]:
        """Return what must be fsynced for the last `state` to hold."""
        return self._files.dirty_files()

    def durable(self) -> None:
        """Note that the manifest with the last `state` is safe."""
        self._files.durable()

    def abandon(self) -> None:
        """Let go of the files, as they are."""
        self._files.abandon()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to the rows of `state`; an empty mapping is a crawl not begun. Raises StateDamaged."""
        self._forget()
        self._files.restore(state)

    def close(self) -> None:
        """Seal all rows; take a last `state` after it, so that the journals can go."""
        self.flush()
        self._files.close()


class PagesTable(_JournaledTable):
    """The table `pages` of the crawl directory `folder`, `table_rows` rows to a file."""

    def __init__(self, folder: Path, table_rows: int, part: int = 0) -> None:
        super().__init__(folder, "pages", PAGES, table_rows, part, in_memory=PAGES_IN_MEMORY)

    def add(
        self,
        exchange: Exchange,
        place: RecordPlace | None = None,
        page: Page | None = None,
        *,
        links: int = 0,
        redirect_to: str | None = None,
    ) -> None:
        """Add the end of a visit: its exchange, its place in the archive, and the page read in it."""
        page = page or Page(exchange, "", b"")
        long_bytes = len(exchange.visit.url) + len(redirect_to or "") + len(page.title)
        self._put([page_row(exchange, place, page, links, redirect_to)], 1, long_bytes)

    def _joined(self, pieces: list[Any]) -> pa.RecordBatch:
        return rows_batch(pieces, PAGE_ROWS)


def page_row(
    exchange: Exchange, place: RecordPlace | None, page: Page, links: int, redirect_to: str | None
) -> tuple[object, ...]:
    """Return a row of `pages` for a visit that ended."""
    visit = exchange.visit
    host = visit.parts.host
    return (
        visit.key,
        visit.url,
        host,
        pay_level_domain(host),
        exchange.status,
        str(exchange.outcome),
        exchange.detail,
        round(exchange.started_at * 1e6),
        exchange.duration_s,
        visit.depth,
        visit.via,
        KINDS[visit.kind],
        visit.tries,
        page.media_type,
        page.encoding,
        page.title,
        exchange.body.size,
        page.size_bytes,
        place.digest if place else "",
        page.fingerprint,
        page.duplicate,
        page.noindex,
        links,
        redirect_to,
        exchange.address,
        *(place[:3] if place else (None, None, None)),
    )


class LinksTable(_JournaledTable):
    """The table `links` of the crawl directory `folder`, 20 times `table_rows` rows to a file."""

    def __init__(self, folder: Path, table_rows: int, part: int = 0) -> None:
        super().__init__(folder, "links", LINKS, table_rows * LINKS_PER_PAGE, part, in_memory=LINKS_IN_MEMORY)

    def add(self, links: pa.RecordBatch) -> None:
        """Add links (schema `LINKS`) of some pages. Of many links one portion is written now; the rest waits for
        `write`."""
        rows = max(1, min(LINKS_IN_MEMORY, PIECE_BYTES * links.num_rows // max(1, links.nbytes)))
        pieces = [links.slice(begin, rows) for begin in range(0, links.num_rows, rows)]
        self._gather(pieces, links.num_rows, sum(piece.nbytes for piece in pieces))
        self.write()

    def write(self) -> bool:
        """Hand a portion of the rows in memory to the journal if they are too many; return whether they were."""
        was_full = self._is_full
        if was_full:
            self._write_portion()
        return was_full

    def flush(self) -> None:
        """Hand all rows in memory to the journal."""
        while self._waiting:
            self._write_portion()

    def _write_portion(self) -> None:
        portion: list[pa.RecordBatch] = []
        rows = size_bytes = 0
        while self._waiting and rows < LINKS_IN_MEMORY and size_bytes < BYTES_IN_MEMORY:
            portion.append(self._waiting.pop(0))
            rows, size_bytes = rows + portion[-1].num_rows, size_bytes + portion[-1].nbytes
        self._files.append(self._joined(portion))
        self._waiting_rows -= rows
        self._waiting_bytes -= size_bytes

    def _joined(self, pieces: list[Any]) -> pa.RecordBatch:
        return pa.concat_batches(pieces)


def links_batch(source: U64, target: U64, url: pa.BinaryArray, kind: npt.NDArray[np.integer]) -> pa.RecordBatch:
    """Return rows of `links`: keys of the page and of the URL it links to, that URL, and a `LinkKind`."""
    text = pa.StringArray.from_buffers(len(url), url.buffers()[1], url.buffers()[2])
    arrays = [pa.array(source), pa.array(target), text, pa.array(kind.astype(np.uint8))]
    return pa.RecordBatch.from_arrays(arrays, schema=LINKS)


class ExtractedTable(_JournaledTable):
    """The table `name` of facts extracted from pages, with the columns of `schema`, `table_rows` rows to a file."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema, table_rows: int, part: int) -> None:
        super().__init__(folder, name, schema, table_rows, part, in_memory=PAGES_IN_MEMORY)
        self._schema = schema

    def add(self, rows: Sequence[tuple[object, ...]]) -> None:
        """Add the rows of a page."""
        self._put(rows, len(rows), sum(len(value) for row in rows for value in row if isinstance(value, str)))

    def _joined(self, pieces: list[Any]) -> pa.RecordBatch:
        return rows_batch(pieces, self._schema)


def rows_batch(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as columns of `schema`."""
    arrays = [_column(list(map(itemgetter(at), rows)), field.type) for at, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # text of the web may hold half a surrogate pair
        return pa.array([_clean(value) for value in values], kind)


def _clean(value: object) -> object:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
