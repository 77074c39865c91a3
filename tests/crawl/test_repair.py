"""A crawl's directory is damaged in every way, and mended: nothing the archive holds is lost, and no command fails."""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawl.runs import command, crawl, fyke, settings, wait_until
from crawl.small_site import SmallSite, small_site
from fyke.archive import check_archive, read_table, rows_recorded
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.warc_reading import read_records
from fyke.core.errors import DirectoryInUse
from fyke.crawl.repair import Note, repair
from fyke.disk.checkpoint import Checkpoint

PAGES = 240
STORE = {"table_rows": 8, "warc_bytes": 60_000, "checkpoint_s": 0.1}
ROUNDED = {"duration_s"}  # the archive has milliseconds

HTML = {"Content-Type": "text/html"}


def strange(site: SmallSite) -> None:
    """Pages of every kind that a row or a link can be of."""
    links = (
        b"<title>one</title><a href='/p1'>1</a><a href='http://127.0.0.1:1/dead'>d</a><a rel=nofollow href='/no'>n</a>"
    )
    site.answers |= {
        "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /p111\n"),
        "/p7": (301, {"Location": "/moved"}, b""),
        "/moved": (200, HTML, links),
        "/p9": (
            200,
            HTML,
            b"<a href='robots.txt'>r</a><a href='/moved2'>m</a><a href='/gone'>g</a><a href='/bare'>b</a>",
        ),
        "/moved2": (200, HTML, links),  # a copy in the same folder
        "/bare": (200, {}, b"\x00\x01" * 50),
        "/p12": (
            200,
            HTML,
            b"<a href='/p2'>2</a>" + b"long " * 30_000 + b"".join(b"<a href='/p%d'>p</a>" % n for n in range(90)),
        ),
    }


