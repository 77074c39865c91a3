"""A byte that is another, anywhere in a crawl's directory: `fyke check` names the file, or it is said here why not."""

import asyncio
import gc
import random
import re
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from crawl.runs import begin, crawl, fyke, killed_at, settings
from crawl.small_site import SmallSite, small_site
from fyke.archive.cdxj import index_path
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.inspect import archive_lengths, check_crawl
from fyke.archive.warc import finish
from fyke.core.errors import FykeError
from fyke.crawl.agent import Agent
from fyke.disk import manifest as manifests
from fyke.disk.checkpoint import newest
from fyke.search.damage import index_faults

PAGES = 60
STORE = {"table_rows": 8, "warc_bytes": 40_000, "checkpoint_s": 0.1}
TRIES = 5  # of each kind of file

# Bytes that nobody decides anything by: by the name below the directory, and why.
NO_MATTER = {
    r"logs/fyke\.log": "for people to read",
    r"state/hosts.*\.sqlite-shm": "made anew by whoever opens the host book first",
    r"index/(lots|near|lines|merge|ranks).*": "made of the archive, and made anew out of it: fyke index",
    r"index/engine-0/(meta|\.managed)\.json": "not all of it matters: tests/search/test_damage.py",
    r".*\.sock|.*/lock|state/supervised": "holds no bytes",
}
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)  # the latter: what SQLite says of a layout it cannot read
# What a crawl that goes on reads as it opens: there it is named at once.
READ_AT_OPENING = (
    r"state/shard-\d+/.*|state/hosts[-\d]*\.sqlite(-wal)?|state/rests[-\d]*|state/(asked|agents)\.json|seeds\.txt"
)


def kind_of(name: str) -> str:
    """What files are alike in."""
    return re.sub(r"\d+", "N", name)


def flipped(data: bytes, dice: random.Random) -> bytes:
    """One byte another: a bit of it, or all."""
    at = dice.randrange(len(data))
    return (
        data[:at] + bytes([data[at] ^ dice.choice([1 << dice.randrange(8), dice.randrange(1, 256)])]) + data[at + 1 :]
    )


@pytest.fixture(scope="module")
def site() -> Iterator[SmallSite]:
    with small_site(pages=PAGES, page_bytes=600) as site:
        yield site


def begun(folder: Path, site: SmallSite, **sections: dict[str, float]) -> tuple[Path, list[str]]:
    """Where a crawl of a list of seeds is to be, and how it is begun."""
    (folder / "list.txt").write_text("".join(f"{site.url}p{number}\n" for number in range(0, 40, 2)))
    config = settings(folder, store=STORE, **sections)
    config.write_text(config.read_text() + '\n[[extract]]\ntable = "titles"\nfields.title = "title"\n')
    return config, [site.url, "--scope", "web", "--requisites", "--seeds", str(folder / "list.txt")]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that was stopped, and has an index."""
    folder = tmp_path_factory.mktemp("finished")
    config, arguments = begun(folder, site)
    run = crawl(folder / "crawl", config, *arguments)
    assert run.status == 0, run.errors
    assert fyke("index", str(folder / "crawl")).returncode == 0
    assert fyke("block", str(folder / "crawl"), "blocked.example").returncode == 0
    return folder / "crawl"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that was killed in the middle."""
    folder = tmp_path_factory.mktemp("killed")
    config, arguments = begun(folder, site, politeness={"host_delay_s": 0.04})
    site.hang["/p51"] = gate = threading.Event()
    process = begin(folder / "crawl", config, *arguments)
    killed_at(process, folder / "crawl", "pages", 30)
    gate.set()
    return folder / "crawl"


