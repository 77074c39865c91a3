"""A lot takes no more memory than it counts, whatever its pages say, and is written in no more than that again."""

import tracemalloc
from pathlib import Path

import pytest

from fyke.search.article import NO_PARTS
from fyke.search.extract import Anchor, Extract
from fyke.search.lots import ROWS, Fate, LotWriter, Read
from fyke.search.own_text import OwnText


def page(number: int, text: str, anchors: int) -> Read:
    row = dict.fromkeys(ROWS.names or (), 0) | {"key": number + 1, "fate": Fate.HIDDEN}
    told = tuple(Anchor(at, f"words {number} {at}") for at in range(anchors))
    return Read(row, f"http://h.example/{number}", Extract("", "", "", text, "", 0, 0, told, NO_PARTS))


@pytest.mark.parametrize(
    ("text", "anchors"), [("", 10_000), ("words " * 5_000, 0), ("\N{SNOWMAN}\N{GRINNING FACE}" * 50_000, 10)]
)
def test_memory_is_counted(tmp_path: Path, text: str, anchors: int) -> None:
    own_text = OwnText()
    tracemalloc.start()
    lot = LotWriter(own_text)
    for number in range(20):
        lot.add(page(number, f"{text}{number}", anchors))
    held_bytes, _ = tracemalloc.get_traced_memory()
    lot.write(tmp_path, 0)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < lot.size_bytes and most_bytes < 2 * lot.size_bytes
