"""`fyke export`: one export, from the request to the target in its place.

Called by the command line; each format is a `Job`, the files in between are in `fyke.export.staging`. Invariant: how
much of the crawl is exported is decided once, when the export begins, and kept with its progress. So however often it
is killed, the same command ends with the bytes of an undisturbed run.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from fyke.archive.directory import CrawlDirectory
from fyke.core.errors import ConfigurationError
from fyke.export.bundle import Wacz
from fyke.export.edges import EdgeLines, EdgeSheets
from fyke.export.formats import FOLDER, Format, Target, target_of
from fyke.export.notes import Notes
from fyke.export.selection import Selection
from fyke.export.source import Source, Until
from fyke.export.staging import Mark, Staging, writing
from fyke.export.tabular import PageExport
from fyke.export.textual import Csv, JsonLines
from fyke.progress import Progress
from fyke.quantities import bytes_text, counted

FORMAT = 1  # version of all exports; raise it when the same crawl gives other bytes
LINE_S = 5.0  # between two lines without a terminal


class Job(Protocol):
    """One export, which can be carried out from any mark on: the interface of all formats.

    Each part is a function of the crawl and of the mark before it, and its bytes are safe when its mark is yielded.
    """

    total: int
    unit: str  # of the total, for people: pages, links, bytes
    unreadable: int  # pages whose record could not be read, since the job was made

    def parts(self, mark: Mark) -> Iterator[Mark]:
        """Do everything after `mark`, a part at a time. Raises DiskFull or DirectoryError."""
        ...

    def finish(self, mark: Mark) -> None:
        """Do the rest after all parts; done again if it was interrupted."""
        ...


@dataclass(frozen=True, slots=True)
class Exported:
    """A whole export: its place, its number of entries, and how much of the crawl they were made of."""

    path: Path
    entries: int
    done: int
    unit: str
    unreadable: int = 0  # pages whose record in the archive was not there or not whole
    lost: tuple[str, ...] = ()  # archive files that are not there or not as they were written

    def as_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {"path": str(self.path), "entries": self.entries, self.unit: self.done}
        told |= {"unreadable": self.unreadable} if self.unreadable else {}
        return {**told, "lost": self.lost} if self.lost else told

    def __str__(self) -> str:
        if self.unit == "bytes":
            return f"{self.path}: {bytes_text(self.done)} of archive"
        few = f"{self.entries:,} of " if self.entries < self.done else ""
        return f"{self.path}: {few}{counted(self.done, self.unit.removesuffix('s'))}"


def export(
    directory: Path,
    format: Format,
    out: Path | None,
    console: Console,
    *,
    everything: bool,
    since: datetime | None = None,
    changes: bool = False,
    part_rows: int = 0,
) -> Exported:
    """Export the crawl in `directory` and report progress to `console`, in parts of `part_rows` or as suits the format.

    With `everything`, copies and pages that ask not to be indexed have their text too. With `since`, only visits from
    that date on are exported; with `changes`, the change of each page since then. Raises NotACrawl, ConfigurationError,
    DirectoryInUse, DirectoryError, DiskFull.
    """
    if changes and format not in (Format.JSONL, Format.CSV):
        raise ConfigurationError(f"--changes writes lines: give --to jsonl or --to csv, not {format}")
    if since is not None and format in (Format.WACZ, Format.LINKS):
        raise ConfigurationError(f"--since selects pages, and {format} holds the whole crawl: leave out --since")
    crawl = CrawlDirectory(directory)
    source = Source(crawl, part_rows)
    target = target_of(crawl, format, out)
    if out is None:
        with writing(target.path):
            (directory / FOLDER).mkdir(exist_ok=True)
    asked = {"format": FORMAT, "to": format.value, "ending": target.ending, "all": everything}
    if since is not None or changes:
        asked |= {"since": since.isoformat() if since else "", "changes": changes}
    with Staging(target.path, asked) as staging:
        if not staging.published:
            _decide(source, staging)
            rule = Selection(with_noindex=everything, with_copies=everything, since=since)
            _carry_out(target, source, staging, rule, console, changes=changes)
        staging.publish()
        return _exported(staging, _unit(format))


def _exported(staging: Staging, unit: str) -> Exported:
    mark = staging.mark
    return Exported(staging.target, mark.entries, mark.done, unit, mark.unreadable, tuple(mark.state.get("lost", ())))


def _decide(source: Source, staging: Staging) -> None:
    """Settle how much of the crawl is exported: as much as when the export was begun, if the crawl still has that."""
    if staging.until:
        source.upto(Until(**{name: value for name, value in staging.until.items() if name != "beginning"}))
        if source.covers(source.until) and source.beginning() == staging.until["beginning"]:
            return
        staging.begin_anew()
    source.upto(source.now())
    staging.begin({**asdict(source.until), "beginning": source.beginning()})


def _job(target: Target, source: Source, staging: Staging, rule: Selection, changes: bool) -> Job:
    packed, single = target.ending.endswith(".gz"), target.ending == ".parquet"
    match target.format:
        case Format.PARQUET:
            return PageExport(source, staging, replace(rule, with_noindex=True, versions=True), single=single)
        case Format.JSONL:
            return JsonLines(source, staging, rule, packed=packed, changes=changes)
        case Format.MARKDOWN:
            return Notes(source, staging, rule)
        case Format.WACZ:
            return Wacz(source, staging)
        case Format.CSV:
            return Csv(source, staging, rule, packed=packed, changes=changes)
        case Format.LINKS if target.ending.startswith(".tsv"):
            return EdgeLines(source, staging, packed=packed)
    return EdgeSheets(source, staging, single=single)


def _unit(format: Format) -> str:
    return {Format.WACZ: Wacz.unit, Format.LINKS: EdgeSheets.unit}.get(format, PageExport.unit)


def _carry_out(
    target: Target, source: Source, staging: Staging, rule: Selection, console: Console, *, changes: bool
) -> None:
    """Write the whole export. The job ends here, because its files can be deleted only once it has let go of them."""
    job = _job(target, source, staging, rule, changes)
    what = f"exporting {staging.target.name}"
    with Progress(console, what, pipe_s=LINE_S) as progress:
        progress.tell(what, staging.mark.done, job.total, job.unit)
        before = staging.mark.unreadable
        for mark in job.parts(staging.mark):
            staging.record(replace(mark, unreadable=before + job.unreadable))
            progress.tell(what, mark.done, job.total, job.unit)
        job.finish(staging.mark)
