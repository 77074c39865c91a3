"""The indexes of WARC files made anew from their records.

Used by `fyke.crawl.repair`. Invariant: the index of a whole file comes out byte for byte as it was written; a damaged
record has no line.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fyke.archive.cdxj import REVISIT, index_line, index_path, media_type_of, read_lines
from fyke.archive.table_files import series
from fyke.archive.warc import FOLDER
from fyke.archive.warc_reading import Record, read_records
from fyke.disk.files import writing

REPLAYABLE = frozenset({"response", "resource", "revisit"})

_SERIAL = re.compile(r"(?<!\d)(\d{5,}+)\.warc\.gz\Z")


class Damage(NamedTuple):
    """A record that cannot be read, or not as it was written."""

    place: str  # file and offset, below the crawl directory
    what: str
    url: str  # as far as its index knows it


def serial_of(name: str) -> tuple[int, str]:
    """Return the sort key of archive files: number, then name, because a moved crawl goes on under another name."""
    match = _SERIAL.search(name)
    return int(match[1]) if match else -1, name


def part_of(name: str, own: str, agents: int) -> int:
    """Return the agent that wrote the archive file `name` of a crawl of `agents` agents in a folder called `own`.

    A crawl that was moved has files under another name as well.
    """
    stem = name.removeprefix("fyke-").rpartition("-")[0]
    found = next((part for part in range(agents) if stem == series(own, part)), None)
    if found is not None:
        return found
    last = stem.rpartition("-")[2]
    return int(last) if last.isdecimal() and int(last) < agents else 0


def archive_files(folder: Path) -> list[Path]:
    """Return the archive files below `folder`, in the order of writing."""
    return sorted((folder / FOLDER).glob("*.warc.gz"), key=lambda path: serial_of(path.name))


def reindex(warc: Path, end: int, lines: BinaryIO, told: Callable[[int], None]) -> Iterator[Damage]:
    """Write the index lines of the first `end` bytes of `warc` in the order of writing, and yield the damage found.

    `told` is called with every position reached. Raises DiskFull, OSError.
    """
    for record in read_records(warc, end):
        if record.faults:
            url = record.get("warc-target-uri") or _url_at(warc, record)
            yield Damage(f"{FOLDER}/{warc.name}:{record.offset}", "; ".join(record.faults), url)
        elif record.get("warc-type") in REPLAYABLE:
            with writing(warc):
                lines.write(line_of(record, warc.name))
        told(record.offset + record.length)


def line_of(record: Record, name: str) -> bytes:
    """Return the line that the index of the file `name` has for `record`."""
    words = record.first_line.split() if record.head else []
    status = int(words[1]) if len(words) > 1 and words[1].isdecimal() else None
    if record.get("warc-type") == "revisit":
        mime = REVISIT
    else:
        mime = media_type_of(record.head) if record.head else record.get("content-type")
    place = (name, record.offset, record.length)
    return index_line(record.get("warc-target-uri"), record.get("warc-date"), mime, status, record.digest, place)


def _url_at(warc: Path, record: Record) -> str:
    """Return the URL that the old index has for the place of the damaged `record`."""
    for closed in (True, False):
        try:
            for _, _, fields in read_lines(index_path(warc, closed=closed)):
                if record.offset <= int(fields["offset"]) < record.offset + record.length:
                    return str(fields["url"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return ""