@pytest.fixture(scope="module")
def closed_since(killed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crawl that was killed, if it had closed its archive file after the last checkpoint."""
    folder = shutil.copytree(killed, tmp_path_factory.mktemp("closed-since") / killed.name)
    warc = folder / saved_state(CrawlDirectory(folder).shard)["archive"]["file"]
    finish(warc, index_path(warc, closed=False))
    return folder


@pytest.fixture(scope="module")
def gone_on(killed: Path, tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """The crawl that was killed, after it went on."""
    folder = shutil.copytree(killed, tmp_path_factory.mktemp("gone-on") / killed.name)
    assert crawl(folder, folder / "fyke.toml").status == 0
    return folder


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that two agents made."""
    folder = tmp_path_factory.mktemp("of-two")
    run = crawl(folder / "crawl", settings(folder, store=STORE), site.url, "--agents", "2", "--pages", "40")
    assert run.status == 0, run.errors
    return folder / "crawl"


def rows_of(folder: Path) -> list[str]:
    """All that the host books hold: there are bytes in them that belong to no row."""
    books = sorted((folder / "state").glob("hosts*.sqlite"))
    with TemporaryDirectory() as copied:
        shutil.copytree(folder / "state", Path(copied) / "state", ignore=shutil.ignore_patterns("shard-*"))
        rows = []
        for book in books:
            with closing(sqlite3.connect(Path(copied) / "state" / book.name)) as connection, suppress(*UNREADABLE):
                rows += [*connection.iterdump()]
        return rows


def counts(folder: Path, path: Path, at: int) -> bool:
    """Whether the byte `at` of `path` counts for the last checkpoint: a crawl that is killed leaves more."""
    if path.parent.name.startswith("shard-") and path.suffix != ".json":
        kept = [manifests.load(path.parent, number) for number in manifests.numbers(path.parent)]
        return any(manifest is not None and at < manifest.files.get(path.name, 0) for manifest in kept)
    state = saved_state(CrawlDirectory(folder).shard)
    if path.suffix == ".arrows":
        table, serial = path.stem.rsplit("-", 1)
        of = state[table if table in state else f"extract {table}"]
        lengths = [length for length, _ in of["segments"]]
        number = int(serial) - of["sealed"]
        return 0 <= number < len(lengths) and at < lengths[number]
    if path.parent.name == "warc" and (archive := state["archive"]):
        lengths = archive_lengths(CrawlDirectory(folder), state)
        own = archive["file"].rpartition("-")[0]
        indexes = {archive["serial"]: archive["index_length"]}
        indexes |= {serial: length for serial, _, length in archive["closing"]}
        lengths |= {f"{own}-{serial:05d}.cdxj.open": length for serial, length in indexes.items()}
        name = f"warc/{path.name}"
        made_anew = f"{name.partition('.')[0]}.warc.gz" in lengths and path.suffix not in (".gz", ".open")
        return not made_anew and at < lengths.get(name, path.stat().st_size)
    return True


def faults_of(folder: Path) -> str:
    """What `fyke check` says."""
    try:
        faults = [*check_crawl(CrawlDirectory(folder), lambda *_: None), *index_faults(folder)]
        return "\n".join(f"{place} {what}" for place, what in faults)
    except FykeError as error:
        return str(error)


def opened(folder: Path) -> str:
    """What is said as the crawl goes on; empty when it does."""

    async def go_on() -> None:
        directory = CrawlDirectory(folder)
        async with Agent(directory, directory.config()):
            pass

    try:
        asyncio.run(go_on())
    except FykeError as error:
        return str(error)
    return ""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("which", ["finished", "killed", "closed_since", "of_two"])
def test_every_byte_has_a_digest(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    whole: Path = request.getfixturevalue(which)
    folder, dice = tmp_path / "crawl", random.Random(which)
    shutil.copytree(whole, folder, copy_function=shutil.copy2)
    assert faults_of(folder) == ""
    rows = rows_of(whole)
    unseen: dict[str, list[str]] = {}
    kinds: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size:
            kinds.setdefault(kind_of(str(path.relative_to(folder))), []).append(path)
    for kind, paths in kinds.items():
        if any(re.fullmatch(pattern, kind.replace("N", "0")) for pattern in NO_MATTER):
            continue
        for _ in range(TRIES):
            path = dice.choice(paths)
            data = path.read_bytes()
            changed = flipped(data, dice)
            path.write_bytes(changed)
            said, at = faults_of(folder), next(at for at in range(len(data)) if data[at] != changed[at])
            matters = rows_of(folder) != rows if path.name.startswith("hosts") else counts(folder, path, at)
            path.write_bytes(data)
            if matters and not said:
                unseen.setdefault(kind, []).append(f"byte {at} of {len(data)}: {data[at]:#x} -> {changed[at]:#x}")
            assert len(said) < 20_000
    assert not unseen


@pytest.mark.parametrize("at", ["saved_state", "file_faults", "check_archive", "check._check_tables"])
def test_a_crawl_that_goes_on_meanwhile_has_no_faults(
    at: str, killed: Path, gone_on: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints, journals and archive files are others at the end of a check than as it began."""
    folder = shutil.copytree(killed, tmp_path / killed.name)
    later = shutil.copytree(gone_on, tmp_path / "later")
    where, name = ("fyke.archive.check", at[6:]) if at.startswith("check.") else ("fyke.archive.inspect", at)
    true = getattr(sys.modules[where], name)

    def goes_on(*arguments: Any, **named: Any) -> Any:
        found = true(*arguments, **named)
        if later.exists():
            shutil.rmtree(folder)
            later.rename(folder)
        return found

    monkeypatch.setattr(f"{where}.{name}", goes_on)
    assert faults_of(folder) == ""
    assert not later.exists()


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # who cannot open leaves files to the end
def test_a_crawl_that_goes_on_says_what_is_damaged(killed: Path, tmp_path: Path) -> None:
    """It is said in a line that names the file, or nobody decides anything by those bytes."""
    folder, dice, rows = tmp_path / "crawl", random.Random(5), rows_of(killed)
    names = sorted(str(path.relative_to(killed)) for path in killed.rglob("*") if path.is_file())
    kinds: dict[str, list[str]] = {}
    for name in names:
        if re.fullmatch(READ_AT_OPENING, name) and (killed / name).stat().st_size:
            kinds.setdefault(kind_of(name), []).append(name)
    newest_names = {Path(name).name for name in names if "shard-" not in name}
    newest_names |= {"manifest", *newest(CrawlDirectory(killed).shard).files}
    assert {"state/rests", "state/hosts.sqlite-wal", "seeds.txt"} <= set(kinds)
    for chosen in (dice.choice(kinds[kind]) for kind in [*kinds, *kinds]):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(killed, folder)
        (folder / chosen).write_bytes(flipped((folder / chosen).read_bytes(), dice))
        matters = rows_of(folder) != rows if "hosts" in chosen else Path(chosen).name in newest_names
        seen = faults_of(folder)
        said = opened(folder)
        assert "\n" not in said
        if seen and matters:
            # The manifest before it serves; and where no journal is believed, all rest.
            older = "manifest" in chosen or chosen == "state/rests"
            assert said or older, (chosen, seen)
            name = "hosts" if "hosts" in chosen else Path(chosen).name
            assert name in said or older or "manifest" in said, (chosen, said)
    gc.collect()  # what was left to the end ends here, not in a test that comes later


@pytest.mark.parametrize("written", [b"zzz\n", b"[crawl]\npages = x0\n", b"\xff\xfe", b""])
def test_settings_that_cannot_be_read_are_a_fault_beside_others(killed: Path, tmp_path: Path, written: bytes) -> None:
    folder = shutil.copytree(killed, tmp_path / killed.name)
    table = next(folder.glob("tables/*.parquet"))
    for path, data in ((folder / "fyke.toml", written), (table, table.read_bytes()[:-9])):
        path.write_bytes(data)
    said = fyke("check", str(folder))
    assert said.returncode == 1 and not said.stderr
    assert said.stdout.count("fyke.toml: ") == 1 and f"tables/{table.name}" in said.stdout
