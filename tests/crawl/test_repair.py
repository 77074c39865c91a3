"""A crawl's directory is damaged in every way, and mended: nothing the archive holds is lost, and no command fails."""

import io
import json
import os
import random
import resource
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest

from commands import in_process
from crawl.runs import archived, begin, crawl, crawl_here, fyke, killed_at, settings, wait_until
from crawl.small_site import SmallSite, small_site
from damaging import damage
from fyke.archive.check import Fault, check_archive
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.inspect import check_crawl
from fyke.archive.reading import read_table, rows_recorded
from fyke.archive.warc_reading import Record, read_records
from fyke.core.config import build
from fyke.core.errors import ConfigurationError, DirectoryInUse
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, visit_to
from fyke.crawl.repair import Note, repair
from fyke.crawl.repair.reread import _outcome
from fyke.disk import manifest as manifests
from fyke.disk.checkpoint import Checkpoint
from serve.kit import client, served

PAGES = 150
STORE = {"table_rows": 8, "warc_bytes": 40_000, "checkpoint_s": 0.1}
ROUNDED = {"duration_s"}  # the archive has milliseconds

HTML = {"Content-Type": "text/html"}


def strange(site: SmallSite) -> None:
    """Pages of every kind that a row or a link can be of."""
    links = (
        b"<title>one</title><a href='/p1'>1</a><a href='http://127.0.0.1:1/dead'>d</a><a rel=nofollow href='/no'>n</a>"
    )
    site.answers |= {
        "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /p111\nDisallow: /p20$\n"),
        "/p7": (301, {"Location": "/moved"}, b""),
        "/moved": (200, HTML, links),
        "/p9": (
            200,
            HTML,
            b"<a href='robots.txt'>r</a><a href='/moved2'>m</a><a href='/gone'>g</a><a href='/bare'>b</a>"
            b"<a href='/half'>h</a>",
        ),
        "/moved2": (200, HTML, links),  # a copy in the same folder
        "/bare": (200, {}, b"\x00\x01" * 50),
        "/half": (200, {**HTML, "Content-Length": "1000", "Connection": "close"}, links),  # it breaks off
        "/p12": (
            200,
            HTML,
            b"<a href='/p2'>2</a>" + b"long " * 30_000 + b"".join(b"<a href='/p%d'>p</a>" % n for n in range(90)),
        ),
    }


@pytest.fixture(scope="module")
def site() -> Iterator[SmallSite]:
    with small_site(pages=PAGES, page_bytes=600) as site:
        strange(site)
        yield site


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that came to its end."""
    folder = tmp_path_factory.mktemp("finished")
    run = crawl(folder / "crawl", settings(folder, store=STORE), site.url, "--scope", "web", "--requisites")
    assert run.status == 0, run.errors
    assert in_process("index", str(folder / "crawl")).status == 0
    return folder / "crawl"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that was killed in the middle: with journals, and an archive file that was growing."""
    folder = tmp_path_factory.mktemp("killed")
    site.hang["/p121"] = gate = threading.Event()
    config = settings(folder, store=STORE, politeness={"host_delay_s": 0.04})
    process = begin(folder / "crawl", config, site.url, "--scope", "web", "--requisites")
    killed_at(process, folder / "crawl", "pages", 80)
    gate.set()
    return folder / "crawl"


def rows(folder: Path, name: str, *, archived: bool = False) -> list[tuple[Any, ...]]:
    """The rows of a table that count, in order; with `archived`, those that the archive holds."""
    table = read_table(folder, name)
    state = saved_state(CrawlDirectory(folder).shard)
    table = table.slice(0, rows_recorded(state, name) if state else None)
    found = table.drop_columns(list(ROUNDED & set(table.column_names))).to_pylist()
    return [tuple(row.values()) for row in found if not archived or "warc_file" not in row or row["warc_file"]]


def mended(folder: Path) -> list[Note]:
    return list(repair(CrawlDirectory(folder), lambda place, at, end: None))


def faults(folder: Path) -> list[Fault]:
    return list(check_crawl(CrawlDirectory(folder), lambda place, at, end: None))


