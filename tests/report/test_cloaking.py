"""What servers show to another name is found, what changes by itself is not, and all is asked for as a crawl asks."""

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from itertools import count, pairwise
from pathlib import Path

import pytest

from commands import told
from crawl.runs import archived, settings, wait_until
from crawl.runs import crawl_here as crawl
from crawl.runs import fyke_here as fyke
from fyke.archive.check import check_archive
from fyke.archive.directory import CrawlDirectory, crawl_clock
from fyke.archive.inspect import check_crawl
from fyke.core.config import Config
from fyke.core.errors import FykeError
from fyke.core.rests import SOON_S
from fyke.core.urls import key_of
from fyke.crawl.owed import may_be_asked, take_over
from fyke.disk.files import lock
from fyke.fetcher.book import HostBook
from fyke.fetcher.host import Host
from fyke.fetcher.shared_book import ReadBooks
from loaded import COMMAND, Loaded
from web_server import Answer, web_server

TEXT = " ".join(f"word{number}" for number in range(60))
LINKS = "".join(f'<a href="/{name}">x</a>' for name in ("same", "clock", "words", "links", "refused", "secret"))


class Site:
    """Pages of which some depend on who asks; requests in order: time, path, name."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, str, str]] = []
        self._count = count()

    def answer(self, path: str, fields: dict[str, str]) -> Answer:
        name = fields["user-agent"]
        self.asked.append((time.monotonic(), path, name))
        browser = "Firefox" in name
        if path == "/robots.txt":
            return 200, {}, b"User-agent: *\nDisallow: /secret\nUser-agent: Firefox\nAllow: /\n"
        if path == "/refused" and browser:
            return 403, {}, b"no"
        extra = f" moment{next(self._count)}" * (path == "/clock") + " cheap pills here now" * 5 * (
            path == "/words" and browser
        )
        more = "".join(f'<a href="/buy{n}">y</a>' for n in range(9)) if path == "/links" and browser else ""
        page = f"<title>{path}</title><p>{TEXT}{extra}</p>{LINKS}{more}"
        return 200, {"Content-Type": "text/html"}, page.encode()


def test_it_is_measured(tmp_path: Path) -> None:
    site = Site()
    with web_server(site.answer) as url:
        gentle = dict.fromkeys(("host_delay_s", "address_delay_s", "min_host_delay_s", "min_address_delay_s"), 0.1)
        run = crawl(tmp_path / "there", settings(tmp_path, None, politeness={**gentle, "delay_factor": 0.0}), url)
        assert run.status == 0, run.errors
        site.asked.clear()
        done = fyke("cloak", str(tmp_path / "there"), "--as", "Firefox/140.0", "--pages", "50", "--json")
        assert done.returncode == 0, done.stderr
        measured = len(site.asked)
        for number in (1, 2):
            before = archived(tmp_path / "there" / "cloaking")
            again = fyke("cloak", str(tmp_path / "there"), "--as", "Firefox/140.0", "--pages", "1", "--json")
            assert again.returncode == 0 and len(json.loads(again.stdout)["pages"]) == 1, again
            earlier = tmp_path / "there" / f"cloaking-00{number}"
            assert str(earlier) in again.stderr and archived(earlier) == before, again
            assert fyke("check", str(earlier)).returncode == 0
    del site.asked[measured:]
    pages = {page["url"].removeprefix(url): page for page in json.loads(done.stdout)["pages"]}
    assert {name for name, page in pages.items() if page["differs"]} == {"words", "links", "refused"}
    assert set(pages) == {"", "same", "clock", "words", "links", "refused"}
    assert pages["words"]["added_words"] > 0.05 and pages["links"]["added_links"] > 0.5
    assert pages["refused"]["answers"] == [200, 403, 200, 403]
    asked = Counter(path for _, path, _ in site.asked)
    assert asked["/secret"] == 0 and asked["/words"] == 4
    assert all(name.startswith("fyke/") for _, _, name in site.asked), "our own name is always sent"
    times = [at for at, _, _ in site.asked]
    assert min(after - before for before, after in pairwise(times)) > 0.09, "also between turns"
    assert not list(check_archive(tmp_path / "there" / "cloaking", once=False))
    assert not list((tmp_path / "there" / "cloaking").glob("seeds.txt*")), "a person named every page's host"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 130)], ids=["int", "term", "hup"]
)
def test_it_stops_with_the_status_of_a_crawl(tmp_path: Path, number: int, status: int) -> None:
    site, into = Site(), tmp_path / "there"
    with web_server(site.answer) as url:
        config = settings(tmp_path, None, dns={"private": ["127.0.0.1"]})
        assert crawl(into, config, url).status == 0
        file = into / "fyke.toml"
        file.write_text(file.read_text().replace("host_delay_s = 0.0", "host_delay_s = 5.0"))
        site.asked.clear()
        command = [*COMMAND, "cloak", str(into), "--as", "Firefox/140.0"]
        process = Loaded(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: bool(site.asked))
        process.send_signal(number)
        out, errors = process.communicate(timeout=30)
    assert process.returncode == status and not out
    assert errors.splitlines()[-1].startswith("fyke: stopped before") and "the same command" in errors


def test_a_host_that_only_strangers_named_may_not_be_private(tmp_path: Path) -> None:
    """It is where a crawl may go, and then is in the network of whoever measures."""
    asked: Counter[str] = Counter()

    def answer(path: str, fields: dict[str, str]) -> Answer:
        host, port = fields["host"].split(":")
        asked[host] += 1
        return 200, {"Content-Type": "text/html"}, f"<p>{host}<a href='http://b.localhost:{port}/'>b</a>".encode()

    into = tmp_path / "there"
    with web_server(answer) as url:
        port = url.rstrip("/").rpartition(":")[2]
        chosen = settings(tmp_path, None, dns={"private": ["b.localhost"]})
        assert crawl(into, chosen, f"http://a.localhost:{port}/", "--scope", "web").status == 0
        assert set(asked) == {"a.localhost", "b.localhost"}
        asked.clear()
        file = into / "fyke.toml"
        file.write_text(file.read_text().replace('private = ["b.localhost"]', "private = []"))
        done = fyke("cloak", str(into), "--as", "Firefox/140.0", "--json")
    assert done.returncode == 0, done.stderr
    assert set(asked) == {"a.localhost"}
    answers = {page["url"]: page["answers"] for page in json.loads(done.stdout)["pages"]}
    assert answers[f"http://a.localhost:{port}/"] == [200] * 4
    assert "address" in fyke("why", str(into / "cloaking"), f"http://b.localhost:{port}/").stdout
    assert (into / "cloaking" / "seeds.txt").read_text() == f"http://b.localhost:{port}/\n"


@pytest.mark.parametrize("agents", ["1", "2"])
def test_who_rests_or_is_blocked_is_left_in_peace(tmp_path: Path, agents: str) -> None:
    """A measurement owes servers what the crawl does, and the crawl what the measurement does."""
    asked: list[tuple[float, str, str]] = []
    tired = {"rests"}  # whose other page is asked for too soon

    def answer(path: str, fields: dict[str, str]) -> Answer:
        host = fields["host"].partition(".")[0]
        asked.append((time.monotonic(), host, path))
        if path == "/later" and host in tired:
            return 429, {"Retry-After": "3600"}, b""
        return 200, {"Content-Type": "text/html"}, b"" if path == "/robots.txt" else f"<p>{host}{path}".encode()

    rest_s = 1.0
    gentle = dict.fromkeys(("host_delay_s", "address_delay_s", "min_host_delay_s", "min_address_delay_s"), rest_s)
    into = tmp_path / "there"
    with web_server(answer) as url:
        port = url.rstrip("/").rpartition(":")[2]
        seeds = [f"http://{host}.localhost:{port}{path}" for host in ("rests", "blocked") for path in ("/", "/later")]
        seeds += [f"http://open.localhost:{port}{path}" for path in ("/", "/later")]
        config = settings(tmp_path, None, politeness={**gentle, "delay_factor": 0.0})
        run = crawl(into, config, *seeds, "--scope", "seeds", "--wait", "2s", "--agents", agents)
        assert run.status == 0, run.errors
        assert fyke("block", str(into), "blocked.localhost").returncode == 0
        crawled, tired = len(asked), {"open"}
        done = fyke("cloak", str(into), "--as", "Firefox/140.0")
        measured = len(asked)
        assert done.returncode == 0, done.stderr
        again = crawl(into, config, "--scope", "seeds", "--again", "--wait", "2s")
        assert again.status == 0, again.errors
    assert {host for _, host, _ in asked[crawled:measured]} == {"open"}
    assert measured > crawled
    assert min(after[0] - before[0] for before, after in pairwise(asked)) > rest_s - 0.1, "also between the two"
    assert not asked[measured:], "whom the measurement was told to leave for an hour is not asked by the crawl"
    assert not list(check_crawl(CrawlDirectory(into), lambda *_: None))


def test_a_blocked_host_is_not_asked_for_rules_that_lead_there(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def answer(path: str, fields: dict[str, str]) -> Answer:
        host, _, port = fields["host"].partition(":")
        asked.append((host, path))
        if path == "/robots.txt" and host == "led.localhost":
            return 302, {"Location": f"http://blocked.localhost:{port}/rules"}, b""
        return 200, {"Content-Type": "text/html"}, f"<p>{path}".encode() if path == "/" else b""

    into = tmp_path / "there"
    with web_server(answer) as url:
        port = url.rstrip("/").rpartition(":")[2]
        seeds = [f"http://{host}.localhost:{port}/" for host in ("led", "open", "blocked")]
        config = settings(tmp_path, None, dns={"private": ["localhost"]})
        assert crawl(into, config, *seeds).status == 0
        assert ("blocked.localhost", "/rules") in asked
        assert fyke("block", str(into), "blocked.localhost").returncode == 0
        asked.clear()
        assert fyke("cloak", str(into), "--as", "Firefox/140.0").returncode == 0
    assert ("led.localhost", "/robots.txt") in asked
    assert {host for host, _ in asked} == {"led.localhost", "open.localhost"}


@pytest.mark.parametrize(("agents", "measured"), [("1", False), ("2", False), ("1", True)])
def test_a_measurement_that_is_killed_leaves_its_long_rests_to_the_crawl(
    tmp_path: Path, agents: str, measured: bool
) -> None:
    """Also where it is measured again at once."""
    asked: list[str] = []
    measuring, told_to_rest, gate = threading.Event(), threading.Event(), threading.Event()

    def answer(path: str, fields: dict[str, str]) -> Answer:
        host = fields["host"].partition(".")[0]
        asked.append(host)
        if measuring.is_set() and path != "/robots.txt":
            if host == "tired":
                told_to_rest.set()
                return 429, {"Retry-After": "3600"}, b""
            told_to_rest.wait(30)
            gate.wait(30)
        return 200, {"Content-Type": "text/html"}, b"" if path == "/robots.txt" else f"<p>{host}{path}".encode()

    into = tmp_path / "there"
    with web_server(answer) as url:
        port = url.rstrip("/").rpartition(":")[2]
        seeds = [f"http://{host}.localhost:{port}{path}" for host in ("tired", "slow") for path in ("/", "/more")]
        run = crawl(into, settings(tmp_path), *seeds, "--scope", "seeds", "--agents", agents)
        assert run.status == 0, run.errors
        measuring.set()
        command = [*COMMAND, "cloak", str(into), "--as", "Firefox/140.0"]
        with Loaded(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            assert told_to_rest.wait(30)
            wait_until(lambda: _due(into / "cloaking", "tired.localhost") > time.time() + 3000)
            process.kill()
        measuring.clear()
        gate.set()
        asked.clear()
        if measured:
            done = fyke("cloak", str(into), "--as", "Firefox/140.0", "--json")
            assert done.returncode == 0 and len(json.loads(done.stdout)["pages"]) == 2, done
            assert (into / "cloaking-001" / "fyke.toml").is_file() and "tired" not in asked
        again = crawl(into, tmp_path / "settings.toml", "--scope", "seeds", "--again", "--wait", "7s")
    assert again.status == 0, again.errors
    assert "slow" in asked and "tired" not in asked
    assert not list(check_crawl(CrawlDirectory(into), lambda *_: None))


def test_a_book_that_a_kill_left_empty_keeps_no_crawl_out(tmp_path: Path) -> None:
    directory = CrawlDirectory(tmp_path)
    with directory.recorded(Config.model_validate({"crawl": {"seeds": ["http://a.example/"]}})):
        pass
    measured = CrawlDirectory(tmp_path / "cloaking").hosts
    measured.parent.mkdir(parents=True)
    measured.touch()
    take_over(directory)


def _due(into: Path, name: str) -> float:
    """Until when the host `name` rests, by the host book of a crawl."""
    with suppress(FykeError), ReadBooks([CrawlDirectory(into).hosts]) as books:
        return getattr(books.host(name), "due", 0.0)
    return 0.0


def test_who_rests_for_a_moment_is_asked(tmp_path: Path) -> None:
    """As all hosts do right after a crawl."""
    directory = CrawlDirectory(tmp_path)
    with directory.recorded(Config.model_validate({"crawl": {"seeds": ["http://a.example/"]}})):
        pass
    (part,) = directory.parts
    part.hosts.parent.mkdir(parents=True, exist_ok=True)
    now = crawl_clock(directory).now()
    dues = {"soon.example": now + SOON_S / 2, "late.example": now + 2 * SOON_S, "rested.example": now - 1}
    with closing(HostBook(part.hosts)) as book:
        book.save_hosts(Host(key_of(name), name, name, due=due) for name, due in dues.items())
    with may_be_asked(directory) as asked:
        assert [name for name in dues if asked(f"http://{name}/")] == ["soon.example", "rested.example"]


def test_a_crawl_that_runs_is_not_measured(tmp_path: Path) -> None:
    directory = CrawlDirectory(tmp_path)
    with directory.recorded(Config.model_validate({"crawl": {"seeds": ["http://a.example/"]}})):
        pass
    directory.state.mkdir()
    held = lock(directory.supervised, "")
    told(3, ["cloak", str(tmp_path), "--as", "Firefox/140.0"], ["in use by a crawl"])
    os.close(held)


@pytest.mark.parametrize("name", ["\u00e9", "a\nb", "", " "])
def test_a_name_that_cannot_be_sent_begins_nothing(tmp_path: Path, name: str) -> None:
    directory = CrawlDirectory(tmp_path)
    with directory.recorded(Config.model_validate({"crawl": {"seeds": ["http://a.example/"]}})):
        pass
    told(2, ["cloak", str(tmp_path), "--as", name], ["--as"])
    assert not (tmp_path / "cloaking").exists()
