"""What is no file in place of one of a crawl's: whoever reads it says so at once, in one line, and waits for nobody."""

import os
import re
import resource
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from commands import Said, in_process
from serve.kit import client

FORMS = ("pipe", "zeros", "folder", "dangling")
LATER = ("seeds.txt", "seeds.txt.xxh3", "state/supervised", "state/agents.json", "tables/mended")  # of some crawls only
COMMANDS = [
    "status @", "why @ http://127.0.0.1/", "check @", "check @ --repair", "links @ --broken", "report @",
    "search @ page", "index @", "rewrite @", "copy @ !/copy", "move @ !/moved", "block @ a.example",
    "crawl --into @ --wait 0", "export @ --to jsonl --out !/x.jsonl", "export @ --to wacz --out !/x.wacz",
]  # fmt: skip
NEEDED = {
    "warc/*.warc.gz": ("check", "export", "copy"),
    "warc/*.cdxj": ("check", "copy"),
    "warc/*.warc.gz.xxh3": ("check", "copy"),
    "tables/pages-*": ("check", "why", "links", "export", "report", "index", "rewrite", "copy"),
}
PATIENCE_S = 3.0
ROOM_BYTES = 4 << 30


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    """What reads zeros without end fails for want of memory, before the machine does."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def kinds_of_files(whole: Path) -> list[str]:
    """One file of each kind, by name below the folder."""
    found = {}
    for path in sorted(whole.rglob("*")):
        name = str(path.relative_to(whole))
        if path.is_file() and "/engine-" not in name:
            many = name.startswith(("state/shard", "index/")) and path.suffix not in (".json", "")
            found[f"{name.split('/')[0]}{path.suffix}" if many else re.sub(r"\d+", "0", name)] = name
    assert {"fyke.toml", "state/hosts.sqlite", "logs/fyke.log", "index/state.json"} < {*found.values()}
    return [*found.values(), *LATER]


def put(form: str, path: Path) -> None:
    """What is no file, as `path`."""
    path.unlink(missing_ok=True)
    if form == "pipe":
        os.mkfifo(path)
    elif form == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if form == "zeros" else path.with_name("nowhere"))


@contextmanager
def let_go(path: Path, form: str) -> Iterator[list[str]]:
    """Whoever waits for somebody to write into the pipe `path` is let go after a time, and told of in the list."""
    waited: list[str] = []
    over = threading.Event()

    def watch() -> None:
        while form == "pipe" and not over.wait(PATIENCE_S):
            with suppress(OSError):  # nobody reads
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                waited.append("it waits for ever")

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield waited
    finally:
        over.set()
        watcher.join()


def damaged_in(whole: Path, tmp_path: Path, line: str = "") -> Iterator[tuple[str, str, Path]]:
    """Copies of the crawl, each with one thing in it that is no file: its form, its name, the folder. What the command
    needs has all the forms, half of the rest one."""
    for number, name in enumerate(kinds_of_files(whole), len(line)):
        for form in FORMS if needed(name, line) else FORMS[number % 8 : number % 8 + 1]:
            there = tmp_path / "crawl"
            shutil.copytree(whole, there, symlinks=True)
            put(form, there / name)
            yield form, name, there
            for path in tmp_path.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def needed(name: str, line: str) -> bool:
    """Whether the command cannot do without the file."""
    mends = "--repair" in line
    return (
        any(Path(name).match(which) and line.partition(" ")[0] in those for which, those in NEEDED.items())
        and not mends
    )


def said_of(line: str, there: Path) -> Said:
    words = {"@": there, "!": there.parent}
    return in_process(*(next((word.replace(mark, str(path)) for mark, path in words.items() if mark in word), word)
                        for word in line.split()))  # fmt: skip


def wrong_in(said: Said) -> Iterator[str]:
    """What should not be in an answer."""
    if "Traceback" in said.errors or said.status not in range(7) or not (said.out or said.errors):
        yield "no answer"
    if said.status > 1 and not said.errors.splitlines()[-1].startswith("fyke: "):
        yield "no complaint"


@pytest.mark.parametrize("line", COMMANDS)
def test_is_named_at_once(line: str, whole: Path, tmp_path: Path) -> None:
    wrong = []
    for form, name, there in damaged_in(whole, tmp_path, line):
        with let_go(there / name, form) as waited:
            said = said_of(line, there)
        # Whoever reads a file needs no checksum of it.
        is_gone = form == "dangling" and name.endswith(".xxh3") and not line.startswith("check")
        unseen = ["not missed"] if not said.status and needed(name, line) and not is_gone else []
        wrong += [(form, name, what, said) for what in (*waited, *wrong_in(said), *unseen)]
    assert not wrong, "\n".join(map(str, wrong))


def test_served(whole: Path, tmp_path: Path) -> None:
    wrong = []
    for form, name, there in damaged_in(whole, tmp_path):
        with let_go(there / name, form) as waited, client(there) as asking:
            found = {asking.get(asked).status_code for asked in ("/", "/search?q=page", "/api/search?q=page")}
        if waited or not found <= {200, 404, 503}:
            wrong.append((form, name, waited, found))
    assert not wrong, "\n".join(map(str, wrong))
