"""In which order the rows of several agents came: the file `tables/turns`, a line for each lot of rows in a checkpoint.

Readers of a growing crawl (the indexer, exports) count rows: row `n` of a table is the same row for ever. Each agent
writes its own series of files, which alone do not say which row is `n`. The turns do, agent by agent as their
checkpoints came. The supervisor writes them, once a checkpoint is safe. A crawl that always had one agent has no such
file.

Invariant: lines are only added, and speak of rows that are safe.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from fyke.archive.reading import rows_recorded
from fyke.archive.table_files import TABLES
from fyke.disk.files import damaged, write_all, write_whole, writing
from fyke.disk.sealed import journal_lines, sealed_line, unsealed_line

COUNTED = ("pages", "links")
MOST_OF_LINE = 256  # bytes


class Turns:
    """The turns of the crawl directory `folder`, to be written."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TABLES / "turns"
        self._rows = {name: rows_by_part(folder, name) for name in COUNTED}

    def add(self, part: int, state: Mapping[str, Any]) -> None:
        """Add the new rows of `state`, the newest checkpoint of the agent `part`. Raises DiskFull or DirectoryError."""
        new = [max(0, rows_recorded(state, name) - self._rows[name].get(part, 0)) for name in COUNTED]
        if not any(new):
            return
        line = sealed_line(json.dumps([part, *new])).encode()
        with writing(self._path), self._path.open("a+b", buffering=0) as file:
            file.truncate(_length_of_lines(file))
            write_all(file.fileno(), line)
        for name, rows in zip(COUNTED, new, strict=True):
            self._rows[name][part] = self._rows[name].get(part, 0) + rows


def _length_of_lines(file: IO[bytes]) -> int:
    """Return how many bytes of `file` are complete lines: a kill or a full disk may have torn the last."""
    start = max(0, file.seek(0, os.SEEK_END) - MOST_OF_LINE)
    file.seek(start)
    return start + file.read().rfind(b"\n") + 1


def write_turns(folder: Path, states: Mapping[int, Mapping[str, Any]]) -> None:
    """Begin the turns of the crawl directory `folder` anew: one agent of `states` after the other, each with all its
    rows.

    Callers that count rows begin anew too (`reading.generation`). Raises DiskFull, DirectoryError.
    """
    lots = [[part, *(rows_recorded(state, name) for name in COUNTED)] for part, state in states.items()]
    lines = [sealed_line(json.dumps(lot)) for lot in lots if any(lot[1:])]
    write_whole(folder / TABLES / "turns", "".join(lines).encode())


def turns(folder: Path, name: str) -> Iterator[tuple[int, int]]:
    """Yield agents and their numbers of rows of the table `name`, turn by turn; nothing if the crawl always had one
    agent.

    Raises StateDamaged if a line is not as it was written.
    """
    path = folder / TABLES / "turns"
    try:
        for line in journal_lines(path):
            part, *rows = json.loads(unsealed_line(line))
            if count := rows[COUNTED.index(name)]:
                yield part, count
    except FileNotFoundError:
        return
    except (ValueError, TypeError, LookupError) as error:
        raise damaged(path, str(error)) from None


def rows_by_part(folder: Path, name: str) -> dict[int, int]:
    """Return how many rows of the table `name` had their turn, by agent."""
    rows: dict[int, int] = {}
    for part, count in turns(folder, name):
        rows[part] = rows.get(part, 0) + count
    return rows
