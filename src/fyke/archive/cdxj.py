"""The index beside each WARC file: which URL lies at which offset.

`WarcWriter` notes a line for every response, resource and revisit in `<name>.cdxj.open`, in the order of writing. When
the WARC file is closed the lines are sorted into `<name>.cdxj`, in bounded memory. A line is `SURT timestamp {JSON}`,
with the fields and the spelling of `cdxj-indexer`, so pywb and software built on it can use the file as it is.

Invariant: a `.cdxj` is sorted by bytes and whole (it appears by rename), and has one line for every record that can be
replayed.
"""

import heapq
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from fyke.archive.surt import surt
from fyke.disk.files import open_file, written_whole

REVISIT = "warc/revisit"  # what stands in place of the media type of a revisit record
SORT_BYTES = 32 << 20  # lines held in memory while sorting

_TYPE = re.compile(rb"\ncontent-type:[ \t]*([^;\s]+)", re.IGNORECASE)


def index_line(url: str, date: str, mime: str, status: int | None, digest: str, place: tuple[str, int, int]) -> bytes:
    """Return the line for a record at `place` (file name, offset, length); `date` is its WARC-Date."""
    name, offset, length = place
    mime = f', "mime": {_quoted(mime)}' if mime else ""
    code = f', "status": "{status}"' if status is not None else ""
    return (
        f'{surt(url)} {_stamp(date[:19])} {{"url": {_quoted(url)}{mime}{code}, "digest": "{digest}", '
        f'"length": "{length}", "offset": "{offset}", "filename": "{name}"}}\n'
    ).encode()


def index_path(warc: Path, *, closed: bool) -> Path:
    """Return where the index of the archive file `warc` is, once that is `closed`, or while it grows."""
    return warc.with_name(warc.name.removesuffix(".warc.gz") + (".cdxj" if closed else ".cdxj.open"))


def media_type_of(head: bytes) -> str:
    """Return the media type that a message head names, without parameters; empty if it names none."""
    found = _TYPE.search(head)
    return found[1].decode("latin-1") if found else ""


@lru_cache(maxsize=16)
def _stamp(second: str) -> str:
    """Return the 14 digits of a date to the second; many records have the same."""
    return "".join(filter(str.isdigit, second))


def _quoted(text: str) -> str:
    """Return `text` as JSON has it."""
    plain = text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else json.dumps(text)


def sort_lines(source: Path, target: Path, sort_bytes: int = SORT_BYTES) -> None:
    """Write the lines of `source` in order as a new file `target`, which appears whole or not at all.

    Holds at most about `sort_bytes` of lines: sorted runs go to unnamed files, then one merge.
    """
    with (
        written_whole(target, synced=False) as part,
        open_file(source) as lines,
        part.open("wb") as out,
        ExitStack() as stack,
    ):
        runs: list[BinaryIO] = []
        run = sorted(lines.readlines(sort_bytes))
        while len(run) and lines.peek(1):
            runs.append(stack.enter_context(TemporaryFile(dir=target.parent)))
            runs[-1].writelines(run)
            runs[-1].seek(0)
            run = sorted(lines.readlines(sort_bytes))
        out.writelines(heapq.merge(*runs, run) if runs else run)


def read_lines(path: Path) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield key, timestamp and fields of each line of the index at `path`. Raises ValueError for a bad line.

    The last line of an index that is still written (`.open`) may be incomplete, and is then left out.
    """
    for line in raw_lines(path):
        yield fields_of(line)


def fields_of(line: bytes) -> tuple[str, str, dict[str, str]]:
    """Return key, timestamp and fields of a line. Raises ValueError for a bad one."""
    key, stamp, fields = line.decode().split(" ", 2)
    return key, stamp, json.loads(fields)


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines as bytes. Raises ValueError if the last does not end, except as `read_lines` says."""
    with open_file(path) as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                if path.suffix == ".open":
                    return
                raise ValueError("the last line does not end")
            yield line
