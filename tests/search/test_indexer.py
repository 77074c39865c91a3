"""The index is a function of the archive: in one go or many, interrupted or not."""

import json
import os
import shutil
import subprocess
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from crawl.runs import killed_after
from damaging import damage
from fyke.core.errors import DirectoryError, DirectoryInUse, NotACrawl
from fyke.core.outcomes import Outcome
from fyke.disk.checkpoint import Checkpoint
from fyke.search.indexer import Indexer, IndexLimits
from fyke.search.lots import NotShown
from fyke.search.searcher import Searcher
from loaded import COMMAND, Loaded
from search.archives import SMALL, Answer, Archive, archive, contents, html, index_of, indexed, searched, urls
from search.webs import history

LAW = settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # an example takes a second: shrinking would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@LAW
@given(seed=st.integers(0, 1 << 30), steps=st.lists(st.integers(1, 25), min_size=2, max_size=6))
def test_in_steps_as_in_one_go(tmp_path_factory: pytest.TempPathFactory, seed: int, steps: list[int]) -> None:
    folder = tmp_path_factory.mktemp("steps")
    visits = history(seed, sum(steps))
    growing = Archive(folder / "steps")
    for step in steps:
        for url, answer in visits[:step]:
            growing.visit(url, answer)
        visits = visits[step:]
        growing.flush()
        indexed(folder / "steps")
    growing.close()
    indexed(folder / "steps")
    whole = archive(folder / "whole", history(seed, sum(steps)))
    indexed(whole, IndexLimits())
    assert contents(folder / "steps") == contents(whole)


class Interrupted(Exception):
    pass


