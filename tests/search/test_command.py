"""`fyke index` and `fyke search` as a person runs them, and an index that follows a crawl."""

import gc
import json
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

import commands
from commands import in_process
from crawl.runs import begin, crawl, killed_at, settings
from crawl.runs import fyke_here as fyke
from crawl.small_site import small_site
from disks import grow, small_disk
from fyke.archive.reading import read_table
from fyke.search import following
from fyke.search.indexer import Indexer
from search.archives import archive, contents, html, indexed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = [(f"http://a.example/{n}", html(f"Plum \x1b[31m{n}", "Plums of every kind. " * 9)) for n in range(12)]
    made = archive(tmp_path_factory.mktemp("command") / "crawl", pages)
    done = fyke("index", str(made))
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith(
        f"{made}: 12 pages can be found; 12 were read, 12 written, 0 deleted\nNext: fyke search"
    )
    return made


def test_plain(folder: Path) -> None:
    done = fyke("search", str(folder), "plums", "every")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and not done.stderr
    assert lines[0].startswith("Plum [31m") and lines[1].startswith("http://a.example/")
    assert lines[2].startswith("Plum") and lines[-1].startswith("12 pages for 'plums every' in ")
    assert done.stdout.count("http://") == 10
    assert fyke("search", str(folder), "plums", "--limit", "3", "--offset", "10").stdout.count("http://") == 2


def test_json(folder: Path) -> None:
    done = fyke("search", str(folder), "plum kind", "--json", "--limit", "2")
    found = json.loads(done.stdout)
    assert (found["total"], len(found["hits"]), found["suggestion"]) == (12, 2, None)
    assert found["hits"][0]["snippet"][0] == ["Plum", True]
    assert json.loads(fyke("index", str(folder), "--json").stdout)["documents"] == 12


def test_a_word_that_no_page_has_is_named(folder: Path) -> None:
    done = fyke("search", str(folder), "plums", "qqqq\x1b[31m", '"kind every"')
    assert (done.returncode, done.stdout) == (1, 'Nothing found\nNo page has qqqq [31m, "kind every"\n')
    done = fyke("search", str(folder), "plums qqqq every")
    first, *_, summary, unknown = done.stdout.splitlines()
    assert first.startswith("Plum") and summary.startswith("12 pages for ") and unknown == "No page has qqqq"
    assert json.loads(fyke("search", str(folder), "--json", "plums qqqq").stdout)["unknown"] == ["qqqq"]


def test_nothing_found(folder: Path) -> None:
    done = fyke("search", str(folder), "+plumz")
    assert (done.returncode, done.stdout) == (1, "Nothing found\nNo page has plumz\nDid you mean: +plum\n")
    assert fyke("search", str(folder), "--json", "qqqq").returncode == 1


def test_what_is_misspelt_is_answered_as_it_was_meant(folder: Path) -> None:
    done = fyke("search", str(folder), "plumz")
    assert done.returncode == 0 and done.stdout.startswith("Plum")
    assert done.stdout.endswith("\nNo page has plumz\nThese are for: plum\n")
    told = json.loads(fyke("search", str(folder), "--json", "plumz").stdout)
    assert (told["unknown"], told["suggestion"], told["is_respelt"]) == (["plumz"], "plum", True)


def test_mistakes(tmp_path: Path) -> None:
    made = archive(tmp_path / "made", [("http://a.example/", html("x"))])
    indexed(made)
    archive(tmp_path / "crawl", [("http://a.example/", html("x"))])
    for arguments, status, told in (
        (("search", str(tmp_path / "crawl"), "x"), 3, "there is no index; make it with fyke index"),
        (("search", str(tmp_path / "none"), "x"), 3, "there is no index; make it with fyke index"),
        (("index", str(tmp_path / "none")), 3, "holds no crawl: begin one with fyke crawl URL --into"),
        (("search", str(tmp_path)), 2, "missing argument"),
        (("search", str(made), "plum site:"), 2, "site: it is empty; write the name of a host"),
        (("search", str(made), "plum", "after:foo"), 2, "after: 'foo' is not valid; write a year"),
    ):
        done = fyke(*arguments)
        assert done.returncode == status, done.stderr
        assert told in done.stderr and done.stderr.count("\n") == 1


def test_follows_a_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexed beside the crawl and to its end, it is the index made afterwards, and the crawl lost nothing."""
    into = tmp_path / "crawl"
    monkeypatch.setattr(following, "LEAST_PAGES", 20)
    with small_site(pages=100, page_bytes=400) as site:
        slow = settings(tmp_path, politeness={"address_delay_s": 0.04}, store={"checkpoint_s": 0.5})
        crawling = begin(into, slow, site.url)
        while not (into / "tables").is_dir():
            assert crawling.poll() is None
        waits = 0

        def wait(seconds: float) -> None:
            nonlocal waits
            waits += 1
            with suppress(subprocess.TimeoutExpired):
                crawling.wait(0.1)

        with Indexer(into) as indexer:
            done = following.follow_crawl(indexer, wait)
        assert crawling.wait() == 0
    assert waits
    assert done.documents == done.read == read_table(into, "pages").num_rows == 100
    followed = contents(into)
    shutil.rmtree(into / "index")
    indexed(into)
    assert contents(into) == followed


def test_a_crawl_that_was_killed(tmp_path: Path) -> None:
    """What the crawl had not made safe it fetches again; the index has never seen it."""
    into = tmp_path / "crawl"
    with small_site(pages=150, page_bytes=400) as site:
        store = {"checkpoint_s": 0.3}
        slow = settings(tmp_path, politeness={"address_delay_s": 0.03}, store=store)
        for rows in (15, 45):
            killed_at(begin(into, slow, site.url), into, "pages", rows)
            indexed(into)
        assert crawl(into, settings(tmp_path, store=store), site.url).status == 0
    done = indexed(into)
    assert done.documents == read_table(into, "pages").num_rows == 150
    in_steps = contents(into)
    shutil.rmtree(into / "index")
    indexed(into)
    assert contents(into) == in_steps


def test_a_full_disk(tmp_path: Path) -> None:
    """Wherever there is no room it says so in a line; with room the same command indexes all."""
    pages = (
        (f"http://a.example/{n}", html(f"Plum {n}", " ".join(os.urandom(4).hex() for _ in range(200))))
        for n in range(300)
    )
    made = archive(tmp_path / "crawl", list(pages))
    for room_kb in (1_000, *range(1_400, 1_720, 60)):  # from lots that have no room to an engine that has none
        with small_disk(tmp_path / "disk", f"{room_kb}k") as disk:
            folder = shutil.copytree(made, disk / "crawl")
            commands.told(4, ["index", str(folder)], ["no", "free some space"])
            grow(disk)
            assert json.loads(in_process("index", str(folder), "--json").out)["documents"] == 300
            gc.collect()  # nothing of it is open when the disk goes
