"""Whatever a person does wrong: one line that says what, to what and what to do; the right exit status; no harm."""

import asyncio
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import termios
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest

from commands import in_process, told
from crawl.runs import FAST, archived, begin, command, crawl, fyke, settings, wait_until
from crawl.small_site import SmallSite, small_site
from disks import grow, small_disk
from fyke.archive.directory import CrawlDirectory
from fyke.archive.division import division
from fyke.archive.statistics import CrawlStatistics
from fyke.core.config import build
from fyke.core.errors import ConfigurationError, DirectoryInUse
from fyke.core.urls import robots_url, split
from fyke.crawl.agent import Agent
from fyke.crawl.passes import Pass
from fyke.crawl.run import ROOM_BYTES
from fyke.disk.checkpoint import Checkpoint, newest
from fyke.explain import why
from fyke.fetcher.shared_book import ReadBooks
from fyke.quantities import size
from fyke.serve.hosts import HostVisits, known_hosts, rules_of
from loaded import COMMAND
from web_server import Answer, web_server

USAGE, DIRECTORY, FULL, NETWORK, INTERRUPTED = 2, 3, 4, 5, 130
SEED = "http://127.0.0.1:9/"


@pytest.fixture(scope="module")
def site() -> Iterator[SmallSite]:
    with small_site() as running:
        yield running


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """Settings without delays, that give up soon."""
    return settings(tmp_path, politeness={**FAST, "failure_delay_s": 0.1, "max_sleep_s": 0.2})


def said_once(errors: str, *words: str) -> None:
    """One line on stderr that names all of `words`, beside the lines that tell how it goes."""
    lines = [line for line in errors.splitlines() if "pages/s" not in line]
    assert len(lines) == 1 and lines[0].startswith("fyke: "), errors
    assert all(word in lines[0] for word in words), errors


def whole(into: Path, site: SmallSite) -> None:
    """The crawl has the pages of an undisturbed one, each once, and all files are sound."""
    assert Counter(archived(into)) == Counter(site.all_urls())
    done = fyke("check", str(into))
    assert done.returncode == 0, done.stdout


def mended(into: Path, quick: Path, site: SmallSite) -> None:
    """The same command again goes on to the end."""
    run = crawl(into, quick, site.url)
    assert run.status == 0, run.errors
    whole(into, site)


# -- wrong usage: nothing is begun -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--foo"], ["--foo", "fyke --help"]),
        (["nonsense"], ["nonsense", "fyke --help"]),
        (["crawl", SEED, "--into", "@", "--foo"], ["--foo", "fyke crawl --help"]),
        (["crawl", SEED, "--into"], ["--into"]),
        (["crawl", SEED], ["--into DIR"]),
        (["crawl", SEED, "--into", ""], ["--into': it is empty", ". is the current"]),
        (["simulate", "--pages", "10", "--into", ""], ["--into': it is empty", ". is the current"]),
        (["crawl", "htp:/x"], ["'htp:/x'", "not a URL"]),
        (["crawl", "--into", "@"], ["nothing to crawl"]),
        (["crawl", SEED, "--into", "@", "--pages", "x"], ["--pages"]),
        (["crawl", SEED, "--into", "@", "--pages", "-1"], ["--pages"]),
        (["crawl", SEED, "--into", "@", "--pages", "1.5"], ["--pages 1.5", "whole"]),
        (["crawl", SEED, "--into", "@", "--scope", "moon"], ["--scope", "'moon'", "prefix"]),
        (["crawl", SEED, "--into", "@", "--for", "soon"], ["--for soon", "10m"]),
        (["crawl", SEED, "--into", "@", "--allow", "("], ["allow", "'('"]),
        (["crawl", SEED, "--into", "@", "--deny", "(?=x)"], ["deny", "'(?=x)'"]),
        (["crawl", SEED, "--into", "@", "--user-agent", "My Bot/1"], ["user_agent", "only letters, - and _"]),
        (["crawl", SEED, "--into", "@", "--user-agent", "bot2"], ["'bot2'", "no digit"]),
        (["crawl", SEED, "--into", "@", "--contact", "me)\r\nX-Evil: 1"], ["contact"]),
        (["crawl", SEED, "--into", "@", "--dns", "nowhere"], ["nowhere", "address:port"]),
        (["crawl", SEED, "--into", "@", "--dns", "127.0.0.1:99999"], ["127.0.0.1:99999"]),
        (["crawl", "http://", "--into", "@"], ["'http://'", "its host"]),
        (["crawl", "not a url", "--into", "@"], ["'not a url'"]),
        (["crawl", "http://[::1", "--into", "@"], ["'http://[::1'"]),
        (["crawl", SEED, "mailto:me@here", "--into", "@"], ["'mailto:me@here'", "gopher://"]),
        (
            ["crawl", "http://me:secret@127.0.0.1:9/", "--into", "@"],
            ["http://127.0.0.1:9/ ", "password", "leave them out"],
        ),
        (["crawl", SEED, "ftp://me@127.0.0.1/", "--into", "@"], ["ftp://127.0.0.1/ ", "user name"]),
        (["crawl", "file:///etc/passwd", "--into", "@"], ["file:///etc/passwd"]),
        (["crawl", SEED, "--into", "@", "--config", "none.toml"], ["none.toml", "No such file"]),
        (["crawl", SEED, "--into", "@", "--config", "/dev/zero"], ["/dev/zero is not TOML", "more than 64 MB"]),
        (["crawl", SEED, "--into", "@", "--config", ""], ["--config': it is empty"]),
        (["crawl", "--seeds=", "--into", "@"], ["--seeds': it is empty"]),
        (["crawl", SEED, "--into", "@", "--config", "/"], ["cannot read /"]),
        (["copy", "@", ""], ["TARGET': it is empty", ". is the current"]),
        (["move", "@", ""], ["TARGET': it is empty"]),
        (["extract", "@", "--out="], ["--out': it is empty"]),
        (["check", ""], ["DIR': it is empty"]),
        (["why", "@"], ["URL", "fyke why --help"]),
        (["web", "--port", "70000"], ["--port"]),
        (["web", "--pages", "50", "--hosts", "51"], ["--pages 50", "51 hosts"]),
        (["web", "--pages", "9" * 30], ["--pages"]),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    words: list[str],
    tmp_path: Path,
) -> None:
    into = tmp_path / "crawl"
    told(USAGE, [str(into) if word == "@" else word for word in arguments], words)
    assert not into.exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("http://me:", "@[::1"), ("me:", "@127.0.0.1:9"), ("https://:", "@a.example:99999/"), ("gpoher://me:", "@here"),
        ("http://me:@", "@[a b/"), ("\\\\me:", "@here"),
    ],
)  # fmt: skip
def test_a_password_of_what_is_no_url_is_not_shown(before: str, after: str, tmp_path: Path) -> None:
    for password in ("secret", "secret" * 40):
        told(USAGE, ["crawl", f"{before}{password}{after}", "--into", str(tmp_path / "crawl")], ["URL"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[crawl]\npaegs = 3", ["crawl.paegs", "known here", "pages"]),
        ("[crawls]\npages = 3", ["crawls", "known here", "politeness"]),
        ("crawl = 3", ["crawl = 3"]),
        ("[[crawl]]\npages = 3", ["crawl"]),
        ("[crawl]\npages = 'many'", ["crawl.pages", "'many'"]),
        ("[politeness]\nhost_delay_s = -1", ["politeness.host_delay_s", "-1"]),
        ("[politeness]\nhost_delay_s = inf", ["politeness.host_delay_s", "finite"]),
        ("[fetch]\ntimeout_s = 1e300", ["fetch.timeout_s", "1e+300"]),
        ("[crawl]\nscope = 'moon'", ["crawl.scope", "'moon'"]),
        ("[crawl\npages = 3", ["not TOML", "line 1"]),
        ("[crawl]\nallow = ['(']", ["'('"]),
        ("[crawl]\nseeds = ['https://:secret@127.0.0.1/']", ["https://127.0.0.1/ ", "password", "fyke.toml"]),
        ("[fetch]\nca_file = '/nowhere.pem'", ["/nowhere.pem"]),
        ("[plugins]\nfilters = ['no.such:Thing']", ["no.such"]),
        ("[frontier]\norder = 'os:getcwd'", ["os:getcwd", "CrawlOrder"]),
        ("[frontier]\nbudget = 'generous'", ["no budget 'generous'", "module:Name"]),
    ],
)
def test_wrong_settings(text: str, words: list[str], tmp_path: Path) -> None:
    into, config = tmp_path / "crawl", tmp_path / "mine.toml"
    config.write_text(text)
    urls = [] if "seeds" in text else [SEED]
    told(USAGE, ["crawl", *urls, "--into", str(into), "--config", str(config)], words)
    assert not into.exists()