@LAW
@given(seed=st.integers(0, 1 << 30), cuts=st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_interrupted_anywhere(tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[int]) -> None:
    folder = tmp_path_factory.mktemp("cuts")
    visits = history(seed, 60)
    archive(folder / "cut", visits)
    for cut in cuts:
        left = [cut]

        def progress(phase: str, done: int, of: int, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise Interrupted

        try:
            with Indexer(folder / "cut", SMALL, progress) as indexer:
                indexer.run()
        except Interrupted:
            pass
    indexed(folder / "cut")
    indexed(archive(folder / "again", visits), IndexLimits())
    assert contents(folder / "cut") == contents(folder / "again")


def kill_soon(folder: Path, after_s: float) -> bool:
    """Run `fyke index` and kill it after a time; False when it had ended."""
    process = Loaded([*COMMAND, "index", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return killed_after(process, after_s)


def test_killed_at_any_moment(tmp_path: Path) -> None:
    visits = history(7, 900, pages=300)
    folder = archive(tmp_path / "killed", visits)
    whole = archive(tmp_path / "whole", visits)
    begun = time.monotonic()
    indexed(whole, IndexLimits())
    took_s = time.monotonic() - begun
    killed = sum(kill_soon(folder, 0.6 + took_s * share) for share in (0.2, 0.6, 0.9, 1.1))
    assert killed
    indexed(folder, IndexLimits())
    assert contents(folder) == contents(whole)


def test_fetched_again_gone_and_back(tmp_path: Path) -> None:
    made = Archive(tmp_path)
    made.visit("http://a.example/", html("first", "apricot"))
    made.visit("http://a.example/b", html("second", "banana"))
    made.flush()
    with searched(tmp_path) as searcher:
        assert urls(searcher, "apricot") == ["http://a.example/"]
        made.visit("http://a.example/", html("first", "cherry"))
        made.visit("http://a.example/", Answer("", 304), Outcome.UNCHANGED)
        made.visit("http://a.example/b", Answer("", 410))
        made.flush()
        indexed(tmp_path)
        assert urls(searcher, "banana") == ["http://a.example/b"]  # once says nothing yet
        made.visit("http://a.example/b", Answer("", 410), Outcome.GONE)
        made.failure("http://a.example/")
        made.flush()
        done = indexed(tmp_path)
        assert (done.written, done.deleted, done.documents) == (0, 1, 1)
        assert urls(searcher, "apricot") == urls(searcher, "banana") == []
        assert urls(searcher, "cherry") == ["http://a.example/"]
        made.visit("http://a.example/b", html("second", "banana"))
        made.close()
        indexed(tmp_path)
        assert urls(searcher, "banana") == ["http://a.example/b"]


def test_equal_pages_are_one_result(tmp_path: Path) -> None:
    same = html("the same", "pomegranate")
    made = Archive(tmp_path)
    for path in ("/long/way/index.html", "/index.html", "/"):
        made.visit(f"http://a.example{path}", same)
    made.flush()
    with searched(tmp_path) as searcher:
        assert urls(searcher, "pomegranate") == ["http://a.example/"]
        made.visit("http://a.example/", Answer("", 404), Outcome.GONE)
        made.flush()
        indexed(tmp_path)
        assert urls(searcher, "pomegranate") == ["http://a.example/index.html"]
        made.visit("http://a.example/", same)
        made.close()
        indexed(tmp_path)
        assert urls(searcher, "pomegranate") == ["http://a.example/"]


def test_noindex_is_not_there(tmp_path: Path) -> None:
    archive(
        tmp_path,
        [
            ("http://a.example/", html("shown", "quince", {"/hidden": "a link to quinces"})),
            (
                "http://a.example/hidden",
                html("hidden", "quince", {"/told": "medlar"}, "<meta name=robots content=noindex>"),
            ),
            ("http://a.example/header", Answer("<p>quince", headers={"X-Robots-Tag": "noindex"})),
            ("http://a.example/told", html("told")),
        ],
    )
    with searched(tmp_path) as searcher:
        assert urls(searcher, "quince") == ["http://a.example/"]
        assert urls(searcher, "medlar") == ["http://a.example/told"]


@LAW
@given(visits=st.lists(st.sampled_from(["shown", "tag", "header", "304", "304 header"]), min_size=2, max_size=7))
@example(["shown", "304 header", "304"])
@example(["header", "304 header", "304", "shown"])
def test_what_asks_last_counts(tmp_path_factory: pytest.TempPathFactory, visits: list[str]) -> None:
    """A 304 that asks for nothing leaves what the newest answer in full asked; in steps as in one go."""
    folder = tmp_path_factory.mktemp("asks")
    made, (url, other) = Archive(folder), ("http://a.example/", "http://a.example/other")
    asks = whole_asks = False
    for visit in ["shown", *visits]:
        headers = {"X-Robots-Tag": "noindex"} if "header" in visit else {}
        tag = "<meta name=robots content=noindex>" if visit == "tag" else ""
        for name in (url, other):
            if visit.startswith("304"):
                made.visit(name, Answer("", 304, headers), Outcome.UNCHANGED)
            else:
                made.visit(name, replace(html("page", "quince", head=tag), headers=headers))
        whole_asks = whole_asks if visit.startswith("304") else visit != "shown"
        asks = whole_asks or "header" in visit
        made.flush()
        with searched(folder) as searcher:
            assert urls(searcher, "quince") == ([] if asks else [url])
    made.close()
    steps = contents(folder)
    shutil.rmtree(folder / "index")
    indexed(folder, IndexLimits())
    assert contents(folder) == steps


def test_lots_are_read_for_a_304_alone_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    fates = NotShown._add
    monkeypatch.setattr(NotShown, "_add", lambda self, lot: (read.append(lot.number), fates(self, lot)))
    made = Archive(tmp_path)
    with Indexer(tmp_path, IndexLimits(lot_pages=1)) as indexer:
        for version, known in enumerate([0, 0, 3, 3, 5]):
            made.visit("http://a.example/", html("page", f"quince {version}"))
            if known == version + 1:
                made.visit("http://a.example/", Answer("", 304), Outcome.UNCHANGED)
            made.flush()
            indexer.run()
            assert read == list(range(known))
    made.close()


def test_anchors_reach_a_page_later(tmp_path: Path) -> None:
    made = Archive(tmp_path)
    made.visit("http://a.example/page", html("Plain", "nothing"))
    made.flush()
    with searched(tmp_path) as searcher:
        assert not urls(searcher, "kumquat")
        made.visit("http://b.example/", html("Links", "", {"http://a.example/page": "all about the kumquat"}))
        made.visit("http://c.example/", html("Old", "", {"http://a.example/old": "physalis too"}))
        made.visit("http://a.example/old", Answer("", 301, {"Location": "/page"}))
        made.flush()
        indexed(tmp_path)
        assert urls(searcher, "kumquat physalis")[0] == "http://a.example/page"
        assert [(link.url, link.words) for link in searcher.inlinks("http://a.example/page")] == [
            ("http://b.example/", "all about the kumquat"),
            ("http://c.example/", "physalis too"),
        ]
        made.visit("http://b.example/", html("Links", "no more"))
        made.close()
        indexed(tmp_path)
        assert not urls(searcher, "kumquat intitle:plain")


@pytest.mark.parametrize("steps", [1, 9, 20])
def test_the_words_of_a_link_reach_the_page_at_the_end_of_its_redirects(tmp_path: Path, steps: int) -> None:
    """A crawl follows twenty in a row."""
    site = "http://a.sim"
    chain = [f"{site}/step{at}" for at in range(steps)]
    moved = [(url, Answer(status=301, headers={"Location": to})) for url, to in pairwise([*chain, f"{site}/end"])]
    begin = html("Begin", "A page with a link.", {chain[0]: "marmalade"})
    folder = archive(tmp_path, [(f"{site}/", begin), *moved, (f"{site}/end", html("End", "Words of the last page."))])
    with searched(folder) as searcher:
        assert f"{site}/end" in urls(searcher, "marmalade")


def test_only_what_a_checkpoint_holds(tmp_path: Path) -> None:
    archive(tmp_path, [("http://a.example/", html("one", "durian"))])
    with Checkpoint(tmp_path / "state" / "shard-0000") as checkpoint:
        checkpoint.take({}).make_durable()
    assert indexed(tmp_path).documents == 0


def test_nothing_to_find(tmp_path: Path) -> None:
    archive(tmp_path, [("http://a.example/x.png", Answer(b"\x89PNG", headers={"Content-Type": "image/png"}))])
    with searched(tmp_path) as searcher:
        assert searcher.pages == searcher.search("png").total == 0
        assert searcher.similar("http://a.example/x.png") == searcher.inlinks("http://a.example/") == ()


def test_a_damaged_index(tmp_path: Path) -> None:
    archive(tmp_path, history(3, 5))
    indexed(tmp_path)
    (tmp_path / "index/engine-001/meta.json").write_text("{")
    for use in (lambda: Searcher([tmp_path]), lambda: indexed(tmp_path)):
        with pytest.raises(DirectoryError, match=r"delete .*index and make it again"):
            use()


@pytest.mark.parametrize("lost", ["meta.json", "*"])
def test_an_engine_that_lost_its_documents_is_made_anew(tmp_path: Path, lost: str) -> None:
    """Tantivy takes a folder without its list of segments for an empty index."""
    archive(tmp_path, history(3, 40))
    indexed(tmp_path)
    before = contents(tmp_path)
    for path in (tmp_path / "index/engine-001").glob(lost):
        path.unlink()
    with pytest.raises(DirectoryError, match="make it with fyke index"):
        Searcher([tmp_path])
    assert indexed(tmp_path).documents == len(before)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_who_may_read_the_folder_may_read_what_is_in_it(tmp_path: Path, mask: int) -> None:
    archive(tmp_path, history(3, 5))
    before = os.umask(mask)
    try:
        indexed(tmp_path)
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "index/engine-001").iterdir()}
    assert modes == {0o666 & ~mask}


def test_another_crawl_in_the_directory(tmp_path: Path) -> None:
    archive(tmp_path / "x", [("http://a.example/", html("one", "durian"))])
    indexed(tmp_path / "x")
    (tmp_path / "x/index").rename(tmp_path / "index")
    archive(tmp_path / "y", [("http://b.example/", html("two", "rambutan"))])
    (tmp_path / "index").rename(tmp_path / "y/index")
    with searched(tmp_path / "y") as searcher:
        assert urls(searcher, "durian") == []
        assert urls(searcher, "rambutan") == ["http://b.example/"]


@pytest.mark.parametrize("change", [{"format": 0}, {"engine": "0.1"}])
def test_another_version_is_made_anew(tmp_path: Path, change: dict[str, object]) -> None:
    archive(tmp_path, history(3, 40))
    indexed(tmp_path)
    before = contents(tmp_path)
    state = tmp_path / "index/state.json"
    state.write_text(json.dumps(json.loads(state.read_text())["index"] | change))
    with pytest.raises(DirectoryError, match="another version; make it with fyke index"):
        Searcher([tmp_path])
    indexed(tmp_path)
    assert contents(tmp_path) == before


def test_a_state_that_is_damaged_anywhere_counts_for_nothing(tmp_path: Path) -> None:
    archive(tmp_path, history(3, 5))
    indexed(tmp_path)
    folder, state = index_of(tmp_path), tmp_path / "index/state.json"
    whole = state.read_bytes()
    for at in range(len(whole)):
        state.write_bytes(whole[:at])
        assert folder.state() is None, f"cut at {at}"
        state.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert folder.state() is None, f"flipped at {at}"
    state.write_bytes(whole)
    assert folder.state() is not None


@pytest.mark.parametrize("how", ["flip", "cut", "empty"])
def test_an_index_whose_state_is_damaged_is_made_anew(tmp_path: Path, how: str) -> None:
    archive(tmp_path, history(3, 40))
    indexed(tmp_path)
    before = contents(tmp_path)
    damage(tmp_path / "index/state.json", how, 0.5)
    for kept in ("index/.nfs0001", "index/lots/.nfs0002"):  # what a file system keeps there is not ours
        (tmp_path / kept).touch()
    with pytest.raises(DirectoryError, match=r"damaged.*; make it with fyke index"):
        Searcher([tmp_path])
    indexed(tmp_path)
    assert contents(tmp_path) == before


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    archive(tmp_path, history(5, 60))
    first = indexed(tmp_path)
    again = indexed(tmp_path)
    assert first.documents == again.documents > 0
    assert (again.read, again.written, again.deleted) == (0, 0, 0)


def test_two_indexers(tmp_path: Path) -> None:
    archive(tmp_path, history(5, 3))
    with Indexer(tmp_path), pytest.raises(DirectoryInUse), Indexer(tmp_path):
        pass


def test_no_crawl(tmp_path: Path) -> None:
    with pytest.raises(NotACrawl, match="fyke crawl URL --into"), Indexer(tmp_path / "none"):
        pass
    with pytest.raises(DirectoryError, match="there is no index; make it with fyke index"):
        Searcher([tmp_path])


def test_tidy(tmp_path: Path) -> None:
    made = Archive(tmp_path)
    for url, answer in history(1, 80):
        made.visit(url, answer)
        made.flush()
    indexed(tmp_path)
    made.close()
    indexed(tmp_path)
    state = index_of(tmp_path).state()
    assert state is not None and state.settled
    kinds = {path.name.partition(".")[0] for path in (tmp_path / "index").iterdir()}
    assert kinds == {
        "state",
        "lock",
        "lots",
        "near",
        "lines-0",
        "lines-1",
        f"merge-{state.merge:06}",
        f"ranks-{state.ranks:06}",
        "engine-001",
    }