def strays(some: list[Any], whole: list[Any]) -> str:
    """The first row of `some` that `whole` has not, or not after the one before it."""
    rest = iter(whole)
    return next((f"row {at} of {len(some)}: {row}" for at, row in enumerate(some) if row not in rest), "")


def files(folder: Path, *patterns: str) -> list[Path]:
    found = [path for pattern in patterns for path in folder.glob(pattern) if path.stat().st_size]
    assert found
    return sorted(found)


HOWS = ["flip", "flip", "cut", "empty", "directory", "gone"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("which", ["finished", "killed"])
def test_tables_come_back_out_of_the_archive(
    which: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    whole: Path = request.getfixturevalue(which)
    folder, dice = tmp_path / "crawl", random.Random(seed)
    shutil.copytree(whole, folder)
    damaged = dice.sample(
        files(folder, "tables/pages-*.parquet", "tables/links-*.parquet", "tables/*.arrows", "warc/*.cdxj*"),
        dice.randint(1, 4),
    )
    for path in damaged:
        damage(path, dice.choice(HOWS), dice.random())
    notes = mended(folder)
    for name in ("pages", "links"):
        before, after = rows(whole, name), rows(folder, name)
        assert not strays(after, before)
        assert not strays(rows(whole, name, archived=True), after)
        lost = len(before) - len(after)
        assert bool(lost) == any(note.lost and note.place == f"tables/{name}" for note in notes), notes
    assert all(not note.lost or "visits without an answer" in note.what for note in notes)
    lengths = {}
    if state := saved_state(CrawlDirectory(folder).shard)["archive"]:
        lengths = {state["file"]: state["length"]}
    assert [fault for fault in check_archive(folder, lengths) if fault.place not in lengths] == []
    assert mended(folder) == []


def test_files_of_links_side_by_side_come_back(tmp_path: Path, site: SmallSite) -> None:
    """What stands behind several that are lost is not lost, and is not written again."""
    whole, runs = tmp_path / "whole", 5
    for run in range(1, runs + 1):  # each ends a file
        assert crawl(whole, settings(tmp_path, store=STORE), site.url, "--pages", str(12 * run)).status == 0
    there = files(whole, "tables/links-*.parquet")
    assert len(there) >= runs
    for first, end in combinations(range(len(there) + 1), 2):
        folder = tmp_path / f"without-{first}-{end}"
        shutil.copytree(whole, folder)
        for path in there[first:end]:
            damage(folder / "tables" / path.name, "cut", 0.5)
        mended(folder)
        assert rows(folder, "links") == rows(whole, "links")


def of_one_page(record: Record, copied: Container[str]) -> bool:
    """Whether it is of a page to which no copy refers: else it would cost the copy its text too."""
    return record.get("warc-type") in ("response", "revisit") and record.get("warc-target-uri") not in copied


def test_rows_younger_than_the_checkpoint_it_goes_back_to_go_with_their_records(killed: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(killed, tmp_path / killed.name)
    damage(max(folder.glob("state/shard-0000/manifest-*.json")), "flip", 0.5)
    assert not [note for note in mended(folder) if note.lost]
    assert faults(folder) == []
    assert len(rows(folder, "pages")) == read_table(folder, "pages").num_rows


@pytest.mark.parametrize("which", ["finished", "killed"])
def test_a_crawl_goes_on_after_a_folder_stood_in_place_of_a_file(
    which: str, request: pytest.FixtureRequest, tmp_path: Path, site: SmallSite
) -> None:
    whole: Path = request.getfixturevalue(which)
    shard = CrawlDirectory(whole).shard
    newest, before = (set(manifests.load(shard, number).files) for number in manifests.numbers(shard)[:2])
    names = [f"state/shard-0000/{name}" for name in sorted(newest - before)[::3]]
    for number, name in enumerate([*names, *(f"warc/{path.name}" for path in whole.glob("warc/*.cdxj.open"))]):
        folder = shutil.copytree(whole, tmp_path / str(number) / "crawl")
        damage(folder / name, "directory", 0)
        assert not [note for note in mended(folder) if note.lost]
        run = crawl_here(folder, settings(folder.parent, store=STORE), site.url, "--scope", "web", "--requisites")
        assert run.status == 0, (name, run.errors)
        assert not faults(folder)
        assert set(archived(folder)) == set(archived(request.getfixturevalue("finished")))


def test_a_damaged_record_costs_its_page_alone(finished: Path, tmp_path: Path) -> None:
    """In the middle of one file a byte is flipped, another ends too soon; with the tables gone, all else comes back."""
    shutil.copytree(finished, tmp_path / "crawl")
    folder = tmp_path / "crawl"
    flipped, torn = files(folder, "warc/*.warc.gz")[:2]
    there = [one for path in files(folder, "warc/*.warc.gz") for one in read_records(path)]
    copied = {one.get("warc-refers-to-target-uri") for one in there}
    records = [one for one in read_records(flipped) if of_one_page(one, copied)]
    hit = records[len(records) // 2]
    data = bytearray(flipped.read_bytes())
    data[hit.offset + hit.length // 2] ^= 1
    flipped.write_bytes(data)
    *_, last = (one for one in read_records(torn) if of_one_page(one, copied))
    torn.write_bytes(torn.read_bytes()[: last.offset + last.length // 2])
    shutil.rmtree(folder / "tables")
    notes = mended(folder)
    gone = {(f"warc/{flipped.name}", hit.offset), (f"warc/{torn.name}", last.offset)}
    whole = rows(finished, "pages", archived=True)
    assert rows(folder, "pages") == [row for row in whole if (row[-3], row[-2]) not in gone]
    told = {note.place: note.what for note in notes if note.lost}
    assert {f"{file}:{offset}" for file, offset in gone} <= set(told)
    assert hit.get("warc-target-uri") in told[f"warc/{flipped.name}:{hit.offset}"]
    keys = {row[0] for row in rows(folder, "pages")}
    assert rows(folder, "links") == [row for row in rows(finished, "links") if row[0] in keys]


DAMAGED = [
    "tables/pages-*.parquet", "tables/links-*.parquet", "tables/hosts-*.parquet", "tables/domains-*.parquet",
    "tables/near-*.parquet", "tables/pagerank.parquet", "tables/domainrank.parquet", "tables/*.arrows",
    "warc/*.warc.gz", "warc/*.cdxj*", "state/shard-0000/manifest-*.json", "state/shard-0000/*.seg",
    "state/hosts.sqlite", "tables/*.xxh3",
]  # fmt: skip


@pytest.mark.parametrize(("which", "seed"), [("finished", 1), ("killed", 2)])
def test_no_command_fails(
    which: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path, site: SmallSite
) -> None:
    """Every command says what is wrong in a line, and works again once the crawl is mended; also going on with it."""
    folder, dice = tmp_path / "crawl", random.Random(seed)
    shutil.copytree(request.getfixturevalue(which), folder)
    patterns = [pattern for pattern in DAMAGED if list(folder.glob(pattern))]
    damaged = [dice.choice(files(folder, pattern)) for pattern in dice.sample(patterns, 3)]
    for path in damaged:
        damage(path, dice.choice(HOWS), dice.random())
    asked = [
        ["why", str(folder), site.url], ["why", str(folder), f"{site.url}never"],
        ["export", str(folder), "--to", "jsonl"],
        ["report", str(folder)], ["index", str(folder)], ["status", str(folder)], ["check", str(folder)],
    ]  # fmt: skip
    for arguments in asked:
        said = in_process(*arguments)
        assert said.status in (0, 1, 3), (damaged, said)
        if said.status == 3:
            (line,) = said.errors.splitlines()
            names = [path.name.removesuffix(".xxh3") for path in damaged]
            names += ["manifest-"] if any(path.suffix == ".seg" for path in damaged) else []  # the one that names it
            named = any(name in line for name in names)
            assert f"fyke check --repair {folder}" in line and named, (damaged, line)
    done = in_process("check", str(folder), "--repair")
    assert done.status in (0, 1), (damaged, done)
    shutil.rmtree(folder / "export", ignore_errors=True)  # one that could be made is not made again
    for arguments in asked[:-1]:
        said = in_process(*arguments)
        assert said.status in (0, 1) and "--repair" not in said.errors, (damaged, done, arguments, said)
    if "no checkpoint is whole" not in done.out:
        run = crawl(folder, settings(tmp_path, store=STORE), site.url, "--scope", "web", "--requisites")
        assert run.status == 0, (damaged, done.out, run)
        if not done.status:
            urls = {row[1] for row in rows(folder, "pages", archived=True)}
            assert urls >= {row[1] for row in rows(request.getfixturevalue("finished"), "pages", archived=True)}
            again = in_process("check", str(folder))
            assert again.status == 0, (damaged, done.out, again)


def test_a_server_says_in_a_line_what_is_damaged(finished: Path, tmp_path: Path, site: SmallSite) -> None:
    """Whatever of a crawl is damaged while it is served, an answer is what there is or a line with a 5xx.

    What the server does not catch is raised here; the last damage is met by a server in a process of its own, in whose
    log no stack may be.
    """
    asked = [
        *(f"api/{what}?url={site.url}p1" for what in ("page", "inlinks", "similar")),
        "api/search?q=one", "api/status", "api/hosts", "api/domains", "metrics", f"page?url={site.url}p1",
        f"copy?url={site.url}p1",
        "crawl", "crawl/crawl", "crawl/crawl/hosts", "crawl/crawl/host/127.0.0.1",
    ]  # fmt: skip
    refused = Counter[str]()
    for number, pattern in enumerate(DAMAGED):
        folder = tmp_path / str(number) / "crawl"
        shutil.copytree(finished, folder)
        for path in folder.glob(pattern):
            damage(path, HOWS[number % len(HOWS)], 0.4)
        with client(folder) as ask:
            for path in asked:
                answer = ask.get(f"/{path}", headers={"accept": "application/json"})
                if answer.status_code >= 500:
                    (line,) = answer.json()["error"].splitlines()
                    assert line and answer.status_code == 503, (pattern, path)
                    refused[pattern] += 1
    assert refused["tables/pages-*.parquet"]
    folder = tmp_path / "0" / "crawl"
    with served(folder) as base:  # whose log is read when it ends
        for path in asked:
            with suppress(HTTPError), urlopen(f"{base}{path}", timeout=15) as answer:
                answer.read()


class Killed(BaseException):
    """As SIGKILL: nothing is done after it."""


class Steps:
    """Counts the steps that a disk keeps, and ends the process before one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.end = 0, 10**9
        for name in ("replace", "rename", "link", "unlink", "fsync"):
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))
        monkeypatch.setattr(io, "open", self._opened(io.open))

    def _count(self) -> None:
        if self.count >= self.end:
            raise Killed
        self.count += 1

    def _counted(self, true: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            self._count()
            return true(*arguments, **options)

        return step

    def _opened(self, true: Callable[..., Any]) -> Callable[..., Any]:
        """A file that is written is there, and empty, before anything is in it."""

        def step(path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if "w" in mode:
                true(path, mode, *arguments, **options).close()
                self._count()
            return true(path, mode, *arguments, **options)

        return step

    def run(self, folder: Path, end: int = 10**9) -> list[Note]:
        """Mend the crawl in `folder`, killed before the step `end` if there is one."""
        self.count, self.end = 0, end
        notes = []
        with suppress(Killed):
            notes = mended(folder)
        self.end = 10**9
        return notes


def without_record(folder: Path) -> list[Path]:
    """Files of the pages table with rows that no archive gives back."""
    found = files(folder, "tables/pages-*.parquet")
    return [path for path in found if pq.read_table(path, columns=["warc_file"]).column(0).null_count]


@pytest.mark.parametrize("seed", range(5))
def test_a_repair_that_is_killed_is_begun_again(
    seed: int, killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before any step that the disk keeps, and begun again, it comes to what it comes to undisturbed."""

    def damaged(folder: Path) -> Path:
        shutil.copytree(killed, folder)
        dice = random.Random(seed)
        if not seed:  # rows are lost, and the checkpoint counts them still
            damage(without_record(folder)[0], "empty", 0)
            return folder
        for path in dice.sample(files(folder, "tables/*", "warc/*", "state/shard-0000/manifest-*.json"), 4):
            damage(path, dice.choice(HOWS), dice.random())
        return folder

    steps = Steps(monkeypatch)
    calm = damaged(tmp_path / "calm")
    steps.run(calm)
    total = steps.count
    assert seed or len(rows(calm, "pages")) < len(rows(killed, "pages"))
    ends = range(0, total, 3) if not seed else random.Random(seed).sample(range(total), 4)
    for end in ends:
        folder = damaged(tmp_path / f"killed-{end}")
        steps.run(folder, end)
        steps.run(folder)
        for name in ("pages", "links"):
            assert rows(folder, name) == rows(calm, name), (end, total, name)
            counts = [rows_recorded(saved_state(CrawlDirectory(one).shard), name) for one in (folder, calm)]
            assert counts[0] == counts[1], (end, total, name)  # else a crawl that goes on counts rows that are lost
        shutil.rmtree(folder)


def test_a_repair_that_is_killed_as_it_goes_back_loses_no_row(
    tmp_path: Path, site: SmallSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the checkpoint counts a journal that became a file since, that file has the only rows of what no server
    answered: killed before any step, and begun again, the repair keeps them, and leaves what it leaves undisturbed."""
    whole = tmp_path / "whole"
    store = {**STORE, "table_rows": 1000, "warc_bytes": 80_000, "checkpoint_s": 2.0}
    site.hang["/p70"] = gate = threading.Event()
    with begin(whole, settings(tmp_path, store=store), site.url, "--pages", "100") as process:
        wait_until(lambda: whole.is_dir() and rows_recorded(saved_state(CrawlDirectory(whole).shard), "pages") > 50)
        gate.set()
    assert process.returncode == 0
    damage(max(whole.glob("state/shard-0000/manifest-*.json")), "cut", 0.5)
    (whole / "tables" / "hosts-00000.parquet.xxh3").unlink()

    def names(folder: Path) -> set[Path]:
        """What there is, but for how often a checkpoint was taken."""
        there = (path.relative_to(folder) for path in folder.rglob("*"))
        return {path for path in there if path.parts[0] != "damaged" and not path.name.startswith("manifest-")}

    steps = Steps(monkeypatch)
    calm = shutil.copytree(whole, tmp_path / "calm" / "whole")
    assert not [note for note in steps.run(calm) if note.lost]
    total, left = steps.count, rows(calm, "pages")
    assert read_table(whole, "pages").num_rows > len(left) > len(rows(calm, "pages", archived=True))
    for end in range(total):
        folder = shutil.copytree(whole, tmp_path / f"killed-{end}" / "whole")
        steps.run(folder, end)
        assert not [note for note in steps.run(folder) if note.lost], (end, total)
        assert rows(folder, "pages") == left and rows(folder, "links") == rows(calm, "links"), (end, total)
        assert names(folder) == names(calm), (end, total)
        if end % 4 == 0:  # which takes as long as all the rest
            assert faults(folder) == [], (end, total)
        shutil.rmtree(folder.parent)


@contextmanager
def files_up_to(size_bytes: int) -> Iterator[None]:
    """No file of this process may grow longer: as near to a full disk as one gets without one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("which", ["finished", "killed"])
def test_what_a_repair_cannot_write_is_not_taken_for_damage(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Wherever it has no room it says so in a line and nothing is lost; with room the same command mends all."""
    torn = shutil.copytree(request.getfixturevalue(which), tmp_path / "torn" / "crawl")
    damage(max(torn.glob("state/shard-0000/manifest-*.json")), "cut", 0.5)
    calm = shutil.copytree(torn, tmp_path / "calm" / "crawl")
    assert not [note for note in mended(calm) if note.lost]
    for size in (0, 1, 100, 700, 2_000, 5_000, 10_000, 30_000):
        folder = shutil.copytree(torn, tmp_path / str(size) / "crawl")
        with files_up_to(size):
            said = in_process("check", str(folder), "--repair")
        assert said.status in (0, 4) and "LOST" not in said.out, (size, said)
        assert len(said.errors.splitlines()) == (said.status == 4), (size, said)
        assert said.status == 0 or "cannot write" in said.errors, (size, said)
        assert not [note for note in mended(folder) if note.lost], (size, said)
        assert all(rows(folder, name) == rows(calm, name) for name in ("pages", "links")), size
        assert faults(folder) == [], size
        shutil.rmtree(folder.parent)


def test_a_crawl_that_runs_is_not_mended(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "crawl")
    with Checkpoint(tmp_path / "crawl" / "state" / "shard-0000"), pytest.raises(DirectoryInUse):
        mended(tmp_path / "crawl")
    said = fyke("check", "--repair", "--json", str(tmp_path / "crawl"))
    assert said.returncode == 0 and json.loads(said.stdout) == {"notes": []}


@pytest.mark.parametrize(
    ("status", "fields", "outcome", "broken_off"),
    [
        (200, "", Outcome.TOO_LARGE, Outcome.INCOMPLETE),
        (302, "Location: /x", Outcome.REDIRECTED, Outcome.REDIRECTED),
        (302, "", Outcome.TOO_LARGE, Outcome.INCOMPLETE),
        (404, "", Outcome.TOO_LARGE, Outcome.CLIENT_ERROR),
        (429, "", Outcome.THROTTLED, Outcome.THROTTLED),
        (500, "", Outcome.TOO_LARGE, Outcome.SERVER_ERROR),
        (503, "", Outcome.THROTTLED, Outcome.THROTTLED),
    ],
)
def test_whose_head_says_all_is_reread_by_it_though_its_body_is_cut(
    status: int, fields: str, outcome: Outcome, broken_off: Outcome
) -> None:
    head = f"HTTP/1.1 {status} Word\r\n{fields}\r\n\r\n".encode()
    visit = visit_to("http://a.test/")
    for truncated, expected in (("length", outcome), ("disconnect", broken_off)):
        exchange = Exchange(visit, Outcome.OK, 0.0, 0.0, status=status, head=head, truncated=truncated)
        assert _outcome(exchange) is expected


def test_what_a_younger_run_asked_is_no_damage(tmp_path: Path, site: SmallSite) -> None:
    """A run asks for other pages, and is killed before its first checkpoint: its `fyke.toml` is no fault, nor when a
    repair goes further back. A byte of it that is another is named all the same."""
    whole = tmp_path / "whole"
    assert crawl(whole, settings(tmp_path, store=STORE), site.url, "--pages", "20").status == 0
    asked = (whole / "fyke.toml").read_bytes()
    with CrawlDirectory(whole).recorded(build({"crawl": {"seeds": [site.url], "pages": 17}}, "test")):
        assert (whole / "fyke.toml").read_bytes() != asked
    assert faults(whole) == []
    damage(max(whole.glob("state/shard-0000/manifest-*.json")), "cut", 0.5)
    assert not [note for note in mended(whole) if note.lost]
    assert faults(whole) == [] and mended(whole) == []
    data, dice = (whole / "fyke.toml").read_bytes(), random.Random(1)
    for at in [*dice.sample(range(len(data)), 40), len(data) - 1]:
        (whole / "fyke.toml").write_bytes(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
        with suppress(ConfigurationError):  # it may be no settings at all any more
            assert [Path(place).name for place, _ in faults(whole)] == ["fyke.toml"], at
            assert [note.place for note in mended(whole) if note.lost] == ["fyke.toml"], at
    (whole / "fyke.toml").write_bytes(data.replace(b"pages = 17", b"pages = 18"))
    assert ["edited since" in what for _, what in faults(whole)] == [True]
