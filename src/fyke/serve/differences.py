"""Differences between two versions of a text: by lines, and within changed lines by words.

`fyke.serve.pages` calls it for two versions of an archived page. It takes away what is common at both ends, and finds
the longest common subsequence of the rest row by row of its table (Wagner and Fischer 1974). Bounded: only the first
`MOST_LETTERS` of each text are read. What is too much to compare is shown as replaced.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

import numpy as np

MOST_LETTERS = 1 << 18  # of a text; each line or word takes some 100 bytes
MOST_PIECES = 1500  # lines or words that are compared, of each text
MOST_CELLS = 4 * MOST_PIECES * MOST_PIECES  # of all tables together; takes a second
AROUND = 2  # lines shown beside a change
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class ChangeKind(StrEnum):
    """What became of a piece of text."""

    SAME = "same"
    OLD = "old"
    NEW = "new"
    LEFT_OUT = "left_out"  # equal lines, too many to be shown


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Some text of one kind. For LEFT_OUT, the number of lines."""

    kind: ChangeKind
    text: str


def differences(old: str, new: str) -> list[list[TextPiece]]:
    """Return blocks of lines: equal lines in one piece, changed lines in pieces word by word. Empty if nothing
    changed."""
    room = _TableRoom(MOST_CELLS)
    steps = compared(old[:MOST_LETTERS].split("\n"), new[:MOST_LETTERS].split("\n"), room)
    blocks = [(same, list(block)) for same, block in groupby(steps, key=lambda step: step[0] is ChangeKind.SAME)]
    if all(same for same, _ in blocks):
        return []
    shown: list[list[TextPiece]] = []
    for place, (same, block) in enumerate(blocks):
        if same:
            shown += _around([line for _, line in block], first=not place, last=place == len(blocks) - 1)
        else:
            before, after = (
                "\n".join(line for kind, line in block if kind is one) for one in (ChangeKind.OLD, ChangeKind.NEW)
            )
            words = compared(_WORDS.findall(before), _WORDS.findall(after), room)
            runs = groupby(words, key=lambda word: word[0])
            shown.append([TextPiece(kind, "".join(text for _, text in run)) for kind, run in runs])
    return shown


def _around(lines: Sequence[str], *, first: bool, last: bool) -> Iterator[list[TextPiece]]:
    """Yield the ends of a block of equal lines that are beside changes, and how many are left out."""
    head, tail = (0 if first else AROUND), (0 if last else AROUND)
    if len(lines) <= head + tail + 1:
        yield [TextPiece(ChangeKind.SAME, "\n".join(lines))]
        return
    if head:
        yield [TextPiece(ChangeKind.SAME, "\n".join(lines[:head]))]
    yield [TextPiece(ChangeKind.LEFT_OUT, str(len(lines) - head - tail))]
    if tail:
        yield [TextPiece(ChangeKind.SAME, "\n".join(lines[-tail:]))]


@dataclass(slots=True)
class _TableRoom:
    """Number of cells that all further tables may have together."""

    cells: int

    def take(self, cells: int) -> bool:
        """Take `cells` for a table; return whether there were enough."""
        if cells > self.cells:
            return False
        self.cells -= cells
        return True


def compared(old: Sequence[str], new: Sequence[str], room: _TableRoom) -> list[tuple[ChangeKind, str]]:
    """Return all pieces of both, in order, those in common once."""
    least = min(len(old), len(new))
    begin = next((at for at in range(least) if old[at] != new[at]), least)
    end = next((at for at in range(least - begin) if old[-1 - at] != new[-1 - at]), least - begin)
    middle = _middle(old[begin : len(old) - end], new[begin : len(new) - end], room)
    same = [(ChangeKind.SAME, piece) for piece in old]
    return [*same[:begin], *middle, *same[len(old) - end :]]


def _middle(old: Sequence[str], new: Sequence[str], room: _TableRoom) -> list[tuple[ChangeKind, str]]:
    if not (old and new) or max(len(old), len(new)) > MOST_PIECES or not room.take(len(old) * len(new)):
        return [*((ChangeKind.OLD, piece) for piece in old), *((ChangeKind.NEW, piece) for piece in new)]
    numbers: dict[str, int] = {}
    first, second = (np.array([numbers.setdefault(piece, len(numbers)) for piece in side]) for side in (old, new))
    table = np.zeros((len(old) + 1, len(new) + 1), np.int16)  # most pieces that both have in common from there on
    for row in range(len(old) - 1, -1, -1):
        with_this = table[row + 1, 1:] + (second == first[row])
        best = np.maximum(with_this, table[row + 1, :-1])
        table[row, :-1] = np.maximum.accumulate(best[::-1])[::-1]
    steps = []
    i = j = 0
    while i < len(old) and j < len(new):
        if first[i] == second[j]:
            steps.append((ChangeKind.SAME, old[i]))
            i, j = i + 1, j + 1
        elif table[i + 1, j] >= table[i, j + 1]:
            steps.append((ChangeKind.OLD, old[i]))
            i += 1
        else:
            steps.append((ChangeKind.NEW, new[j]))
            j += 1
    return [*steps, *((ChangeKind.OLD, piece) for piece in old[i:]), *((ChangeKind.NEW, piece) for piece in new[j:])]
