"""The turns of several agents: no byte is another unseen, and what was torn costs nothing that comes later."""

from pathlib import Path

import pytest

from fyke.archive.turns import Turns, rows_by_part, turns, write_turns
from fyke.core.errors import StateDamaged

LOTS = [(0, 4), (1, 2), (0, 7)]  # agents, and how many pages each has by then


def state(pages: int) -> dict[str, object]:
    """A checkpoint that has so many pages and twice as many links."""
    return {"pages": {"sealed_rows": pages}, "links": {"sealed_rows": 2 * pages}}


def written(folder: Path) -> Path:
    (folder / "tables").mkdir(parents=True)
    writer = Turns(folder)
    for part, pages in LOTS:
        writer.add(part, state(pages))
    return folder / "tables" / "turns"


def test_rows_have_their_turns_as_checkpoints_came(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert [*turns(tmp_path, "pages")] == [(0, 4), (1, 2), (0, 3)]
    assert [*turns(tmp_path, "links")] == [(0, 8), (1, 4), (0, 6)]
    write_turns(tmp_path, {0: state(7), 1: state(2), 2: state(0)})
    assert [*turns(tmp_path, "pages")] == [(0, 7), (1, 2)]
    path.unlink()
    assert [*turns(tmp_path, "pages")] == []


def test_a_byte_that_is_another_is_named(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    for at, byte in enumerate(whole):
        for other in {byte ^ 1 << bit for bit in range(8)} | {*b"\n\r ]\x00\xf3"} - {byte}:
            path.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
            with pytest.raises(StateDamaged, match="turns is damaged"):
                [*turns(tmp_path, "pages")]


def test_a_torn_end_is_not_followed(tmp_path: Path) -> None:
    """By a kill or a full disk, at whatever byte: those rows have their turn with the next ones."""
    path = written(tmp_path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        writer = Turns(tmp_path)
        writer.add(0, state(9))
        writer.add(1, state(2))
        assert rows_by_part(tmp_path, "pages") == {0: 9, 1: 2}
        assert rows_by_part(tmp_path, "links") == {0: 18, 1: 4}
