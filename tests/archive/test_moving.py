"""A crawl is moved, killed or not: it is one crawl at any time, and goes on where it is."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crawl.runs import archived, crawl, fyke, settings
from crawl.small_site import SmallSite, small_site
from fyke.archive.directory import CrawlDirectory
from fyke.archive.moving import MOVED, Moved, move
from fyke.core.errors import DirectoryError, DirectoryInUse, NotACrawl

Tree = dict[str, bytes]


@pytest.fixture(scope="module")
def half() -> Iterator[tuple[SmallSite, Path]]:
    """A site, and half a crawl of it."""
    with tempfile.TemporaryDirectory() as folder, small_site(pages=12) as site:
        into = Path(folder) / "there"
        assert crawl(into, settings(Path(folder)), site.url, "--pages", "6").status == 0
        (into / "notes").mkdir()
        (into / "notes" / "mine").write_text("of a person")
        (into / "link").symlink_to("notes/mine")
        (into / "empty").mkdir()
        yield site, into


@pytest.fixture
def source(half: tuple[SmallSite, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(half[1], tmp_path / "there", symlinks=True))


def other_disk(old: Path, new: Path) -> None:
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


def tree(folder: Path) -> Tree:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock" and path.name != "supervised")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def quiet(*_: object) -> None: ...


@pytest.mark.parametrize("rename", [os.rename, other_disk])
def test_it_goes_on_where_it_is(rename, half: tuple[SmallSite, Path], source: Path, tmp_path: Path) -> None:
    site, target = half[0], tmp_path / "far" / "away"
    before = tree(source)
    done = move(CrawlDirectory(source), target, quiet, rename)
    assert not source.exists() and tree(target) == before and (target / "empty").is_dir()
    assert (target / "link").readlink() == Path("notes/mine")
    assert bool(done.files) == (rename is other_disk)
    run = crawl(target, target / "fyke.toml", "--pages", "1000")
    assert run.status == 0 and sorted(archived(target)) == sorted(site.all_urls())
    assert fyke("check", str(target)).returncode == 0


@pytest.mark.parametrize("rename", [os.rename, other_disk])
def test_what_a_link_leads_to_is_moved_and_the_link_goes(rename, source: Path, tmp_path: Path) -> None:
    before, link, target = tree(source), tmp_path / "link", tmp_path / "far" / "away"
    link.symlink_to("there")
    move(CrawlDirectory(link), target, quiet, rename)
    assert not target.is_symlink() and tree(target) == before
    assert not source.exists() and not os.path.lexists(link)
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(NotACrawl):
        move(CrawlDirectory(tmp_path / "dangling"), tmp_path / "other", quiet, rename)
    assert (tmp_path / "dangling").is_symlink()


@pytest.mark.parametrize("rename", [os.rename, other_disk])
@pytest.mark.parametrize("named", [".", "../there", "sub/.."])
def test_a_folder_may_be_named_from_within(
    rename, named: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(source)
    (source / "sub").mkdir()
    monkeypatch.chdir(source)
    move(CrawlDirectory(Path(named)), Path("../far"), quiet, rename)
    assert tree(tmp_path / "far") == before and not source.exists()


class Killed(BaseException):
    pass


class Fate:
    """Ends the process at its step number `at`, of those that change a disk."""

    def __init__(self, at: int) -> None:
        self.left = at

    def step(self, real: Any, *arguments: Any, **more: Any) -> Any:
        self.left -= 1
        if not self.left:
            raise Killed
        return real(*arguments, **more)

    def rule(self, patched: pytest.MonkeyPatch) -> None:
        for name in ("replace", "rename", "unlink", "rmdir", "mkdir", "symlink_to"):
            patched.setattr(Path, name, partialmethod(_stepping, self, getattr(Path, name)))


def _stepping(path: Path, fate: Fate, real: Any, *arguments: Any, **more: Any) -> Any:
    return fate.step(real, path, *arguments, **more)


def test_killed_anywhere_the_same_goes_on(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step: one folder at most is a crawl, one has everything; the end is as if nothing had happened."""
    before, target, kept = tree(source), tmp_path / "target", tmp_path / "kept"
    shutil.copytree(source, kept, symlinks=True)
    chance = Random(1)
    at, kills, killed = 0, 0, True
    while killed:
        at += chance.randint(1, 4)
        try:
            with monkeypatch.context() as patched:
                Fate(at).rule(patched)
                move(CrawlDirectory(source), target, quiet, other_disk)
            killed = False
        except Killed:
            crawls = [folder for folder in (source, target) if (folder / "fyke.toml").is_file()]
            assert len(crawls) <= 1
            whole = [_everything(folder) for folder in (source, target) if folder.is_dir()]
            assert any(files.items() >= _named(before).items() for files in whole)
            kills += 1
            if kills % 5 == 0 or source not in crawls:  # go on, in most cases from where others were killed before
                move(CrawlDirectory(source), target, quiet, other_disk)
                assert tree(target) == before and not source.exists()
                shutil.rmtree(target)
                shutil.copytree(kept, source, symlinks=True)
    assert kills > 20 and tree(target) == before and not source.exists()


def test_killed_once_it_has_its_new_name(source: Path, tmp_path: Path) -> None:
    before, target = tree(source), tmp_path / "target"

    def last(old: Path, new: Path) -> None:
        old.rename(new)
        raise Killed

    with pytest.raises(Killed):
        move(CrawlDirectory(source), target, quiet, last)
    assert not source.exists()
    assert move(CrawlDirectory(source), target, quiet) == Moved() and tree(target) == before
    with pytest.raises(NotACrawl, match=f"{source} is not there, and {target} holds a crawl"):
        move(CrawlDirectory(source), target, quiet)


def test_what_cannot_get_the_name_stays_as_it_was(source: Path, tmp_path: Path) -> None:
    before = tree(source)

    def refused(old: Path, new: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with pytest.raises(DirectoryError):
        move(CrawlDirectory(source), tmp_path / "target", quiet, refused)
    assert tree(source) == before


def _everything(folder: Path) -> Tree:
    return _named(tree(folder))


def _named(files: Tree) -> Tree:
    return {name.removesuffix(".moved"): content for name, content in files.items()}


def test_what_may_not_be(source: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").write_text("")
    for target in (full, source, source / "deeper", tmp_path):
        with pytest.raises(DirectoryError):
            move(CrawlDirectory(source), target, quiet)
    with CrawlDirectory(source).closed_to_crawls(), pytest.raises(DirectoryInUse):
        move(CrawlDirectory(source), tmp_path / "new", quiet)
    assert (source / "fyke.toml").is_file() and not (source / MOVED).exists()
    done = fyke("move", str(source), str(full))
    assert done.returncode == 3 and done.stderr.count("\n") == 1
    done = fyke("move", str(source), str(tmp_path / "new"))
    assert done.returncode == 0 and done.stdout == f"{source} was moved to {tmp_path / 'new'}\n"
