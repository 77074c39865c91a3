"""What a person is told of agents that fail or die: one line, and the rest in files."""

import io
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_laws import children, processes_of
from rich.console import Console

from crawl.runs import command, crawl, ended, fyke, settings, wait_until
from crawl.small_site import small_site
from fyke.archive.directory import CrawlDirectory
from fyke.archive.division import Division
from fyke.archive.statistics import CrawlStatistics
from fyke.core.clock import SystemClock
from fyke.core.config import Config, CrawlSection
from fyke.crawl.forks import ForkServer
from fyke.crawl.known_agents import Stand
from fyke.crawl.loop import Ending
from fyke.crawl.member import Orders
from fyke.crawl.monitor import panel
from fyke.crawl.supervisor import Supervisor
from loaded import Loaded

BREAKS = """
from fyke.crawl.loop import Loop

def steps(self):
    raise ZeroDivisionError("a fault of our own")

Loop.steps = steps

class Module:
    media_types = ()

    def process(self, page):
        pass
"""


def test_a_fault_of_our_own_is_one_line_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "breaks.py").write_text(BREAKS)
    config = settings(tmp_path, plugins={"processors": ["breaks:Module"]})
    into = tmp_path / "crawl"
    with small_site() as site:
        done = subprocess.run(
            command(into, config, site.url, "--agents", "2"), capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (told,) = (line for line in done.stderr.splitlines() if line.startswith("fyke: "))  # others say how it stands
    assert "a fault of our own" in told
    file = next((into / "logs").glob("fault-*.txt"))
    assert "/logs/fault-" in told
    assert "Traceback" in file.read_text()


@contextmanager
def hanging(into: Path) -> Iterator[tuple[list[str], "subprocess.Popen[str]", threading.Event]]:
    """A command, and the crawl of twelve pages by two agents that it began: the last comes once the event is set."""
    with small_site(pages=12) as site:
        last = site.hang["/p3"] = threading.Event()
        typed = command(into, settings(into.parent), site.url, "--agents", "2")
        with Loaded(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as crawl:
            site.hanging.wait(60)
            try:
                yield typed, crawl, last
            finally:
                last.set()
                crawl.kill()


def test_an_agent_that_dies_is_in_the_log_and_the_crawl_goes_on(tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    with hanging(into) as (_, crawl, last):
        os.kill(processes_of(crawl.pid)[0], signal.SIGKILL)
        wait_until(lambda: '"died"' in (into / "logs" / "fyke.log").read_text())
        wait_until(lambda: "was started again" in fyke("status", str(into)).stdout)
        last.set()
        said, told = crawl.communicate(timeout=60)
        assert json.loads(said)["pages"] == 12
    events = [json.loads(line) for line in (into / "logs" / "fyke.log").read_text().splitlines()]
    (died,) = (event for event in events if event["event"] == "died")
    assert died["how"] == "signal 9"
    assert {event["agent"] for event in events if event["event"] == "begun"} == {0, 1}
    line = f"  agent {died['agents'][0]} died (signal 9), and was started again"
    assert line in told.splitlines() and line in fyke("status", str(into)).stdout.splitlines()
    assert json.loads(said)["deaths"] == {f"agent {died['agents'][0]}: signal 9": 1}


def test_an_agent_that_stands_still_keeps_nobody_from_ending_the_crawl(tmp_path: Path) -> None:
    with hanging(tmp_path / "crawl") as (typed, crawl, last):
        still = processes_of(crawl.pid)[0]
        os.kill(still, signal.SIGSTOP)
        crawl.send_signal(signal.SIGINT)
        said, told = crawl.communicate(timeout=60)
        last.set()
        assert json.loads(said)["ending"] == "stopped", told
        assert not Path(f"/proc/{still}/exe").exists()
        done = ended(typed)
        assert json.loads(done.stdout)["pages"] == 12, done.stderr


def test_the_panel_says_which_agents_died() -> None:
    now = CrawlStatistics(deaths={"agent 1: signal 9": 1, "agents 0, 2: exit status 1": 3})
    console = Console(width=92, file=io.StringIO())
    console.print(panel(CrawlSection(), now, (0.0, 0.0), 0.0, 92, "http://example.org/"))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "agent 1 died (signal 9), and was started again" in shown
    assert "agents 0, 2 died (exit status 1), 3 times, and were started again" in shown


def test_a_crawl_that_goes_on_stands_where_it_stopped_before_its_agents_say_so(tmp_path: Path) -> None:
    """Else the panel would take all pages of before for pages of its first second."""
    config, into = settings(tmp_path), tmp_path / "crawl"
    with small_site(pages=12) as site:
        assert crawl(into, config, site.url, "--agents", "2", "--pages", "5").summary["pages"] == 5
    directory = CrawlDirectory(into)
    with ForkServer() as forks:
        stands = Supervisor(
            directory, directory.config(), Division(2, 2), 2, Orders("none", moved=False), forks
        ).statistics()
    assert stands.pages == 5
    assert not stands.elapsed_s


def test_what_waits_for_hosts_that_rest_for_long_ends_the_crawl_as_with_one_agent(tmp_path: Path) -> None:
    """The visits have gone back to their shards, to sleep on disk; and they are made when the crawl goes on then."""
    config, into = settings(tmp_path, politeness={"max_sleep_s": 7200.0}), tmp_path / "crawl"
    with small_site(pages=12) as site:
        site.answers["/p2"] = 503, {"Retry-After": "3600"}, b""
        done = crawl(into, config, site.url, "--agents", "2", "--wait", "1s")
    assert done.summary["ending"] == "resting", done.errors
    assert done.summary["waiting"] > 0


def test_how_long_hosts_rest_is_judged_by_the_clock_of_the_crawl(tmp_path: Path) -> None:
    """It was years ahead when the crawl began, and the wall's is right again."""
    noted = SystemClock().noted()
    noted["taken_at"] += 10 * 365.25 * 86400
    directory = CrawlDirectory(tmp_path)
    with directory.recorded(Config()), ForkServer() as forks:
        crawling = Supervisor(directory, Config(), Division(2, 2), 2, Orders("none", moved=False, clock=noted), forks)
    for rest_s, ending in ((100.0, None), (1e6, Ending.RESTING)):
        stand = Stand(
            idle=True, level_done=False, rests_until=noted["taken_at"] + rest_s, activity=0, unsafe_letters=0, later=0,
            level=0, blocked=0, checkpoints=1, answered=True, hosts=1, unreached=False, pages=0, pages_left=-1,
            waiting=0, resting=True,
        )  # fmt: skip
        for _ in range(2):
            crawling._judge([stand, stand])
        assert crawling._ending is ending


def test_a_crawl_whose_agents_could_not_be_started_again_ends_before_one_must_be(tmp_path: Path) -> None:
    """Its agents live and take checkpoints, so the same command asks again only for the page that was under way."""
    with small_site(pages=12) as site:
        last = site.hang["/p3"] = threading.Event()
        typed = command(tmp_path / "crawl", settings(tmp_path), site.url, "--agents", "2")
        with Loaded(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as crawl:
            assert site.hanging.wait(60)
            agents = processes_of(crawl.pid)
            (forks,) = children(crawl.pid)
            os.kill(forks, signal.SIGKILL)
            _, told = crawl.communicate(timeout=25)
        assert not last.is_set() and crawl.returncode == 1, told
        (line,) = (line for line in told.splitlines() if line.startswith("fyke: "))
        assert line.startswith("fyke: the process that starts agents is gone") and "goes on" in line
        assert "Traceback" not in told
        wait_until(lambda: not any(Path(f"/proc/{process}/exe").exists() for process in agents))
        last.set()
        done = ended(typed)
        assert json.loads(done.stdout)["pages"] == 12, done.stderr
        assert {path for path, count in site.asked.items() if count > 1} <= {"/p3", "/robots.txt"}


def test_nobody_outlives_the_supervisor(tmp_path: Path) -> None:
    """Not the fork server, and not the agents that it started."""
    with hanging(tmp_path / "crawl") as (_, crawl, _):
        others = [*children(crawl.pid), *processes_of(crawl.pid)]
        assert len(others) == 3
        crawl.kill()
        crawl.wait()
        wait_until(lambda: not any(Path(f"/proc/{process}/exe").exists() for process in others))


def test_an_agent_that_cannot_be_started_again_ends_the_crawl_in_one_line(tmp_path: Path) -> None:
    """Its fork server was killed too; the other agent ends, and the crawl goes on by the same command."""
    with hanging(tmp_path / "crawl") as (typed, crawl, last):
        agents = processes_of(crawl.pid)
        for process in (*children(crawl.pid), agents[0]):
            os.kill(process, signal.SIGKILL)
        _, told = crawl.communicate(timeout=60)
        last.set()
        assert crawl.returncode == 1
        assert "Traceback" not in told
        assert [line for line in told.splitlines() if line.startswith("fyke: the process that starts agents is gone")]
        wait_until(lambda: not any(Path(f"/proc/{process}/exe").exists() for process in agents))
        done = ended(typed)
        assert json.loads(done.stdout)["pages"] == 12
