"""The way of rows to rest: journal segments that become Parquet files, exactly once.

The tables of `fyke.archive.tables` hand in record batches. These are appended to the journal segment
`tables/<name>-00007.arrows` (not in `state/`, where the checkpoint deletes files). A segment with `table_rows` rows is
closed, and a thread turns it into `tables/<name>-00007.parquet` with its checksum; the loop need not wait, because the
segment no longer changes. Segment and file have the same number, and that is the whole trick:

- a state says how many files are sealed, and gives the lengths of the segments after them;
- `restore` deletes a Parquet file that no durable state counts, and makes it again from its segment;
- a segment is deleted only when `durable()` says that a manifest which counts its file is safe.

Invariant: after `restore(state)` the rows in files and segments are those of that `state()`, each once.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fyke.archive.background import Background
from fyke.archive.checksum import checksum_path, write_checksum
from fyke.archive.journal import Journal, read_journal
from fyke.archive.safety import Safety
from fyke.archive.schemas import journalled
from fyke.disk.files import cut, damaged, require_file, verify_file, writing, written_whole

TABLES = "tables"
GROUP_ROWS = 1 << 16
GROUP_BYTES = 16 << 20
ZSTD_LEVEL = 1


def series(name: str, part: int) -> str:
    """Return the name of the files that the agent `part` writes for the table `name`, without their number."""
    return f"{name}-{part}" if part else name


def journal_path(folder: Path, name: str, serial: int) -> Path:
    return folder / TABLES / f"{name}-{serial:05d}.arrows"


def parquet_path(folder: Path, name: str, serial: int) -> Path:
    return folder / TABLES / f"{name}-{serial:05d}.parquet"


def seal(source: Path, target: Path, schema: pa.Schema, rows: int) -> None:
    """Write the `rows` rows of the segment `source` as the Parquet file `target`, by rename, in bounded memory.

    Raises StateDamaged if the segment holds another number of rows.
    """
    with written_whole(target, synced=False) as part:
        with parquet_writer(part, schema) as writer:
            found = write_rows(writer, read_journal(source, journalled(schema)), schema)
        if found != rows:
            raise damaged(source, f"it holds {found:,} rows, but {rows:,} were written")
        write_checksum(part, target)


def as_file(path: Path) -> str:
    """Return an absolute path, because Arrow takes one like `news-18:30/tables/…` for a URL.

    Raises OSError for anything but a file, because Arrow would wait for a pipe.
    """
    require_file(path)
    return str(path.absolute())


def write_rows(writer: pq.ParquetWriter, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write `batches`, without dictionaries; return their number of rows. Row groups are bounded in rows and bytes."""
    written = rows = size = 0
    group: list[pa.RecordBatch] = []
    for batch in chain(batches, [None]):
        if batch is not None:
            group.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows and (rows >= GROUP_ROWS or size >= GROUP_BYTES or batch is None):
            writer.write_table(pa.Table.from_batches(group).cast(schema), GROUP_ROWS)
            written += rows
            rows, size, group = 0, 0, []
    return written


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of one Parquet file as all of ours are: zstd, every page with its checksum."""
    return pq.ParquetWriter(
        as_file(path), schema, compression="zstd", compression_level=ZSTD_LEVEL, write_page_checksum=True
    )


class TableFiles:
    """The segments and files of the table `name` in the crawl directory `folder`.

    Raises DiskFull or DirectoryError, also for failures in the sealing thread.
    """

    def __init__(self, folder: Path, name: str, schema: pa.Schema, table_rows: int) -> None:
        self._folder = folder
        self._name = name
        self._schema = schema
        self._table_rows = table_rows
        self._sealed = 0  # files 0 … sealed-1 are whole
        self._sealed_rows = 0
        self._closed: list[tuple[int, int, int]] = []  # serial, length, rows of segments waiting for their file
        self._digests: dict[int, list[Sequence[int]]] = {}  # of these, by serial
        self._journal: Journal | None = None
        self._sealing = Background(f"fyke-seal-{name}")
        self._safety = Safety()
        with writing(folder):
            (folder / TABLES).mkdir(parents=True, exist_ok=True)

    def __repr__(self) -> str:
        return f"TableFiles({self._name}, {self._sealed} sealed, {len(self._closed)} waiting, {self._journal!r})"

    @property
    def rows(self) -> int:
        closed = sum(rows for _, _, rows in self._closed)
        return self._sealed_rows + closed + (self._journal.rows if self._journal else 0)

    def append(self, batch: pa.RecordBatch) -> None:
        """Add the rows of `batch` (the schema, without dictionaries)."""
        journal = self._journal or self._open_journal()
        with writing(journal.path):
            journal.append(batch)
            self._safety.wrote(journal.path)
            if journal.rows >= self._table_rows:
                self._close_journal()

    def _open_journal(self) -> Journal:
        serial = self._sealed + len(self._closed)
        path = journal_path(self._folder, self._name, serial)
        with writing(path):
            self._journal = Journal(path, journalled(self._schema), serial)
        self._safety.wrote(path.parent)
        return self._journal

    def _close_journal(self) -> None:
        journal = self._journal
        assert journal is not None
        journal.close()
        self._closed.append((journal.serial, journal.length, journal.rows))
        self._digests[journal.serial] = journal.digests
        self._journal = None
        if len(self._closed) > 1:  # the thread is behind: wait, so that segments cannot pile up
            self._settle(wait=True)
        self._start_sealing()

    def _start_sealing(self) -> None:
        if self._closed and not self._sealing.busy:
            serial, _, rows = self._closed[0]
            source = journal_path(self._folder, self._name, serial)
            target = parquet_path(self._folder, self._name, serial)
            self._sealing.start(seal, source, target, self._schema, rows)

    def _settle(self, *, wait: bool) -> None:
        """Count the file that the thread has finished, and give it the next segment."""
        while self._sealing.finished(wait=wait):
            serial, _, rows = self._closed.pop(0)
            self._digests.pop(serial, None)
            self._sealed += 1
            self._sealed_rows += rows
            target = parquet_path(self._folder, self._name, serial)
            source = journal_path(self._folder, self._name, serial)
            self._safety.wrote(target, checksum_path(target), target.parent)
            self._safety.spend(source)
            self._start_sealing()

    def state(self) -> dict[str, Any]:
        """Return the number of sealed files, later segments as [length, rows], and the digests of each."""
        self._settle(wait=False)
        segments = [[length, rows] for _, length, rows in self._closed]
        digests = [self._digests.get(serial, []) for serial, _, _ in self._closed]
        if self._journal is not None:
            segments.append([self._journal.length, self._journal.rows])
            digests.append(self._journal.digests)
        self._safety.stated()
        return {"sealed": self._sealed, "sealed_rows": self._sealed_rows, "segments": segments, "digests": digests}

    def dirty_files(self) -> list[Path]:
        """Return what must be fsynced for the last `state` to hold: files, and folders with new names."""
        return self._safety.dirty_files()

    def durable(self) -> None:
        """Note that the manifest with the last `state` is safe; delete segments that became files."""
        self._safety.durable()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Cut and delete until the rows are those of `state`; an empty mapping is a crawl not begun.

        Raises StateDamaged if a segment is shorter than it was, or has other bytes.
        """
        self.abandon()
        self._journal = None
        self._closed = []
        self._digests = {}
        self._safety = Safety()
        self._sealed = state.get("sealed", 0)
        self._sealed_rows = state.get("sealed_rows", 0)
        segments = state.get("segments", [])
        with writing(self._folder / TABLES):
            self._delete_others(len(segments))
            for serial, (length, rows) in enumerate(segments, self._sealed):
                path = journal_path(self._folder, self._name, serial)
                cut(path, length)
                self._digests[serial] = state["digests"][serial - self._sealed]
                verify_file(path, self._digests[serial])
                self._closed.append((serial, length, rows))
            if segments and segments[-1][1] < self._table_rows:
                serial, length, rows = self._closed.pop()
                path = journal_path(self._folder, self._name, serial)
                self._journal = Journal(path, journalled(self._schema), serial, length, rows, self._digests.pop(serial))
        self._start_sealing()

    def _delete_others(self, segments: int) -> None:
        """Delete Parquet files not sealed by then, and segments other than the `segments` after them."""
        ours = re.compile(rf"{re.escape(self._name)}-(\d{{5,}})\.(arrows|parquet(\.xxh3)?(\.part)?)")
        for path in (self._folder / TABLES).iterdir():
            found = ours.fullmatch(path.name)
            if found is None:
                continue
            place, kind = int(found[1]) - self._sealed, found[2]
            if (kind == "arrows" and not 0 <= place < segments) or (kind != "arrows" and place >= 0):
                path.unlink()

    def abandon(self) -> None:
        """Let go of the files, as they are, after waiting for the thread that seals one."""
        self._sealing.close()
        if self._journal is not None:
            self._journal.close()

    def close(self) -> None:
        """Seal all rows. Segments stay until a later `state` is `durable`; call both after this."""
        with writing(self._folder / TABLES):
            if self._journal is not None:
                self._close_journal()
            self._settle(wait=True)
        self._sealing.close()
