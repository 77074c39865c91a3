"""The formats and targets of an export: the names that a person may give.

Read by `fyke.export.job`. Invariant: a target is never inside the folders that the crawl itself writes, and its name
tells its format.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fyke.archive.directory import CrawlDirectory
from fyke.core.errors import ConfigurationError
from fyke.disk.files import real_path

FOLDER = "export"


class Format(StrEnum):
    """The values of `--to`."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    WACZ = "wacz"
    LINKS = "links"
    CSV = "csv"


def named(text: str) -> Format:
    """Return the format called `text`. Raises ConfigurationError."""
    try:
        return Format(text.lower())
    except ValueError:
        raise ConfigurationError(f"--to {text}: not a format; write {', '.join(Format)}") from None


@dataclass(frozen=True, slots=True)
class _TargetNames:
    """The default name of a target, and the endings it may have; "" stands for a folder."""

    default: str
    endings: tuple[str, ...]


_NAMES = {
    Format.PARQUET: _TargetNames("pages", ("", ".parquet")),
    Format.JSONL: _TargetNames("pages.jsonl.gz", (".jsonl", ".jsonl.gz")),
    Format.MARKDOWN: _TargetNames("markdown", ("",)),
    Format.WACZ: _TargetNames("crawl.wacz", (".wacz",)),
    Format.LINKS: _TargetNames("links", ("", ".parquet", ".tsv", ".tsv.gz")),
    Format.CSV: _TargetNames("pages.csv", (".csv", ".csv.gz")),
}
_ENDINGS = sorted({ending for names in _NAMES.values() for ending in names.endings if ending}, key=len, reverse=True)


@dataclass(frozen=True, slots=True)
class Target:
    """The place of an export; `ending` is that of `path`, "" for a folder."""

    format: Format
    path: Path
    ending: str


def target_of(directory: CrawlDirectory, format: Format, out: Path | None) -> Target:
    """Return the target that was asked for. Raises ConfigurationError for an impossible one."""
    names = _NAMES[format]
    path = directory.path / FOLDER / names.default if out is None else out
    ending = next((ending for ending in _ENDINGS if path.name.lower().endswith(ending)), "")
    if ending not in names.endings:
        wanted = " or ".join(ending or "no ending, for a folder" for ending in names.endings)
        raise ConfigurationError(f"--out {path}: name an export to {format} with {wanted}")
    if out is not None:
        _check(directory, out)
    return Target(format, path, ending)


def _check(directory: CrawlDirectory, out: Path) -> None:
    where = real_path(out)
    if not where.parent.is_dir():
        raise ConfigurationError(f"--out {out}: there is no folder {out.parent}; make it, or name another")
    for own in (directory.warc, directory.tables, directory.state, directory.logs, directory.path / "index"):
        if where.is_relative_to(real_path(own)):
            raise ConfigurationError(f"--out {out}: {own} belongs to the crawl; name a file outside of it")
