"""A crawl on a disk that cannot be written, as archives often lie, or is full: whoever only reads is answered as
elsewhere. So it is where the folder's permissions forbid to write; where they forbid to read, a line says so."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import product
from pathlib import Path

import pytest

from crawl.runs import crawl, fyke, settings
from crawl.small_site import small_site
from disks import mounted, small_disk


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A finished crawl with its index, and its seed."""
    folder = tmp_path_factory.mktemp("archive")
    into = folder / "crawl"
    with small_site(pages=4) as site:
        assert crawl(into, settings(folder), site.url).status == 0
        assert fyke("index", str(into)).returncode == 0
    for book in into.glob("state/hosts.sqlite-*"):
        book.unlink()  # SQLite's own, which go when the last process has closed the book
    with mounted(into, "--bind", str(into)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(into)], check=True)
        yield into, site.url


@pytest.fixture
def copied(read_only: tuple[Path, str], tmp_path: Path) -> Iterator[Path]:
    """A copy of it, that a test may forbid to read or to write."""
    copy = tmp_path / "copy"
    shutil.copytree(read_only[0], copy)
    yield copy
    subprocess.run(["chmod", "-R", "u+rwX", str(copy)], check=True)


def bound(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command that is bound by permissions, also where root runs the tests."""
    bounds = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("needs setpriv (util-linux)")
    command = [*([] if os.geteuid() else bounds), sys.executable, "-m", "fyke", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


_READERS = ["report", "links", "check", "index", "copy", "why"]


@pytest.mark.parametrize(
    ("name", "command"), [*product(["tables", "state"], _READERS), *product(["state"], ["status", "block"])]
)
def test_a_folder_that_may_not_be_read(copied: Path, tmp_path: Path, name: str, command: str) -> None:
    """It is the one that is named, and not what may be in it."""
    folder = copied / name
    folder.chmod(0)
    more = {"copy": [str(tmp_path / "out")], "why": ["http://127.0.0.1:9/"], "block": ["a.example"]}
    done = bound(command, str(copied), *more.get(command, []))
    assert done.returncode == 3 and not done.stdout, done
    assert done.stderr.count("\n") == 1 and f"cannot read {folder}, " in done.stderr, done
    assert "Permission denied; fix" in done.stderr and "damaged" not in done.stderr, done


def test_a_folder_that_may_not_be_written_is_whole(copied: Path) -> None:
    subprocess.run(["chmod", "-R", "a-w", str(copied)], check=True)
    for command in (["check"], ["status"], ["why", "http://127.0.0.1:9/"]):
        done = bound(command[0], str(copied), *command[1:])
        assert (done.returncode, done.stderr) == (0, ""), done
        assert command != ["check"] or "0 faults" in done.stdout


@pytest.mark.parametrize(
    ("command", "name"),
    [("rewrite", "rewrite.toml"), ("report", "report.html"), ("export --to csv", "export/pages.csv"), ("index", "")],
)
def test_what_may_not_be_written_is_named(copied: Path, command: str, name: str) -> None:
    """The file that was asked for, and not one that is needed on the way to it."""
    subprocess.run(["chmod", "-R", "a-w", str(copied)], check=True)
    word, *more = command.split()
    done = bound(word, str(copied), *more)
    assert done.returncode == 3 and not done.stdout and done.stderr.count("\n") == 1, done
    assert f"cannot write {copied / name}" in done.stderr and "Permission denied" in done.stderr, done


def test_a_journal_that_was_left_is_no_damage_where_it_may_not_be_written(copied: Path, tmp_path: Path) -> None:
    book = copied / "state" / "hosts.sqlite"
    with closing(sqlite3.connect(book)) as writer:
        writer.execute("CREATE TABLE other (one)")
        writer.commit()
        shutil.copy(f"{book}-wal", tmp_path)
    shutil.copy(tmp_path / f"{book.name}-wal", book.parent)
    subprocess.run(["chmod", "-R", "a-w", str(copied)], check=True)
    done = bound("check", str(copied))
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and not done.stdout, done
    assert str(book) in done.stderr and "journal" in done.stderr and "copy" in done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("status",), "finished"),
        (("why", "{seed}"), "robots"),
        (("check",), "0 faults"),
        (("links",), "no broken links"),
        (("search", "intitle:2"), "1 page for"),
        (("export", "--to", "csv", "--out", "{out}.csv"), "{out}.csv"),
        (("report", "--out", "{out}.html"), "{out}.html"),
    ],
)
def test_who_only_reads_is_answered(
    read_only: tuple[Path, str], tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    into, seed = read_only
    words = {"seed": seed, "out": str(tmp_path / "out")}
    name, *arguments = (word.format(**words) for word in command)
    done = fyke(name, str(into), *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert said.format(**words) in done.stdout


def test_a_full_disk_is_no_damage(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        with small_site(pages=4) as site:
            assert crawl(disk / "crawl", settings(tmp_path), site.url).status == 0
        with suppress(OSError), (disk / "filling").open("wb", buffering=0) as filling:
            while True:
                filling.write(bytes(4096))
        into = str(disk / "crawl")
        for arguments in (["status", into], ["why", into, site.url], ["check", into]):
            done = fyke(*arguments)
            assert (done.returncode, done.stderr) == (0, ""), done
        done = fyke("index", into)
        assert done.returncode == 4 and "free some space" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_who_writes_is_told_so(read_only: tuple[Path, str]) -> None:
    done = fyke("crawl", "--into", str(read_only[0]), "--again")
    assert done.returncode == 3 and "Read-only file system" in done.stderr and done.stderr.count("\n") == 1