def damage(path: Path, how: str, share: float) -> None:
    data = path.read_bytes()
    at = int(share * len(data))
    path.unlink()
    if how == "directory":
        path.mkdir()
    elif how == "flip":
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
    elif how == "cut":
        path.write_bytes(data[:at])
    elif how == "empty":
        path.touch()


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
    return folder / "crawl"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that was killed in the middle: with journals, and an archive file that was growing."""
    folder = tmp_path_factory.mktemp("killed")
    site.hang["/p121"] = gate = threading.Event()
    arguments = command(folder / "crawl", settings(folder, store=STORE), site.url, "--scope", "web", "--requisites")
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shard = CrawlDirectory(folder / "crawl").shard
    wait_until(lambda: shard.is_dir() and rows_recorded(saved_state(shard), "pages") >= 110)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    gate.set()
    (folder / "crawl" / "state" / "control.sock").unlink()  # what cannot be copied
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


def is_part_of(some: list[Any], whole: list[Any]) -> bool:
    rest = iter(whole)
    return all(row in rest for row in some)


def files(folder: Path, *patterns: str) -> list[Path]:
    found = [path for pattern in patterns for path in folder.glob(pattern)]
    assert found
    return sorted(found)


HOWS = ["flip", "flip", "cut", "empty", "directory", "gone"]


@pytest.mark.parametrize("seed", range(12))
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
        assert is_part_of(after, before)
        assert is_part_of(rows(whole, name, archived=True), after)
        lost = len(before) - len(after)
        assert bool(lost) == any(note.lost and note.place == f"tables/{name}" for note in notes), notes
    assert all(not note.lost or "no server answered" in note.what for note in notes)
    lengths = {}
    if state := saved_state(CrawlDirectory(folder).shard)["archive"]:
        lengths = {state["file"]: state["length"]}
    assert [fault for fault in check_archive(folder, lengths) if fault.place not in lengths] == []
    assert mended(folder) == []


def test_a_damaged_record_costs_its_page_alone(finished: Path, tmp_path: Path) -> None:
    """In the middle of one file a byte is flipped, another ends too soon; with the tables gone, all else comes back."""
    shutil.copytree(finished, tmp_path / "crawl")
    folder = tmp_path / "crawl"
    flipped, torn = files(folder, "warc/*.warc.gz")[:2]
    records = [record for record in read_records(flipped) if record.get("warc-type") == "response"]
    hit = records[len(records) // 2]
    data = bytearray(flipped.read_bytes())
    data[hit.offset + hit.length // 2] ^= 1
    flipped.write_bytes(data)
    *_, last = (record for record in read_records(torn) if record.get("warc-type") == "response")
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
    "tables/pagerank.parquet", "tables/domainrank.parquet", "tables/*.arrows", "warc/*.warc.gz", "warc/*.cdxj*",
    "state/shard-0000/manifest-*.json", "state/shard-0000/*.seg", "state/hosts.sqlite", "tables/*.xxh3",
]  # fmt: skip


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("which", ["finished", "killed"])
def test_no_command_fails(
    which: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path, site: SmallSite
) -> None:
    """Every command says what is wrong in a line, and works again once the crawl is mended; also going on with it."""
    folder, dice = tmp_path / "crawl", random.Random(seed)
    shutil.copytree(request.getfixturevalue(which), folder)
    assert fyke("index", str(folder)).returncode == 0
    patterns = [pattern for pattern in DAMAGED if list(folder.glob(pattern))]
    damaged = [dice.choice(files(folder, pattern)) for pattern in dice.sample(patterns, 2)]
    for path in damaged:
        damage(path, dice.choice(HOWS), dice.random())
    (folder / "index" / "state.json").unlink()  # so that all is read again
    asked = [
        ["why", str(folder), site.url], ["why", str(folder), f"{site.url}never"],
        ["export", str(folder), "--to", "jsonl"],
        ["report", str(folder)], ["index", str(folder)], ["status", str(folder)], ["check", str(folder)],
    ]  # fmt: skip
    for arguments in asked:
        said = fyke(*arguments)
        assert "Traceback" not in said.stderr and said.returncode in (0, 1, 3), (damaged, said)
        if said.returncode == 3:
            (line,) = said.stderr.splitlines()
            assert f"fyke check --repair {folder}" in line and any(
                path.name.removesuffix(".xxh3") in line for path in damaged
            ), (
                damaged,
                line,
            )
    done = fyke("check", str(folder), "--repair")
    assert "Traceback" not in done.stderr and done.returncode in (0, 1), (damaged, done)
    shutil.rmtree(folder / "export", ignore_errors=True)  # one that could be made is not made again
    for arguments in asked[:-1]:
        said = fyke(*arguments)
        assert said.returncode in (0, 1) and "--repair" not in said.stderr, (damaged, done, arguments, said)
    if "no checkpoint is whole" not in done.stdout:
        run = crawl(folder, settings(tmp_path, store=STORE), site.url, "--scope", "web", "--requisites")
        assert run.status == 0, (damaged, done.stdout, run)
        if not done.returncode:
            urls = {row[1] for row in rows(folder, "pages", archived=True)}
            assert urls >= {row[1] for row in rows(request.getfixturevalue("finished"), "pages", archived=True)}
            again = fyke("check", str(folder))
            assert again.returncode == 0, (damaged, done.stdout, again)


class Killed(BaseException):
    """As SIGKILL: nothing is done after it."""


def test_a_repair_that_is_killed_is_begun_again(killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before each step that the disk keeps, and begun again, it comes to what it comes to undisturbed."""
    steps, left = ["replace", "rename", "link", "unlink", "fsync"], 10**9

    def counted(name: str):
        true = getattr(os, name)

        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return true(*arguments, **options)

        return step

    def damaged(folder: Path) -> Path:
        shutil.copytree(killed, folder)
        names = [
            "tables/pages-*.parquet",
            "tables/links-*.parquet",
            "tables/pages-*.arrows",
            "warc/*.cdxj",
            "warc/*.open",
        ]
        for number, pattern in enumerate(names):
            damage(files(folder, pattern)[-1], HOWS[number], 0.4)
        damage(files(folder, "state/shard-0000/manifest-*.json")[-1], "cut", 0.5)
        return folder

    calm = damaged(tmp_path / "calm")
    mended(calm)
    for name in steps:
        monkeypatch.setattr(os, name, counted(name))
    for kill_at in range(0, 400, 7):
        folder = tmp_path / f"killed-{kill_at}"
        damaged(folder)
        left = kill_at
        try:
            mended(folder)
        except Killed:
            left = 10**9
            mended(folder)

            assert rows(folder, "pages") == rows(calm, "pages") and rows(folder, "links") == rows(calm, "links")
            left = 10**9
            shutil.rmtree(folder)
        else:
            assert kill_at > 50
            return
    raise AssertionError("it never came to its end")


def test_a_crawl_that_runs_is_not_mended(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "crawl")
    with Checkpoint(tmp_path / "crawl" / "state" / "shard-0000"), pytest.raises(DirectoryInUse):
        mended(tmp_path / "crawl")
    said = fyke("check", "--repair", "--json", str(tmp_path / "crawl"))
    assert said.returncode == 0 and json.loads(said.stdout) == {"notes": []}
