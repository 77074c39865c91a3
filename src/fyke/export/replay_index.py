"""The index of a whole archive for replay: CDXJ in gzip blocks, and a small file that says where the blocks begin.

Made for the WACZ export from the indexes beside the WARC files (`fyke.archive.cdxj`). The pair is called ZipNum; a
reader fetches one block for a URL, however large the archive. Invariant: lines are sorted by bytes, and exactly the
records within the exported lengths have one.
"""

import hashlib
import heapq
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from isal import igzip

from fyke.archive.cdxj import index_path, sort_lines
from fyke.archive.checksum import OTHER_BYTES, checksum_holds
from fyke.archive.lost import GONE
from fyke.disk.files import damaged, open_file
from fyke.export.growing import GZIP_LEVEL
from fyke.export.source import Source
from fyke.export.staging import writing

BLOCK_LINES = 1_024
FILES_TOGETHER = 64
BLOCKS, BEGINNINGS = "index.cdx.gz", "index.idx"

_OFFSET = re.compile(rb'"offset": "(\d+)"')


def write_index(source: Source, scratch: Path) -> tuple[Path, Path]:
    """Write the index of the archive up to `source.until`, two files below `scratch`. Raises DiskFull, StateDamaged."""
    blocks, beginnings = scratch / BLOCKS, scratch / BEGINNINGS
    with writing(scratch):
        scratch.mkdir(exist_ok=True)
        runs = [_lines_of(source, name, length, scratch) for name, length in source.until.archive.items()]
        while len(runs) > FILES_TOGETHER:
            groups = [runs[at : at + FILES_TOGETHER] for at in range(0, len(runs), FILES_TOGETHER)]
            runs = [_merged(group, scratch / f"merged-{len(runs)}-{at}") for at, group in enumerate(groups)]
        with ExitStack() as stack, blocks.open("wb") as out, beginnings.open("wb") as idx:
            _write_blocks(heapq.merge(*(stack.enter_context(run.open("rb")) for run in runs)), out, idx)
    return blocks, beginnings


def _lines_of(source: Source, name: str, length: int, scratch: Path) -> Path:
    """Return a file with the sorted lines of the records of the archive file `name` that begin before `length`."""
    sorted_path, open_path = (index_path(source.path / name, closed=closed) for closed in (True, False))
    run = scratch / sorted_path.name
    if sorted_path.exists() and checksum_holds(sorted_path) is False:
        raise damaged(sorted_path, OTHER_BYTES)
    for path in (sorted_path, open_path, sorted_path):  # the crawl may finish the file between two looks
        try:
            with open_file(path) as lines, run.open("wb") as out:
                out.writelines(_before(lines, length))
        except FileNotFoundError:
            continue
        if path == open_path:
            unsorted = run.rename(run.with_suffix(".unsorted"))
            sort_lines(unsorted, run)
            unsorted.unlink()
        return run
    raise damaged(sorted_path, GONE)


def _before(lines: Iterable[bytes], length: int) -> Iterator[bytes]:
    for line in lines:
        offset = _OFFSET.search(line)
        if line.endswith(b"\n") and offset and int(offset[1]) < length:
            yield line


def _merged(runs: list[Path], target: Path) -> Path:
    with ExitStack() as stack, target.open("wb") as out:
        out.writelines(heapq.merge(*(stack.enter_context(run.open("rb")) for run in runs)))
    for run in runs:
        run.unlink()
    return target


def _write_blocks(lines: Iterator[bytes], blocks: BinaryIO, beginnings: BinaryIO) -> None:
    """Write `BLOCK_LINES` lines to a gzip member, and for each member a line with its first key, offset and length."""
    meta = {"format": "cdxj-gzip-1.0", "filename": BLOCKS}
    beginnings.write(f"!meta 0 {json.dumps(meta)}\n".encode())
    offset = 0
    while block := list(islice(lines, BLOCK_LINES)):
        packed = igzip.compress(b"".join(block), GZIP_LEVEL, mtime=0)
        digest = f"sha256:{hashlib.sha256(packed).hexdigest()}"
        place = {"offset": offset, "length": len(packed), "digest": digest, "filename": BLOCKS}
        beginnings.write(block[0].partition(b"{")[0] + f"{json.dumps(place)}\n".encode())
        blocks.write(packed)
        offset += len(packed)
