"""The keeper by itself: when it is due, what a checkpoint holds, and that writers hear of it once it is safe."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fyke.core.clock import VirtualClock
from fyke.crawl.keeper import Keeper
from fyke.disk.checkpoint import Checkpoint, look


class Counting:
    """A room whose state is how often it was asked for it."""

    def __init__(self) -> None:
        self.asked = 0

    def state(self) -> dict[str, int]:
        self.asked += 1
        return {"asked": self.asked}


class Appending:
    """A writer of one file outside the shard; `safe` is how much of it is in a checkpoint that cannot be lost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.write_bytes(b"")
        self.safe = 0
        self._named = 0

    def append(self, content: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(content)

    def state(self) -> dict[str, Any]:
        self._named = self.path.stat().st_size
        return {"length": self._named}

    def dirty_files(self) -> list[Path]:
        return [self.path] if self._named > self.safe else []

    def durable(self) -> None:
        self.safe = self._named


def keeper(folder: Path, checkpoint: Checkpoint) -> tuple[Keeper, Counting, Appending, VirtualClock]:
    room, writer, clock = Counting(), Appending(folder / "pages"), VirtualClock()
    return Keeper(checkpoint, {"room": room}, {"writer": writer}, clock, every_s=10.0), room, writer, clock


def test_it_is_due_so_many_seconds_after_the_last_one_was_safe(tmp_path: Path) -> None:
    with Checkpoint(tmp_path / "state") as checkpoint:
        kept, room, _, clock = keeper(tmp_path, checkpoint)
        assert not kept.due()
        clock.advance(10.0)
        assert kept.due()
        asyncio.run(kept.take())
        assert not kept.due()
        clock.advance(9.9)
        assert not kept.due()
        clock.advance(0.1)
        assert kept.due()
        assert (kept.taken, room.asked) == (1, 1)


def test_rooms_and_writers_are_in_it_under_their_names_with_the_ending(tmp_path: Path) -> None:
    with Checkpoint(tmp_path / "state") as checkpoint:
        kept, _, writer, clock = keeper(tmp_path, checkpoint)
        writer.append(b"a page")
        asyncio.run(kept.take())
        assert writer.safe == 6
        clock.advance(3.0)
        kept.last("finished")
    store, told = look(tmp_path / "state")
    assert store.participant("room") == {"asked": 2}
    assert store.participant("writer") == {"length": 6}
    assert told == {"ending": "finished", "taken_at": clock.now()}


def test_a_writer_hears_of_it_only_when_it_is_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full while the manifest is written: the one before counts, and nothing was called durable."""
    with Checkpoint(tmp_path / "state") as checkpoint:
        kept, _, writer, clock = keeper(tmp_path, checkpoint)
        asyncio.run(kept.take())
        writer.append(b"a page")
        clock.advance(10.0)

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch, pytest.raises(Exception, match=r"(?i)space|full"):
            patch.setattr("os.fsync", full)
            asyncio.run(kept.take())
        assert writer.safe == 0
        assert kept.due()
        assert kept.taken == 1
    store, _ = look(tmp_path / "state")
    assert store.participant("writer") == {"length": 0}


def test_the_loop_goes_on_while_a_checkpoint_is_made_safe(tmp_path: Path) -> None:
    """What is appended meanwhile belongs to the next one."""
    with Checkpoint(tmp_path / "state") as checkpoint:
        kept, _, writer, _ = keeper(tmp_path, checkpoint)
        writer.append(b"one")

        async def both() -> None:
            taking = asyncio.create_task(kept.take())
            await asyncio.sleep(0)
            writer.append(b"two")
            await taking

        asyncio.run(both())
        assert writer.safe == 3
    store, _ = look(tmp_path / "state")
    assert store.participant("writer") == {"length": 3}


def test_it_is_due_at_once_where_something_else_is_asked(tmp_path: Path) -> None:
    """Until then, what was asked would seem to be a damaged file."""
    clock = VirtualClock()
    with Checkpoint(tmp_path) as checkpoint:
        kept = Keeper(checkpoint, {}, {}, clock, 10.0, {"file": 1, "crawl": 2})
        assert not kept.due(), "there is no checkpoint that says otherwise"
        asyncio.run(kept.take())
        assert not Keeper(checkpoint, {}, {}, clock, 10.0, {"file": 1, "crawl": 2}).due()
    with Checkpoint(tmp_path) as checkpoint:
        kept = Keeper(checkpoint, {}, {}, clock, 10.0, {"file": 3, "crawl": 2})
        assert kept.due()
        asyncio.run(kept.take())
        assert not kept.due()
