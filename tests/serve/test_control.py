"""A running crawl as another process sees and steers it, by the socket alone."""

import json
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from crawl.runs import archived, begin, fyke, settings, wait_for
from crawl.small_site import SmallSite, small_site
from fyke.archive.asked import AskedLater
from fyke.archive.directory import CrawlDirectory
from fyke.archive.orders import SOCKET, bound, connected
from fyke.core.errors import StateDamaged
from fyke.explain import why
from fyke.serve.dashboard import QUEUES
from serve.kit import TOKEN, client

Order = dict[str, Any]


class Line:
    """A connection to the crawl in `into`."""

    def __init__(self, into: Path) -> None:
        path = into / "state" / SOCKET
        wait_for(path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(15)
        end = time.monotonic() + 15
        while True:
            try:
                self._socket.connect(str(path))
                break
            except (
                ConnectionRefusedError,
                FileNotFoundError,
            ):  # about to listen, or a killed run's, about to be replaced
                if time.monotonic() > end:
                    self._socket.close()
                    raise
                time.sleep(0.01)
        self._file = self._socket.makefile("rwb")

    def hear(self) -> Order:
        return dict(json.loads(self._file.readline()))

    def figures(self) -> Order:
        while True:
            said = self.hear()
            if "figures" in said:
                return dict(said["figures"])

    def until(self, true: Any, timeout_s: float = 15) -> Order:
        """The first figures of which `true` holds."""
        end = time.monotonic() + timeout_s
        while not true(now := self.figures()):
            assert time.monotonic() < end, now
        return now

    def order(self, do: str, **more: Any) -> tuple[bool, Any]:
        self.send(json.dumps({"do": do, "id": 7, **more}).encode() + b"\n")
        while True:
            said = self.hear()
            if said.get("id") == 7:
                return said["ok"], said["said"]

    def send(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        with suppress(OSError):  # it was dropped: what was not sent cannot be
            self._file.close()
        self._socket.close()


@contextmanager
def running(
    tmp_path: Path, site: SmallSite, *more: str, checkpoint_s: float = 0.5
) -> Iterator[tuple[Path, Line, "subprocess.Popen[bytes]"]]:
    into = tmp_path / "crawl"
    slow = settings(tmp_path, politeness={"address_delay_s": 0.07}, store={"checkpoint_s": checkpoint_s})
    process = begin(into, slow, site.url, *more)
    try:
        line = Line(into)
        yield into, line, process
        line.close()
    finally:
        process.terminate()
        process.wait(20)


def test_figures_pause_resume_stop(tmp_path: Path) -> None:
    with small_site(pages=400) as site, running(tmp_path, site) as (into, line, process):
        mode = (into / "state" / SOCKET).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
        now = line.until(lambda now: now["statistics"]["pages"] > 5)
        assert now["held"] is False and list(now["queues"]) == list(QUEUES)  # the dashboard names each
        assert now["slowest"][0]["host"] == "127.0.0.1"
        assert line.order("pause")[0]
        line.until(lambda now: now["held"] and not now["statistics"]["in_flight"])
        asked = sum(site.asked.values())
        line.figures()
        line.figures()
        assert sum(site.asked.values()) == asked  # not one request
        assert line.order("resume")[0]
        line.until(lambda now: not now["held"] and sum(site.asked.values()) > asked)
        ok, host = line.order("host", host=site.url)
        assert ok and host["host"] == "127.0.0.1" and host["waiting"]
        assert line.order("stop")[0]
        assert process.wait(15) == 130
        assert not (into / "state" / SOCKET).exists()


@pytest.mark.parametrize("agents", ["1", "2"])
def test_status_says_what_a_running_crawl_says_and_not_what_its_checkpoint_did(tmp_path: Path, agents: str) -> None:
    with (
        small_site(pages=400) as site,
        running(tmp_path, site, "--agents", agents, checkpoint_s=600) as (into, line, _),
    ):
        line.until(lambda now: now["statistics"]["pages"] > 5, timeout_s=30)
        assert json.loads(fyke("status", str(into), "--json").stdout)["pages"] > 5
        assert ": running\n" in fyke("status", str(into)).stdout


def test_orders_that_are_none(tmp_path: Path) -> None:
    with small_site(pages=400) as site, running(tmp_path, site) as (_, line, process):
        for nonsense in (
            b"\n",
            b"[]\n",
            b"{\n",
            b'{"do": "dance"}\n',
            b"null\n",
            b'{"do": ["x"]}\n',
            b"\xff\n",
            b"[" * 9999 + b"\n",
        ):
            line.send(nonsense)
            said = line.hear()
            while "figures" in said:
                said = line.hear()
            assert said["ok"] is False, nonsense
        for order in (
            {"do": "seeds"},
            {"do": "seeds", "urls": []},
            {"do": "seeds", "urls": ["http://["]},
            {"do": "block"},
        ):
            ok, said = line.order(**order)
            assert not ok and said, order
        assert process.poll() is None
        pages = line.figures()["statistics"]["pages"]
        line.until(lambda now: now["statistics"]["pages"] > pages)


def test_who_does_not_read_is_dropped(tmp_path: Path) -> None:
    with small_site(pages=400) as site, running(tmp_path, site) as (into, line, _):
        for piece in (b'{"do": "host", "host": "127.0.0.1", "id": "' + b"x" * 100_000 + b'"}\n', b"x" * 100_000):
            deaf = Line(into)
            with pytest.raises(OSError):
                for _ in range(400):
                    deaf.send(piece)
            deaf.close()
            assert line.figures()


def test_seeds_are_kept(tmp_path: Path) -> None:
    """A seed of another host widens the scope; a kill at once loses neither."""
    with small_site(pages=40) as site, small_site(pages=8, host="127.0.0.2") as other:
        with running(tmp_path, site) as (into, line, process):
            line.until(lambda now: now["statistics"]["pages"] > 2)
            line.order("pause")
            assert line.order("seeds", urls=[other.url]) == (True, "1 seed added")
            assert line.order("seeds", urls=[other.url, site.url]) == (True, "0 seeds added")
            process.kill()
            process.wait()
        done = fyke("crawl", "--into", str(into), site.url)  # the command of the beginning goes on
        assert done.returncode == 0, done.stderr
        assert set(archived(into)) == site.all_urls() | other.all_urls()
        assert why(CrawlDirectory(into), f"{other.url}p7").verdict.startswith("fetched")


def test_blocked_hosts_wait_and_lose_nothing(tmp_path: Path) -> None:
    with small_site(pages=60) as site, small_site(pages=90, host="127.0.0.2") as other:
        with running(tmp_path, site, other.url) as (into, line, process):
            line.until(lambda now: other.asked.total() > 4)
            assert line.order("block", host=other.url) == (True, "127.0.0.2 is blocked")
            asked = other.asked.total()
            now = line.until(lambda now: now["queues"]["blocked"])
            assert now["blocked"] == ["127.0.0.2"]
            assert process.wait(15) == 0  # nothing else is left
            assert other.asked.total() <= asked + 1  # the one that was under way
        told = why(CrawlDirectory(into), next(url for url in other.all_urls() if url not in archived(into)))
        assert "is blocked" in " ".join(told.facts)


def test_a_block_outlives_a_restart(tmp_path: Path) -> None:
    """After kill and restart nothing is requested of a blocked host, until it is unblocked; then all of it is there."""
    with small_site(pages=110) as site, small_site(pages=60, host="127.0.0.2") as other:
        with running(tmp_path, site, other.url) as (into, line, process):
            line.until(lambda now: other.asked.total() > 3)
            line.order("block", host="127.0.0.2")
            line.until(lambda now: now["queues"]["blocked"])
            process.kill()
            process.wait()
        asked = other.asked.total()
        with running(tmp_path, site, other.url) as (into, line, process):
            line.until(lambda now: now["queues"]["blocked"])
            assert other.asked.total() == asked
            line.order("pause")
            freed = fyke("unblock", str(into), "127.0.0.2")
            assert freed.returncode == 0 and "of its URLs go on" in freed.stdout, freed
            line.order("resume")
            assert process.wait(20) == 0
        assert set(archived(into)) == site.all_urls() | other.all_urls()
        assert len(archived(into)) == len(set(archived(into)))


async def test_paths_longer_than_a_socket_address(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    listening = bound(folder)
    assert (folder / SOCKET).exists()
    listening.listen()
    async with connected(folder):
        pass
    listening.close()
    again = bound(folder)  # in place of what was left
    again.close()


def test_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "asked.json").write_text('{"seeds": 3')
    with pytest.raises(StateDamaged, match=r"asked\.json is damaged"):
        AskedLater(tmp_path)


def test_a_crawl_with_nothing_but_blocked_work_waits_for_it(tmp_path: Path) -> None:
    """It ends and says so; the same command goes on waiting, and all of the host comes once the block is taken back."""
    with small_site(pages=250) as site, running(tmp_path, site) as (into, line, process):
        line.until(lambda now: site.asked.total() > 4)
        done = fyke("block", str(into), site.url)
        assert done.returncode == 0 and done.stdout.startswith("127.0.0.1 is blocked"), done.stderr
        assert process.wait(15) == 0
        asked = site.asked.total()
        told = fyke("status", str(into))
        assert f"{into}: blocked" in told.stdout and "on blocked hosts" in told.stdout and "127.0.0.1" in told.stdout
        waiting = next(url for url in site.all_urls() if url not in archived(into))
        said = fyke("why", str(into), f"{site.url}p59" if f"{site.url}p59" == waiting else waiting).stdout
        assert f"fyke unblock {into} 127.0.0.1" in said, said

        again = fyke("crawl", "--into", str(into), "--json")
        assert again.returncode == 0 and json.loads(again.stdout)["ending"] == "blocked"
        assert f"fyke unblock {into} 127.0.0.1" in again.stderr, again.stderr
        assert site.asked.total() == asked

        freed = fyke("unblock", str(into), "127.0.0.1")
        assert freed.returncode == 0 and f"fyke crawl --into {into} goes on" in freed.stdout, freed
        assert fyke("status", str(into)).stdout.startswith(f"{into}: stopped")
        done = fyke("crawl", "--into", str(into), "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["ending"] == "finished", done.stderr
        assert sorted(archived(into)) == sorted(site.all_urls())


def test_a_block_before_the_next_run(tmp_path: Path) -> None:
    """While no crawl runs a host is blocked and freed as well, durably; what makes no sense is one line."""
    with small_site(pages=20) as site, small_site(pages=10, host="127.0.0.2") as other:
        with running(tmp_path, site, other.url) as (into, line, process):
            line.until(lambda now: other.asked.total() > 2)
            process.kill()
            process.wait()
        asked = other.asked.total()
        assert fyke("block", str(into), other.url).returncode == 0
        assert "already blocked" in fyke("block", str(into), other.url).stdout
        assert AskedLater(into / "state").blocked == ["127.0.0.2"]
        done = fyke("crawl", "--into", str(into), "--json")
        assert json.loads(done.stdout)["ending"] == "blocked", done.stderr
        assert other.asked.total() == asked and set(archived(into)) >= site.all_urls()
        assert "was not blocked" in fyke("unblock", str(into), "127.0.0.9").stdout
        for arguments in ((str(tmp_path / "none"), "127.0.0.2"), (str(into), "http://[")):
            wrong = fyke("unblock", *arguments)
            assert wrong.returncode and len(wrong.stderr.splitlines()) == 1, wrong
        with client(into) as asking:  # the dashboard's button does it as well
            order, headers = {"do": "unblock", "host": "127.0.0.2"}, {"X-Fyke-Token": TOKEN}
            answer = asking.post("/crawl/crawl/order", json=order, headers=headers)
        assert answer.status_code == 200 and "127.0.0.2 is no longer blocked" in answer.text
        done = fyke("crawl", "--into", str(into), "--json")
        assert json.loads(done.stdout)["ending"] == "finished", done.stderr
        assert sorted(archived(into)) == sorted(site.all_urls() | other.all_urls())
