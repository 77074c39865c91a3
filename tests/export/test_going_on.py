"""Killed at any moment, the same command comes to the bytes of an undisturbed run; nothing half-made looks whole."""

import io
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from disks import hiding_deleted
from export.crawls import ALL, contents, exported, killed_after_a_part
from fyke.archive.reading import read_table
from fyke.core.errors import ConfigurationError, DirectoryInUse
from fyke.export import Format, export
from fyke.export.staging import Mark, Staging
from search.archives import Answer, Archive, html

OUT = {name: name for name in ALL} | {"jsonl": "x.jsonl.gz", "wacz": "x.wacz", "csv": "x.csv"}


class Killed(BaseException):
    """What stands for SIGKILL within a test."""


small = partial(exported, part_rows=7)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of thirty pages."""
    made = Archive(tmp_path_factory.mktemp("site"), table_rows=12)
    for number in range(30):
        links = {f"http://a.example/{n}": f"page {n}" for n in range(number, number + 3)}
        made.visit(f"http://a.example/{number}", html(f"Page {number}", f"The words of page {number}. " * 20, links))
    made.close()
    return made.folder


def interrupted(crawl: Path, to: str, out: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Export until the disk is asked for the `at`-th time to be safe, and die there; False when it was done before."""
    real, asked = os.fsync, 0

    def fsync(descriptor: int) -> None:
        nonlocal asked
        asked += 1
        if asked == at:
            raise Killed
        real(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        try:
            small(crawl, to, out)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("to", ALL)
def test_whatever_the_moment(to: str, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "whole").mkdir()
    wanted = contents(small(site, to, tmp_path / "whole" / OUT[to]))
    at, step = 1, 3
    while True:
        out = tmp_path / str(at) / OUT[to]
        out.parent.mkdir()
        if not interrupted(site, to, out, at, monkeypatch):
            break
        assert out.exists() is False or contents(out) == wanted
        assert contents(small(site, to, out)) == wanted
        at += step
    assert at > 4


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
def test_killed(to: str, crawl_of_the_web: Path, tmp_path: Path) -> None:
    """With SIGKILL, a process of its own."""
    out = tmp_path / OUT[to]
    noted = killed_after_a_part(crawl_of_the_web, to, out, 50)
    assert not out.exists() and noted["mark"]
    whole = tmp_path / "whole"
    whole.mkdir()
    fifty = partial(exported, crawl_of_the_web, to, part_rows=50)
    assert contents(fifty(out)) == contents(fifty(whole / OUT[to]))


def test_what_came_later_is_for_a_later_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export that goes on is of the crawl as it was when it began."""
    made = Archive(tmp_path / "crawl", table_rows=12)
    for number in range(20):
        made.visit(f"http://a.example/{number}", html(f"Page {number}", f"The words of page {number}. " * 20))
    made.flush()
    wanted = contents(small(made.folder, "jsonl", tmp_path / "before.jsonl"))
    assert interrupted(made.folder, "jsonl", tmp_path / "x.jsonl", 4, monkeypatch)
    for number in range(20, 40):
        made.visit(f"http://a.example/{number}", html(f"Page {number}", f"The words of page {number}. " * 20))
    made.close()
    assert list(contents(small(made.folder, "jsonl", tmp_path / "x.jsonl")).values()) == list(wanted.values())
    after = contents(small(made.folder, "jsonl", tmp_path / "after.jsonl"))["after.jsonl"]
    assert after.startswith(wanted["before.jsonl"]) and after.count(b"\n") == 40


def test_another_crawl_or_other_options_begin_anew(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "x.jsonl"
    assert interrupted(site, "jsonl", out, 5, monkeypatch)
    other = Archive(tmp_path / "other")
    other.visit("http://b.example/", html("Other", "The words of another page. " * 20))
    other.close()
    assert b"b.example" in contents(small(other.folder, "jsonl", out))["x.jsonl"]
    out.unlink()
    assert interrupted(site, "jsonl", out, 5, monkeypatch)
    small(site, "jsonl", out, everything=True)
    assert not out.with_name("x.jsonl.part").exists()


def test_a_target_that_is_there_stays(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    out.write_text("mine")
    with pytest.raises(ConfigurationError, match=r"x\.jsonl exists already"):
        exported(site, "jsonl", out)
    out.unlink()
    part = tmp_path / "x.jsonl.part"
    part.mkdir()
    (part / "thesis.tex").write_text("mine")
    with pytest.raises(ConfigurationError, match="in the way"):
        exported(site, "jsonl", out)
    assert (part / "thesis.tex").read_text() == "mine"


def test_killed_after_the_last_rename(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step of tidying up: the same command says that all is done, and tidies up. Behind the last file there is
    no knowing that it was this command that did it."""
    out, part = tmp_path / "x.wacz", tmp_path / "x.wacz.part"
    at, killed = 0, True
    while killed:
        at += 1
        with monkeypatch.context() as patched:
            killed = killed_while_tidying(site, out, at, patched)
        whole, known = out.read_bytes(), (part / "progress.json").exists()
        if known:
            exported(site, "wacz", out)
        with pytest.raises(ConfigurationError, match="exists already"):
            exported(site, "wacz", out)
        assert out.read_bytes() == whole and not part.exists()
        assert known or at > 1
        out.unlink()


def killed_while_tidying(crawl: Path, out: Path, at: int, patched: pytest.MonkeyPatch) -> bool:
    """Export, and die at the `at`-th thing that is deleted once `out` is there; False when it was done before."""
    deleted = 0

    def dying(real: Callable[..., None], *arguments: Any, **more: Any) -> None:
        nonlocal deleted
        deleted += out.exists()
        if deleted == at:
            raise Killed
        real(*arguments, **more)

    for name in ("unlink", "rmdir"):
        patched.setattr(os, name, partial(dying, getattr(os, name)))
    try:
        exported(crawl, "wacz", out)
    except Killed:
        return True
    return False


def test_two_at_once(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    with Staging(out, {"format": "x"}) as first:
        first.begin({})
        first.record(Mark(1, 1, {}))
        with pytest.raises(DirectoryInUse, match="another fyke export"):
            export(site, Format.JSONL, out, Console(file=io.StringIO()), everything=False)
    assert json.loads((tmp_path / "x.jsonl.part" / "progress.json").read_text())["mark"][0] == 1


@pytest.mark.parametrize("to", ALL)
def test_deleted_files_may_stay_until_they_are_closed(to: str, site: Path, tmp_path: Path) -> None:
    with hiding_deleted():
        exported(site, to, tmp_path / OUT[to])
    assert [path.name for path in tmp_path.iterdir()] == [OUT[to]]


def test_an_empty_crawl(tmp_path: Path) -> None:
    made = Archive(tmp_path / "crawl")
    made.close()
    for to in ALL:
        exported(made.folder, to, tmp_path / OUT[to])
    found: dict[str, Any] = contents(tmp_path / "x.csv")
    assert found["x.csv"].startswith(b'"key","url"') and found["x.csv"].count(b"\n") == 1


def test_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    """One bad record costs one page."""
    made = Archive(tmp_path / "crawl")
    for number in range(3):
        made.visit(f"http://a.example/{number}", html(f"Page {number}", f"The words of page {number}. " * 20))
    made.visit("http://a.example/gone", Answer("nothing", 404))
    made.close()
    (warc,) = (made.folder / "warc").glob("*.warc.gz")
    data = bytearray(warc.read_bytes())
    place = read_table(made.folder, "pages", ["warc_offset"]).column(0)[1].as_py()
    data[place + 20 : place + 60] = bytes(40)
    warc.write_bytes(data)
    text = exported(made.folder, "jsonl", tmp_path / "x.jsonl").read_text()
    assert [json.loads(line)["title"] for line in text.splitlines()] == ["Page 0", "Page 2"]