@pytest.mark.parametrize(
    "text",
    [
        "[crawl]\nallow = ['@']",
        "[crawl]\nscope = '@'",
        "[crawl]\n@ = 3",
        "[[extract]]\ntable = 't'\nmatch = '@'\nfields = {a = 'b'}",
    ],
    ids=["expression", "word", "name", "match"],
)
def test_a_long_mistake_is_said_in_a_short_line(text: str, tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(text.replace("@", "(" * 100_000 if "'@'" in text else "a" * 100_000))
    told(USAGE, ["crawl", SEED, "--into", str(tmp_path / "crawl"), "--config", str(config)], ["…"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["crawl", SEED, "--into", "@"],
        ["crawl", SEED, "--into", "there", "--config", "@"],
        ["crawl", "http://127.0.0.1/@", "--into", "there"],
        ["status", "@"],
        ["why", "@", SEED],
        ["check", "@"],
        ["index", "@"],
        ["search", "@", "words"],
        ["search", "there", "words", "--also", "@"],
        ["report", "@"],
        ["export", "@", "--to", "csv"],
        ["serve", "@"],
        ["simulate", "--into", "@"],
        ["plan", "--plot", "@.png"],
        ["web", "--ledger", "@"],
    ],
    ids=" ".join,
)
def test_a_name_that_is_not_utf8(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / os.fsdecode(b"a\xff\xfe")
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    told(USAGE, [word.replace("@", str(folder)) for word in arguments], [r"a\xff\xfe", "not UTF-8"])
    assert [*tmp_path.iterdir()] == [folder] and not [*folder.iterdir()]


def test_help_stays_help() -> None:
    said = in_process("crawl", "--help")
    assert said.status == 0 and "--requisites" in said.out and "130" in said.out


# -- the directory ---------------------------------------------------------------------------------


def test_a_directory_whose_name_looks_like_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with small_site() as site:
        assert in_process("crawl", site.url, "--into", "news-18:30", "--delay", "0").status == 0
    assert in_process("export", "news-18:30", "--to", "parquet", "--out", "out:there").status == 0
    told(DIRECTORY, ["crawl", SEED, "--into", "s3://bucket/there"], ["s3:/bucket/there", "fyke copy"])
    told(DIRECTORY, ["move", "news-18:30", "s3://bucket/there"], ["s3:/bucket/there", "fyke copy"])


@pytest.mark.parametrize("place", ["/proc/fyke", "/sys/fyke"])
def test_a_directory_that_cannot_be_written(place: str) -> None:
    told(DIRECTORY, ["crawl", SEED, "--into", place], [place, "--into"])


def test_a_folder_with_other_things(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    told(DIRECTORY, ["crawl", SEED, "--into", str(tmp_path)], ["not empty", "--into"])
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("arguments", [[], [SEED]])
def test_emptied_settings_are_told(arguments: list[str], site: SmallSite, quick: Path, tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    assert crawl(into, quick, site.url, "--pages", "1").status == 0
    asked = (into / "fyke.toml").read_bytes()
    (into / "fyke.toml").write_bytes(b"")
    told(DIRECTORY, ["crawl", *arguments, "--into", str(into)], ["fyke.toml is gone or empty", "from a copy"])
    (into / "fyke.toml").write_bytes(asked)
    mended(into, quick, site)


@pytest.mark.parametrize("name", ["report.md", "state/notes", "fyke.toml"])
def test_a_simulation_overwrites_nothing(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    told(DIRECTORY, ["simulate", "--into", str(tmp_path), "--pages", "10"], [str(tmp_path), "holds no simulation"])
    assert path.read_text() == "mine" and [one for one in tmp_path.rglob("*") if one.is_file()] == [path]


@pytest.mark.parametrize("arguments", [["status", "@"], ["check", "@"], ["why", "@", SEED]])
def test_what_is_no_crawl(arguments: list[str], tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        given = [str(place) if word == "@" else word for word in arguments]
        told(DIRECTORY, given, [str(place), "holds no crawl"])


NAMED = {
    "seeds": ["--seeds", "{pipe}"],
    "settings": ["--config", "{pipe}"],
    "rules": [SEED, "--rewrite", "{pipe}"],
    **{key: [SEED, "--config", "{config}"] for key in ("cookies", "certificate", "password")},
}


@pytest.mark.parametrize("what", NAMED)
def test_nobody_waits_for_a_named_pipe(what: str, tmp_path: Path) -> None:
    """Nobody knows whether anybody writes into it; one that a shell made is read to its end."""
    pipe, config = tmp_path / "pipe", tmp_path / "config.toml"
    os.mkfifo(pipe)
    value = f'user = "me"\npassword = "file:{pipe}"' if what == "password" else f'{what} = "{pipe}"'
    config.write_text(f'[[site]]\nmatch = "{SEED}"\n{value}\n')
    arguments = [word.format(pipe=pipe, config=config) for word in NAMED[what]]
    started = [sys.executable, "-m", "fyke", "crawl", *arguments, "--into", str(tmp_path / "crawl")]
    done = subprocess.run(started, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == USAGE and done.stderr.count("\n") == 1, done
    assert str(pipe) in done.stderr and "named pipe" in done.stderr, done


@pytest.mark.parametrize("what", ["seeds", "settings", "cookies"])
def test_a_pipe_of_the_shell_is_read(what: str, tmp_path: Path, quick: Path, site: SmallSite) -> None:
    into, text = tmp_path / "crawl", tmp_path / "text"
    given = {
        "seeds": f"{site.url}\n",
        "settings": quick.read_text(),
        "cookies": "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tb\n",
    }
    text.write_text(given[what])
    read, config = "<(cat text)", tmp_path / "config.toml"
    arguments = f"{site.url} --config {quick}"
    if what == "seeds":
        arguments = f"{site.url} --seeds {read} --config {quick}"
    elif what == "settings":
        arguments = f"{site.url} --config {read}"
    else:
        config.write_text(f'{quick.read_text()}\n[[site]]\nmatch = "{site.url}"\ncookies = "/dev/stdin"\n')
        arguments = f"{site.url} --config {config} < {read}"
    script = f"{sys.executable} -m fyke crawl --into {into} --pages 1 {arguments}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done


OF_A_FOLDER = [
    "status @", "check @", "check @ --repair", f"why @ {SEED}", "links @", "report @", "export @ --to csv", "rewrite @",
    "index @", "search @ kiwi", "extract @", "copy @ !/copy", "move @ !/moved", "crawl --into @", "serve @",
    f"crawl {SEED} --into @", "block @ a.example", "unblock @ a.example", "cloak @ --as x",
]  # fmt: skip


@pytest.mark.parametrize("words", OF_A_FOLDER)
@pytest.mark.parametrize("below", ["", "x", "x/y"])
def test_what_is_no_folder(words: str, below: str, tmp_path: Path) -> None:
    """It is the file that is named, and nobody is told to begin a crawl there."""
    file = tmp_path / "file"
    file.write_text("mine")
    for place in (file, Path("/dev/null")):
        given = words.replace("@", str(place / below)).replace("!", str(tmp_path)).split()
        told(DIRECTORY, given, [f"{place} is not a folder: name a folder"])
    assert [*tmp_path.iterdir()] == [file] and file.read_text() == "mine"


def test_another_crawl_is_there(tmp_path: Path, quick: Path, site: SmallSite) -> None:
    into = tmp_path / "crawl"
    assert crawl(into, quick, site.url, "--pages", "3").status == 0
    for options in ([f"{site.url}p4"], [site.url, "--depth", "2"]):
        run = crawl(into, quick, *options)
        assert run.status == DIRECTORY
        said_once(run.errors, str(into), "another crawl", "--into")
    told_of_scope = crawl(into, quick, "--scope", "web")
    said_once(told_of_scope.errors, 'scope = "host", not "web"')
    again = crawl(into, quick, site.url.removesuffix("/").upper(), "--pages", "3")
    assert again.status == 0 and "--pages MORE" in again.errors, again.errors
    mended(into, quick, site)


def test_a_rate_is_of_all_runs(tmp_path: Path, quick: Path, site: SmallSite) -> None:
    into = tmp_path / "crawl"
    for pages in ("20", "21"):
        run = crawl(into, quick, site.url, "--pages", pages)
    told = re.search(r"in (.*) \(([\d,.]+) visits/s\)", run.errors)
    assert told, run.errors
    rate = run.summary["visits"] / run.summary["total_s"]
    assert float(told[2].replace(",", "")) == pytest.approx(rate, abs=0.1)


def test_why_takes_what_a_crawl_takes(tmp_path: Path, quick: Path, site: SmallSite) -> None:
    name = site.url.removeprefix("http://").removesuffix("/")
    assert crawl(tmp_path / "crawl", quick, name, "--pages", "3").status == 0
    done = fyke("why", str(tmp_path / "crawl"), name)
    assert done.returncode == 0 and done.stdout.startswith("fetched"), done.stderr


@pytest.mark.parametrize(("agents", "later"), list(product([1, 2], [1, 3])))
def test_two_at_once(agents: int, later: int, tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    quick = settings(tmp_path, fetch={"timeout_s": 100.0, "stall_s": 100})  # the first waits for as long as it takes
    with small_site() as site:
        gate = site.hang["/p1"] = threading.Event()
        first = begin(into, quick, site.url, "--agents", str(agents), stderr=subprocess.PIPE)
        assert site.hanging.wait(20)
        settings_before = (into / "fyke.toml").read_text()
        second = crawl(into, quick, site.url, "--pages", "2", "--agents", str(later))
        assert second.status == DIRECTORY
        said_once(second.errors, f"{into} is in use")
        assert (into / "fyke.toml").read_text() == settings_before
        assert division(into / "state").agents == len([*into.glob("state/shard-*")]) == agents
        assert json.loads(fyke("status", str(into), "--json").stdout)["state"] == "running"
        gate.set()
        assert first.communicate(timeout=20) and first.returncode == 0
        whole(into, site)


async def test_beginning_anew_keeps_others_out(tmp_path: Path, quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl that brought nothing is forgotten under the lock: no other can begin in between, and lose its files."""
    into = tmp_path / "crawl"
    assert crawl(into, quick, SEED).status == NETWORK
    directory, forget = CrawlDirectory(into), CrawlDirectory.forget
    refused = []

    def forgotten(self: CrawlDirectory) -> None:
        with pytest.raises(DirectoryInUse):
            Checkpoint(self.shard)
        refused.append(self.path)
        forget(self)

    monkeypatch.setattr(CrawlDirectory, "forget", forgotten)
    async with Agent(directory, directory.config()):
        assert newest(directory.shard).number == 0
    assert refused == [into]


# -- the disk --------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "8m") as disk:
        yield disk


FULL_SETTINGS = {"checkpoint_s": 0.2, "warc_bytes": 1_000_000, "table_rows": 20}


def test_a_full_disk(tmp_path: Path, disk: Path) -> None:
    into = disk / "crawl"
    config = settings(tmp_path, store=FULL_SETTINGS, crawl={"wait_s": 0.0})
    with small_site(pages=40, page_bytes=600_000) as site:
        for _ in range(2):  # again, while the disk is still full
            run = crawl(into, config, site.url)
            assert run.status == FULL, run.errors
            said_once(run.errors, "free some")
            stands = fyke("status", str(into)).stdout.splitlines()[0]
            assert stands.startswith(f"{into}: broke off: ") and "free some" in stands
            assert stands.endswith(f"; fyke crawl --into {into} goes on")
            assert fyke("check", str(into)).returncode == 0
        grow(disk)
        mended(into, config, site)


@contextmanager
def paused(
    folder: Path, disk: Path, *options: str, pages: int = 40, rest_s: float = 0.0
) -> Iterator[tuple[subprocess.Popen[bytes], SmallSite]]:
    """A crawl that waits for room on the disk; `folder` / "said" has what it said."""
    config = settings(folder, store=FULL_SETTINGS, politeness={"host_delay_s": rest_s, "min_host_delay_s": rest_s})
    with small_site(pages=pages, page_bytes=600_000) as site, (folder / "said").open("w") as said:
        process = begin(disk / "crawl", config, site.url, *options, stderr=said)
        wait_until(lambda: "until then the crawl pauses" in (folder / "said").read_text())
        yield process, site


def test_a_disk_that_fills_and_empties_is_a_pause(tmp_path: Path, disk: Path) -> None:
    """It is said, and the same process goes on once there is room; no page is lost, none archived twice."""
    with paused(tmp_path, disk) as (process, site):
        assert process.poll() is None
        grow(disk)
        assert process.wait(60) == 0
        whole(disk / "crawl", site)
    said = (tmp_path / "said").read_text()
    assert f"goes on once {size(ROOM_BYTES)} are free" in said
    assert "room again: the crawl goes on" in said and "Traceback" not in said


@pytest.mark.parametrize("room", [True, False])
def test_the_time_asked_for_goes_on_while_the_disk_is_full(tmp_path: Path, disk: Path, room: bool) -> None:
    with paused(tmp_path, disk, "--for", "16s", pages=80, rest_s=0.3) as (process, _):
        if room:
            grow(disk)
        began = time.monotonic()
        assert process.wait(60) == (0 if room else FULL)
        assert time.monotonic() - began < 16
        stands = fyke("status", str(disk / "crawl")).stdout.splitlines()[0]
        assert ("time" if room else "broke off") in stands


def test_a_page_that_has_no_room_is_not_asked_for_without_end(tmp_path: Path) -> None:
    """What it took is free again as soon as it is broken off."""
    asked: list[str] = []

    def answer(path: str, _: Mapping[str, str]) -> Answer:
        asked.append(path)
        return 200, {"Content-Type": "text/plain"}, b"" if path == "/robots.txt" else b"words " * (7 << 20)

    config = settings(tmp_path, crawl={"wait_s": 5.0})
    with small_disk(tmp_path / "disk", "32m") as disk, web_server(answer) as url:
        run = crawl(disk / "crawl", config, url)
        assert run.status == FULL, run.errors
        assert fyke("check", str(disk / "crawl")).returncode == 0
    assert asked.count("/") == 2


@pytest.mark.parametrize("closed", [["<&-"], [">&-"], ["2>&-"], ["<&-", ">&-", "2>&-"]])
@pytest.mark.parametrize("agents", [1, 2])
def test_a_stream_that_is_closed_harms_nothing(
    tmp_path: Path, quick: Path, site: SmallSite, closed: list[str], agents: int
) -> None:
    """What is opened first takes the number that is free, and must not be ended with the stream whose number it is."""
    started = command(tmp_path / "there", quick, site.url, "--agents", str(agents))
    done = subprocess.run(["sh", "-c", f'exec "$@" {" ".join(closed)}', "sh", *started], check=False)
    assert done.returncode == 0
    whole(tmp_path / "there", site)


@pytest.mark.parametrize("agents", ["1", "2"])
def test_a_crawl_whose_terminal_goes_away_stops_as_asked(tmp_path: Path, site: SmallSite, agents: str) -> None:
    """And says what it has to say to nobody."""

    def in_terminal() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    into, (terminal, standard) = tmp_path / "crawl", os.openpty()
    slow = settings(tmp_path, politeness={**FAST, "host_delay_s": 0.3, "min_host_delay_s": 0.3})
    started = command(into, slow, site.url, "--agents", agents)
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), standard)
    with subprocess.Popen(started[: started.index("--json")], **streams, preexec_fn=in_terminal) as process:  # type: ignore[call-overload]
        os.close(standard)
        said = b""
        while b"pages" not in said:
            said += os.read(terminal, 4096)
        os.close(terminal)
        assert process.wait(60) == INTERRUPTED
    ends = [json.loads(line) for log in (into / "logs").iterdir() for line in log.read_text().splitlines()]
    closed = [end for end in ends if end.get("event") == "closed"]
    assert closed and all(end["ending"] == "stopped" and end["error"] is None for end in closed)
    mended(into, settings(tmp_path, politeness=FAST), site)


def test_a_crawl_that_waits_for_room_can_be_stopped(tmp_path: Path, disk: Path) -> None:
    with paused(tmp_path, disk) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == FULL


def test_a_crawl_that_is_stopped_as_room_comes_has_stopped(tmp_path: Path, disk: Path) -> None:
    with paused(tmp_path, disk) as (process, site):
        grow(disk)
        process.send_signal(signal.SIGTERM)  # before the crawl has looked
        assert process.wait(30) == 0, (tmp_path / "said").read_text()
        mended(disk / "crawl", settings(tmp_path, store=FULL_SETTINGS), site)


@pytest.mark.parametrize("forward_s", [-5000.0, 5000.0, 1e9])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_clock_that_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forward_s: float, restarted: bool
) -> None:
    """The crawl goes on by its own, and its log says so; after a restart of the machine no sooner than it ended."""
    with small_site(pages=4) as site:
        directory = CrawlDirectory(tmp_path / "crawl")
        config = build({"crawl": {"seeds": [site.url], "pages": 2}, "politeness": FAST}, "test")

        async def crawled() -> tuple[float, float]:
            """When it was opened and closed, by its clock."""
            async with Agent(directory, config) as agent:
                began = agent._clock.now()
                await agent.run()
                return began, agent._clock.now()

        _, ended = asyncio.run(crawled())
        wall = time.time
        monkeypatch.setattr("time.time", lambda: wall() + forward_s)
        if restarted:
            (tmp_path / "boot_id").write_text("another")
            monkeypatch.setattr("fyke.core.clock.BOOT_ID", tmp_path / "boot_id")
        began, _ = asyncio.run(crawled())
    if restarted:
        assert began >= ended + max(0.0, forward_s)
    else:
        assert ended <= began < ended + 1000
    said = f'"clock set {"back" if forward_s < 0 else "forward"}"'
    assert (said in (directory.logs / "fyke.log").read_text()) == (not restarted or forward_s < 0)


def test_times_to_come_are_told_by_the_clock_on_the_wall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the crawl goes on by its own, which was not set."""
    directory, forward_s = CrawlDirectory(tmp_path / "crawl"), 5000.0
    with small_site(pages=4) as site:
        config = build({"crawl": {"seeds": [site.url]}, "politeness": FAST}, "test")

        async def crawled(asked: Pass | None = None) -> CrawlStatistics:
            async with Agent(directory, config, asked_pass=asked) as agent:
                running = asyncio.create_task(agent.run())
                while not running.done() and agent.statistics().freshness is None:
                    await asyncio.sleep(0.01)
                agent.stop()
                await running
                return agent.statistics()

        asyncio.run(crawled())
        origin = split(site.url).origin
        with ReadBooks(directory.host_books) as books:
            host, robots = books.host("127.0.0.1"), books.robots(origin)
            assert host is not None and robots is not None
        wall = time.time
        monkeypatch.setattr("time.time", lambda: wall() + forward_s)
        told = why(directory, robots_url(origin)).facts[-1]
        until = datetime.strptime(told.split("after ")[1][:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
        (known,) = known_hosts("", directory, 10, "", failing=False)
        (rules,) = rules_of(directory, "127.0.0.1", HostVisits([{"url": site.url}], 1))
        later = [until - robots.expires_at, rules.expires_at - robots.expires_at, known.rests_until - host.due]
        assert later == pytest.approx([forward_s] * 3, abs=1.5)
        freshness = asyncio.run(crawled(Pass(forever=True))).freshness
        assert freshness is not None and 0 < freshness.next_at - time.time() < config.revisit.least_s


@pytest.mark.parametrize("at", [-3e9, 1e6, 7_258_204_800.0])
def test_nobody_begins_by_a_clock_that_was_never_set(
    at: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All dates would be wrong, and stay so."""
    directory = CrawlDirectory(tmp_path / "crawl")
    config = build({"crawl": {"seeds": [SEED]}}, "test")
    wall = time.time()
    monkeypatch.setattr("time.time", lambda: at + time.monotonic() % 1)

    async def opened() -> None:
        async with Agent(directory, config):
            pass

    with pytest.raises(ConfigurationError, match=rf"the year {time.gmtime(at).tm_year}: set it"):
        asyncio.run(opened())
    monkeypatch.setattr("time.time", lambda: wall)
    asyncio.run(opened())


def test_a_limit_of_a_file_that_sqlite_meets_ends_the_crawl(tmp_path: Path, quick: Path, site: SmallSite) -> None:
    """It would pause for room, find it, and go on, for ever."""
    limited = ["bash", "-c", 'ulimit -f 12; exec "$@"', "-", *COMMAND]
    words = ["crawl", site.url, "--into", str(tmp_path / "crawl"), "--config", str(quick)]
    done = subprocess.run([*limited, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == FULL and "ulimit -f" in done.stderr.splitlines()[-1], done


@pytest.mark.parametrize("agents", ["1", "2", "3"])
def test_a_clock_that_was_years_ahead_and_is_right_again(agents: str, tmp_path: Path) -> None:
    """Hosts rest by the clock of the crawl, and people are told by the right one."""
    into, years_s = tmp_path / "crawl", 3650 * 86_400.0  # whole days, since half a day may be rounded either way
    slow = settings(tmp_path, politeness={**FAST, "host_delay_s": 1.2, "min_host_delay_s": 1.2})
    with small_site(pages=6) as site:
        assert crawl(into, slow, site.url, "--pages", "3", "--agents", min(agents, "2")).status == 0
        for part in CrawlDirectory(into).parts:
            last = newest(part.shard)
            ahead = {**last.counters, "taken_at": last.counters["taken_at"] + years_s}
            (part.shard / last.name).write_bytes(replace(last, counters=ahead).encode())
        run = crawl(into, slow, site.url, "--agents", agents, "--pages", "5")
        assert run.summary["ending"] == "pages" and run.summary["rest_until"] < time.time() + 100, run
        assert f"{round(years_s / 86400)} days ahead of the machine's clock" in run.errors, run
        run = crawl(into, slow, site.url, "--agents", agents)
        assert run.summary["ending"] == "finished", run
        whole(into, site)


def test_no_room_to_begin(quick: Path, disk: Path, site: SmallSite) -> None:
    filling = disk / "filling"
    with filling.open("wb") as file, pytest.raises(OSError):
        while True:
            file.write(bytes(1 << 16))
            file.flush()
    run = crawl(disk / "crawl", quick, site.url)
    assert run.status == FULL
    said_once(run.errors, "free some")
    filling.unlink()
    mended(disk / "crawl", quick, site)


# -- the network -----------------------------------------------------------------------------------


def test_no_name_server_answers(tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        config = settings(
            tmp_path,
            politeness={**FAST, "failure_delay_s": 0.1},
            dns={"servers": [f"127.0.0.1:{mute.getsockname()[1]}"], "timeout_s": 0.2, "tries": 1, "private": []},
        )
        run = crawl(into, config, "http://www.example.test/")
    assert run.status == NETWORK and not run.summary
    said_once(run.errors, "--dns", f"fyke why {into}")
    assert "example.test" in fyke("why", str(into), "http://www.example.test/").stdout
    assert fyke("check", str(into)).returncode == 0


def test_connection_refused_and_mended(tmp_path: Path, quick: Path) -> None:
    into = tmp_path / "crawl"
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # nobody listens
        run = crawl(into, quick, f"http://127.0.0.1:{reserved.getsockname()[1]}/")
    assert run.status == NETWORK
    said_once(run.errors, "nothing could be reached", "same command again")
    with small_site() as site:
        (into / "fyke.toml").write_text(
            (into / "fyke.toml").read_text().replace(run_seed(into), site.url)
        )  # as if the server there were up again
        mended(into, quick, site)


def run_seed(into: Path) -> str:
    text = (into / "fyke.toml").read_text()
    return text.partition('seeds = ["')[2].partition('"')[0]


def test_a_folder_that_is_moved_away_while_it_is_crawled_is_said_to_be(tmp_path: Path) -> None:
    into, away = tmp_path / "crawl", tmp_path / "away"
    slow = settings(
        tmp_path, politeness={**FAST, "host_delay_s": 0.05, "min_host_delay_s": 0.05}, store={"checkpoint_s": 0.5}
    )
    with small_site(pages=400) as site, begin(into, slow, site.url, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: any(into.glob("state/shard-0000/manifest-*1.json")))
        into.rename(away)
        _, errors = process.communicate(timeout=60)
        last = errors.splitlines()[-1]
        assert process.returncode == DIRECTORY and "moved or deleted: put it back" in last and str(into) in last, errors
        away.rename(into)
        assert crawl(into, slow, site.url, "--pages", "30").status == 0


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that can go on."""
    folder = tmp_path_factory.mktemp("stopped")
    config = settings(folder, store={"warc_bytes": 6_000})
    assert crawl(folder / "crawl", config, site.url, "--pages", "20").status == 0
    return folder / "crawl"


def test_how_it_stands_is_in_words(stopped: Path) -> None:
    told = fyke("status", str(stopped)).stdout.splitlines()[0]
    assert told == f"{stopped}: reached the limit of pages; fyke crawl --into {stopped} --pages MORE goes on"
    assert json.loads(fyke("status", str(stopped), "--json").stdout)["state"] == "pages"


def test_seeds_are_counted_in_the_log(stopped: Path) -> None:
    lines = [json.loads(line) for line in (stopped / "logs" / "fyke.log").read_text().splitlines()]
    assert [line["seeds"] for line in lines if line["event"] == "begun"] == [1]


def test_why_of_a_crawl_that_stopped(tmp_path: Path, quick: Path) -> None:
    """What waits in memory, a refusal, and the robots.txt itself, which is no page."""
    with small_site() as site:
        site.answers["/robots.txt"] = 200, {}, b"User-agent: *\nDisallow: /p2\nAllow: /p2$\nDisallow: /p1$\n"
        assert crawl(tmp_path / "crawl", quick, site.url, "--pages", "3").status == 0
        said = {path: fyke("why", str(tmp_path / "crawl"), site.url + path).stdout for path in ("p1", "robots.txt", "")}
        waiting = (url for url in sorted(site.all_urls() - {*archived(tmp_path / "crawl")}))
        told = [fyke("why", str(tmp_path / "crawl"), url).stdout for url in waiting]
    assert said["p1"].count("Disallow: /p1$") == 1 and said["p1"].startswith("refused: ")
    assert said["robots.txt"].startswith("asked for ") and "status 200" in said["robots.txt"]
    assert "not seen" not in said["robots.txt"]
    assert "robots.txt allows it" in said[""]
    assert any("waiting: " in words for words in told) and not any("in memory" in words for words in told)


def copied(source: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-a", str(source), str(tmp_path / "crawl")], check=True)
    return tmp_path / "crawl"


def test_the_newest_manifest_is_torn(stopped: Path, tmp_path: Path, quick: Path, site: SmallSite) -> None:
    into = copied(stopped, tmp_path)
    newest = max((into / "state").rglob("manifest*"))
    newest.write_bytes(newest.read_bytes()[:-40])
    harmless(into, quick, site)
    done = fyke("check", "--repair", str(into))
    assert done.returncode == 0 and newest.name in done.stdout
    mended(into, quick, site)


@pytest.mark.parametrize("lost", ["manifests torn", "files", "all"])
def test_the_state_is_lost(lost: str, stopped: Path, tmp_path: Path, quick: Path, site: SmallSite) -> None:
    into = copied(stopped, tmp_path)
    for path in (into / "state" / "shard-0000").iterdir():
        if path.name.startswith("manifest") and lost == "manifests torn":
            path.write_bytes(path.read_bytes()[:-40])
        elif not path.name.startswith(("manifest", "lock")) and lost == "files":
            path.unlink()
    if lost == "all":
        shutil.rmtree(into / "state")
    harmless(into, quick, site)


def harmless(into: Path, quick: Path, site: SmallSite) -> None:
    """The crawl cannot go on and says so; the archive is not touched."""
    archive = {path.name: path.read_bytes() for path in (into / "warc").iterdir()}
    run = crawl(into, quick, site.url)
    assert run.status == DIRECTORY
    said_once(run.errors, str(into / "state"))
    assert archive == {path.name: path.read_bytes() for path in (into / "warc").iterdir()}
    done = fyke("check", str(into))
    assert done.returncode == 1 and "state" in done.stdout


@pytest.mark.parametrize("pattern", ["warc/*.warc.gz", "warc/*.cdxj", "tables/pages*.parquet", "tables/links*.parquet"])
@pytest.mark.parametrize("how", ["flip", "cut"])
def test_damage_is_found_and_placed(stopped: Path, tmp_path: Path, pattern: str, how: str) -> None:
    into = copied(stopped, tmp_path)
    path = min(into.glob(pattern))
    data = bytearray(path.read_bytes())
    if how == "flip":
        data[len(data) // 2] ^= 0x01
    path.write_bytes(data if how == "flip" else data[: len(data) * 2 // 3])
    done = fyke("check", str(into), "--json")
    assert done.returncode == 1 and not done.stderr, done.stderr
    places = [fault["place"] for fault in json.loads(done.stdout)["faults"]]
    assert any(place.startswith(f"{path.parent.name}/{path.name.removesuffix('.gz')}") for place in places), places


# -- the person goes away --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["status", "@"], ["check", "@", "--json"], ["crawl", "--into", "@", "--json"], ["links", "--help"]]
)
def test_nobody_reads_on(stopped: Path, tmp_path: Path, arguments: list[str]) -> None:
    into = copied(stopped, tmp_path)
    fyke_arguments = [str(into) if word == "@" else word for word in arguments]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "fyke", *fyke_arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert done.returncode == 141 and "Traceback" not in done.stderr and "fyke:" not in done.stderr, done.stderr
    assert fyke("check", str(into)).returncode == 0


def test_nobody_reads_the_progress(tmp_path: Path, quick: Path, site: SmallSite) -> None:
    """`fyke crawl … 2>&1 | head -1`: a crawl is worth more than its report."""
    into = tmp_path / "crawl"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command(into, quick, site.url), stdout=subprocess.DEVNULL, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode in (0, 141)
    whole(into, site)


def test_the_progress_has_no_room(tmp_path: Path, quick: Path, site: SmallSite) -> None:
    """`fyke crawl … 2>log`, where the log's disk is full."""
    into = tmp_path / "crawl"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command(into, quick, site.url), stdout=subprocess.DEVNULL, stderr=full, check=False)
    assert done.returncode == 0
    whole(into, site)


def test_a_list_of_seeds_from_a_closed_stream_is_told(tmp_path: Path) -> None:
    started = [sys.executable, "-m", "fyke", "crawl", "--seeds", "-", "--into", str(tmp_path / "crawl")]
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *started]
    done = subprocess.run(closed, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == USAGE
    said_once(done.stderr, "--seeds -", "stdin is closed")
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize("agents", ["1", "2"])
def test_a_start_that_fails_leaves_the_settings_as_they_were(
    agents: str, tmp_path: Path, quick: Path, site: SmallSite
) -> None:
    into = tmp_path / "crawl"
    assert crawl(into, quick, site.url, "--pages", "10", "--agents", agents).status == 0
    before = (into / "fyke.toml").read_bytes()
    rests = max((into / "state").glob("rests*"))
    whole_rests = rests.read_bytes()
    rests.write_bytes(whole_rests[:-9] + b"x" + whole_rests[-8:])
    run = crawl(into, into / "fyke.toml", "--pages", "25")
    assert run.status == DIRECTORY and rests.name in run.errors, run
    assert (into / "fyke.toml").read_bytes() == before
    rests.write_bytes(whole_rests)
    assert fyke("check", str(into)).returncode == 0
    assert crawl(into, into / "fyke.toml", "--pages", "25").status == 0
    assert (into / "fyke.toml").read_bytes() != before


@pytest.mark.parametrize("late", [0, 1])
def test_no_agent_begins_before_all_were_opened(late: int, tmp_path: Path) -> None:
    """Else one may take a checkpoint with the settings of a start that fails."""
    into, haste = tmp_path / "crawl", settings(tmp_path, politeness=FAST, store={"checkpoint_s": 0.2})
    with small_site(pages=60) as site:
        assert crawl(into, haste, site.url, "--pages", "10", "--agents", "2").status == 0
        before, asked = (into / "fyke.toml").read_bytes(), site.asked.total()
        books = sorted((into / "state").rglob("*hosts*.sqlite"))
        with closing(sqlite3.connect(books[late])) as taken:
            taken.execute("BEGIN IMMEDIATE")
            run = crawl(into, into / "fyke.toml", "--pages", "25")
            assert run.status == DIRECTORY and books[late].name in run.errors, run
        assert ((into / "fyke.toml").read_bytes(), site.asked.total()) == (before, asked)
        assert fyke("check", str(into)).returncode == 0
        assert crawl(into, into / "fyke.toml", "--pages", "25").status == 0
        assert site.asked.total() >= asked + 15


def test_a_port_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        done = fyke("web", "--pages", "10", "--hosts", "2", "--port", str(taken.getsockname()[1]))
    assert done.returncode == USAGE
    said_once(done.stderr, "port")


def test_a_ledger_that_cannot_be_written(tmp_path: Path) -> None:
    done = fyke("web", "--pages", "10", "--hosts", "2", "--ledger", str(tmp_path / "none" / "ledger"))
    assert done.returncode == USAGE
    said_once(done.stderr, str(tmp_path / "none" / "ledger"))
    assert "port" not in done.stderr


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c(tmp_path: Path, quick: Path, times: int) -> None:
    """Once: a clean stop within 5 s. Twice: at once. The same command then goes on, and nothing is lost."""
    into = tmp_path / "crawl"
    with small_site(pages=60) as site:
        gate = site.hang["/p13"] = threading.Event()
        process = begin(into, quick, site.url, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert site.hanging.wait(20)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        if times > 1:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)  # the first is being obeyed: what is under way may end
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=10)
        assert time.monotonic() - began < (5 if times == 1 else 1.5)
        gate.set()
        assert process.returncode == INTERRUPTED and "Traceback" not in errors
        if times == 1:
            assert json.loads(out)["ending"] == "stopped" and f"fyke crawl --into {into} goes on" in errors
        mended(into, quick, site)


def test_a_seed_that_is_not_there_is_told(site: SmallSite, quick: Path, tmp_path: Path) -> None:
    """By a line and a status of its own, as wget and curl -f do; the answer is archived, and it is told again."""
    into = tmp_path / "there"
    for agents in ("1", "1"):
        run = crawl(into, quick, f"{site.url}none", "--agents", agents)
        assert run.status == 6 and run.summary["ending"] == "finished"
        assert run.errors.splitlines()[-1] == (
            f"fyke: no seed brought a page: check the URL; fyke why {into} {site.url}none says more"
        )
    assert crawl(tmp_path / "both", quick, f"{site.url}none", site.url, "--pages", "3").status == 0


def test_a_start_that_breaks_off_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("# none\n")
    for agents in ("1", "2"):
        done = fyke(
            "crawl", "--seeds", str(tmp_path / "seeds.txt"), "--into", str(tmp_path / "there"), "--agents", agents
        )
        assert done.returncode == 2 and not (tmp_path / "there").exists(), done.stderr
    (tmp_path / "there").mkdir()
    assert fyke("crawl", "--seeds", str(tmp_path / "seeds.txt"), "--into", str(tmp_path / "there")).returncode == 2
    assert (tmp_path / "there").is_dir()


@pytest.mark.parametrize(("key", "value"), [("depth", "9"), ("scope", '"web"'), ("seeds", '["http://a.example/"]')])
def test_an_edit_that_makes_a_finished_crawl_another_is_named(key: str, value: str, tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    with small_site(pages=2) as site:
        assert crawl(into, settings(tmp_path), site.url).status == 0
    edited = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", (into / "fyke.toml").read_text())
    (into / "fyke.toml").write_text(edited)
    for more in ([], ["--again"]):
        told(3, ["crawl", "--into", str(into), *more], ["fyke.toml", "edited", "restore"])
