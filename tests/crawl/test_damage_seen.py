"""A byte that is another, anywhere in a crawl's directory: `fyke check` names the file, or it is said here why not."""

import asyncio
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawl.runs import command, crawl, fyke, settings, wait_until
from crawl.small_site import SmallSite, small_site
from fyke.archive import rows_recorded
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.inspect import check_crawl
from fyke.core.errors import FykeError
from fyke.crawl.agent import Agent

PAGES = 120
STORE = {"table_rows": 8, "warc_bytes": 40_000, "checkpoint_s": 0.1}
TRIES = 12  # of each kind of file

# Bytes that nobody decides anything by: by the name below the directory, and why.
NO_MATTER = {
    r"logs/fyke\.log": "for people to read",
    r"state/hosts.*\.sqlite-shm": "made anew by whoever opens the host book first",
    r"index/.*": "made of the archive, and made anew out of it: fyke index",
    r".*\.sock|.*/lock|state/supervised": "holds no bytes",
}
# What a crawl that goes on reads as it opens: there it is named at once.
READ_AT_OPENING = (
    r"state/shard-\d+/.*|state/hosts[-\d]*\.sqlite|state/rests[-\d]*|state/asked\.json|state/agents\.json|seeds\.txt"
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


def begun(folder: Path, site: SmallSite) -> tuple[Path, list[str]]:
    """Where a crawl of a list of seeds is to be, and how it is begun."""
    (folder / "list.txt").write_text("".join(f"{site.url}p{number}\n" for number in range(0, 40, 2)))
    config = settings(folder, store=STORE)
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
    config, arguments = begun(folder, site)
    site.hang["/p101"] = gate = threading.Event()
    process = subprocess.Popen(
        command(folder / "crawl", config, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    shard = CrawlDirectory(folder / "crawl").shard
    wait_until(lambda: shard.is_dir() and rows_recorded(saved_state(shard), "pages") >= 60)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    gate.set()
    (folder / "crawl" / "state" / "control.sock").unlink()
    return folder / "crawl"


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that two agents made."""
    folder = tmp_path_factory.mktemp("of-two")
    run = crawl(folder / "crawl", settings(folder, store=STORE), site.url, "--agents", "2", "--pages", "60")
    assert run.status == 0, run.errors
    return folder / "crawl"


def faults_of(folder: Path) -> str:
    """What `fyke check` says."""
    try:
        return "\n".join(f"{place} {what}" for place, what in check_crawl(CrawlDirectory(folder), lambda *_: None))
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
@pytest.mark.parametrize("which", ["finished", "killed", "of_two"])
def test_every_byte_has_a_digest(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    whole: Path = request.getfixturevalue(which)
    folder, dice = tmp_path / "crawl", random.Random(which)
    shutil.copytree(whole, folder, copy_function=shutil.copy2)
    assert faults_of(folder) == ""
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
            said = faults_of(folder)
            path.write_bytes(data)
            if not said:
                at = next(at for at in range(len(data)) if data[at] != changed[at])
                unseen.setdefault(kind, []).append(f"byte {at} of {len(data)}: {data[at]:#x} -> {changed[at]:#x}")
            assert len(said) < 20_000
    print(json.dumps(unseen, indent=1))
    assert not unseen
