"""Files that appear whole: in which order they reach the disk, and what is there when that breaks off."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from disks import small_disk
from fyke.archive.directory import CrawlDirectory
from fyke.core.config import build
from fyke.core.errors import DirectoryError, DirectoryInUse, DiskFull, StateDamaged
from fyke.disk.files import (
    Reader,
    is_locked,
    lock,
    mapped_zeros,
    require_readable,
    save_array,
    write_whole,
    writing,
    written_whole,
)


class Broken(BaseException):
    """As SIGKILL: nothing is done after it."""


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is synced and renamed from now on, by name, in order."""
    done: list[tuple[str, str]] = []
    sync, replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        done.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        sync(descriptor)

    def renamed(source: Any, target: Any) -> None:
        done.append(("rename", Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", renamed)
    return done


def test_settings_and_their_name_are_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a crawl was asked is on the disk, and so is the folder that names it, before anything else is."""
    config = build({"crawl": {"seeds": ["http://a.example/"]}}, "test")
    (tmp_path / "crawl").mkdir()
    done = recorded(monkeypatch)
    with CrawlDirectory(tmp_path / "crawl").recorded(config):
        pass
    assert done == [("sync", "fyke.toml.part"), ("rename", "fyke.toml"), ("sync", "crawl")]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_broken_off_it_is_as_it_was(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"before")

    def broken(*_: object) -> None:
        raise Broken

    with monkeypatch.context() as patch, pytest.raises(Broken):
        patch.setattr(os, step, broken)
        write_whole(path, b"after")
    assert path.read_bytes() == b"before"
    write_whole(path, b"after")
    assert path.read_bytes() == b"after" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "fails", [lambda part: part.with_name("none").read_bytes(), lambda part: part.write_text("x") and 1 / 0]
)
def test_one_that_fails_leaves_nothing(fails: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises((DirectoryError, ZeroDivisionError)), written_whole(tmp_path / "file") as part:
        fails(part)
    assert not list(tmp_path.iterdir())


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    held = lock(path, "in use")
    assert is_locked(path)
    with pytest.raises(DirectoryInUse, match="in use"):
        lock(path, "in use")
    os.close(held)
    os.close(lock(path, "in use"))


@pytest.mark.parametrize("what", ["it is gone", "it is a folder", "it is not a file"])
def test_what_is_no_file_is_damage(what: str, tmp_path: Path) -> None:
    path = tmp_path / "urls.seg"
    if what == "it is a folder":
        path.mkdir()
    elif what == "it is not a file":
        os.mkfifo(path)
    with pytest.raises(StateDamaged, match=what):
        Reader(path)


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pages-00000.arrows")
    with pytest.raises(DirectoryError, match=r"pages-00000\.arrows is a pipe"):
        require_readable(tmp_path)


def test_no_room_to_map(tmp_path: Path) -> None:
    """It is said before anything is written there: later a signal would end the process."""
    with small_disk(tmp_path / "disk", "64k") as disk:
        with pytest.raises(DiskFull, match="free some space"):
            mapped_zeros(disk / "x", np.float64, (100_000,))
        zeros = mapped_zeros(disk / "x", np.float64, (10, 100))
        assert zeros.shape == (10, 100) and not zeros.any()
        zeros[:] = 1
        del zeros


def test_no_room_for_an_array(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "16k") as disk:
        with pytest.raises(DiskFull, match="free some space"), writing(disk):
            save_array(disk / "x.npy", np.zeros(100_000, np.uint8))
        for array in (np.arange(7), np.zeros(0, "u8,u1"), np.ones(9, [("a", "<u8"), ("b", "u1", 3)])):
            save_array(disk / "x.npy", array)
            np.save(tmp_path / "y.npy", array)
            assert (disk / "x.npy").read_bytes() == (tmp_path / "y.npy").read_bytes()
