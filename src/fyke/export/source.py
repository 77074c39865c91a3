"""The part of a crawl that is exported: the rows and archive bytes that a checkpoint holds.

Made by `fyke.export.job`, read by every format, also while the crawl runs. Anything younger than the newest checkpoint
may be fetched again by a resumed run, so it is left for a later export. Invariant: rows and bytes within an `Until`
never change again, so everything made of them can be made again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyarrow as pa

from fyke.archive.arrivals import arrivals, has_rows, safe_rows
from fyke.archive.checksum import checksum_path
from fyke.archive.directory import CrawlDirectory, no_crawl, saved_state
from fyke.archive.inspect import archive_lengths
from fyke.archive.lost import lost_files
from fyke.archive.reading import generation
from fyke.archive.table_files import TABLES
from fyke.export.staging import Mark


@dataclass(frozen=True, slots=True)
class Until:
    """The end of the exported part of a crawl: rows of its tables, and bytes of each archive file."""

    pages: int
    links: int
    archive: dict[str, int]  # by name below the crawl directory
    at: float  # unix seconds: of the checkpoint


class RowRange(NamedTuple):
    """Rows of a table; the first is row `begin`."""

    begin: int
    batches: list[pa.RecordBatch]

    @property
    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)

    @property
    def end(self) -> int:
        return self.begin + self.rows


class Source:
    """The crawl in `directory`. Its parts have `part_rows` rows, 0 for as many as suits a format.

    Raises NotACrawl, StateDamaged.
    """

    def __init__(self, directory: CrawlDirectory, part_rows: int = 0) -> None:
        if not directory.holds_crawl and not (directory.path / TABLES).is_dir():
            raise no_crawl(directory.path)
        self.directory = directory
        self._part_rows = part_rows
        self.until = Until(0, 0, {}, 0.0)

    def __repr__(self) -> str:
        return f"Source({str(self.path)!r}, {self.until.pages} pages, {self.until.links} links)"

    @property
    def path(self) -> Path:
        return self.directory.path

    @property
    def product(self) -> str:
        """Our name, as robots directives may address it."""
        return self.directory.config().agent.user_agent if self.directory.holds_crawl else "fyke"

    def upto(self, until: Until) -> Self:
        """Read up to `until`."""
        self.until = until
        return self

    def now(self) -> Until:
        """Return how far the crawl is now."""
        states = [saved_state(part.shard) for part in self.directory.parts if part.shard.is_dir()]
        if not has_rows(self.path):
            return Until(0, 0, {}, 0.0)
        taken_at = max((float(state.get("taken_at", 0.0)) for state in states), default=0.0)
        links = safe_rows(self.path, "links")  # before the pages, so that the page of every link is there
        pages = safe_rows(self.path, "pages")
        return Until(pages, links, self._archive(states), taken_at or self._touched())

    def _touched(self) -> float:
        """Return when the archive of a crawl without a checkpoint was last written."""
        return max((path.stat().st_mtime for path in self.directory.warc.glob("*.warc.gz")), default=0.0)

    def _archive(self, states: list[dict[str, Any]]) -> dict[str, int]:
        counted = archive_lengths(self.directory, *states)
        sizes = {}
        for path in sorted(self.directory.warc.glob("*.warc.gz")):
            name = f"{self.directory.warc.name}/{path.name}"
            sizes[name] = counted.get(name, path.stat().st_size)
        return {name: size for name, size in sizes.items() if size}

    def lost_archive(self) -> list[str]:
        """Return archive files that are gone, or empty though they were finished: by name below the crawl directory."""
        lost = [path for path in lost_files(self.directory) if path == self.directory.warc or path.suffix == ".gz"]
        found = sorted(self.directory.warc.glob("*.warc.gz"))
        lost += [path for path in found if not path.stat().st_size and checksum_path(path).exists()]
        return [str(path.relative_to(self.path)) for path in lost]

    def beginning(self) -> list[int]:
        """Return what tells this crawl from others in the directory: its first page, and how often it was mended."""
        for batch in arrivals(self.path, "pages", ["key", "fetched_at"], 0, 1) if self.until.pages else ():
            mended = generation(self.path)
            return [batch.column(0)[0].as_py(), batch.column(1)[0].value, *([mended] if mended else [])]
        return []

    def covers(self, until: Until) -> bool:
        """Return whether the crawl (still) has everything within `until`."""
        now = self.now()
        archived = all(now.archive.get(name, 0) >= length for name, length in until.archive.items())
        return archived and now.pages >= until.pages and now.links >= until.links

    def rows(self, name: str, columns: Sequence[str], begin: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield rows of the table `name` (pages or links) in the order of the crawl, from `begin` on."""
        end = getattr(self.until, name)
        if begin < end:
            yield from arrivals(self.path, name, columns, begin, end)

    def parts(self, name: str, columns: Sequence[str], mark: Mark, size: int) -> Iterator[RowRange]:
        """Yield the rows after `mark`, `size` at a time; one empty part for a table without rows."""
        size = self._part_rows or size
        part = RowRange(mark.done, [])
        for batch in self.rows(name, columns, mark.done):
            while batch.num_rows:
                some = batch.slice(0, size - part.rows)
                part.batches.append(some)
                batch = batch.slice(some.num_rows)
                if part.rows == size:
                    yield part
                    part = RowRange(part.end, [])
        if part.batches or (not part.begin and not mark.state):
            yield part
