"""What a run writes only on the way is gone when it ends, and after a kill when the next one begins."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from disks import hiding_deleted
from fyke.disk.scratch import scratch

HELD = """
import sys
from pathlib import Path
from fyke.disk.scratch import scratch

with scratch(".work-", Path(sys.argv[1])) as place:
    (place / "rows").write_text("many")
    print(place, flush=True)
    sys.stdin.read()
"""


def held(folder: Path) -> tuple["subprocess.Popen[str]", Path]:
    """A process that has a folder for its work in `folder`, and that folder."""
    running = subprocess.Popen(
        [sys.executable, "-c", HELD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    return running, Path(running.stdout.readline().strip())


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_next_run_removes_what_a_killed_one_left(end: signal.Signals, tmp_path: Path) -> None:
    mine = tmp_path / ".work-of-mine"
    mine.mkdir()
    (mine / "notes").write_text("of a person")
    running, left = held(tmp_path)
    with running:
        with scratch(".work-", tmp_path) as place:
            assert place != left and (left / "rows").is_file() and place.parent == tmp_path
        assert not place.exists() and (left / "rows").is_file()  # it runs
        os.kill(running.pid, end)
    assert (left / "rows").is_file()
    with scratch(".work-", tmp_path) as place:
        assert {path.name for path in tmp_path.iterdir()} == {place.name, mine.name}
    assert [path.name for path in tmp_path.iterdir()] == [mine.name] and (mine / "notes").is_file()


def test_it_goes_where_deleted_files_stay_until_they_are_closed(tmp_path: Path) -> None:
    running, left = held(tmp_path)
    with running:
        os.kill(running.pid, signal.SIGKILL)
    with hiding_deleted():
        with scratch(".work-", tmp_path) as place:
            (place / "rows").write_text("many")
            assert not left.exists()
        assert not any(tmp_path.iterdir())


def test_it_goes_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError), scratch(".work-", tmp_path):
        raise ValueError
    assert not any(tmp_path.iterdir())


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with scratch("", tmp_path) as left:
        left.rename(elsewhere)
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / ".work-link").symlink_to(elsewhere)
    with scratch(".work-", tmp_path / "work"):
        assert any(elsewhere.iterdir())
