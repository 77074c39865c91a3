"""The whole job, Fyke against every installed crawler: crawl a web, all in one run, one after the other.

    make bench        or        .venv/bin/python benches/race.py [WEB] [--only NAME]... [--pages N] [--rounds N]

WEB is one of `webs`: plain, broad, today or endless. The crawler has one core; nginx and the watcher have another.
Pages are different URLs with status 200 in the server's log. CPU is that of the crawler's whole tree of processes,
until all of it has ended. Memory is the tree's peak resident memory. Slow crawlers are stopped after fewer pages. A
crawler without a limit of pages is stopped from outside when it has fetched them. Fyke's figures include its end, when
all is made safe. Its table of links is off, as none of the others keeps one. The ratio is what counts.

With `--rounds` crawlers take turns, and each crawler's run with the median CPU a page is shown. `--list` prints the
crawlers, their settings, which are installed, and how to get the others.
"""

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from peers import FYKE, PEERS, Course, Peer
from webs import made, size_of
from webs.alone import go_alone
from webs.known import WEBS
from webs.serving import CRAWLER_CORE, SERVER_CORE, Served, Tally, served

_PR_SET_CHILD_SUBREAPER = 36
_GLANCE_S = 0.1
_LONGEST_S = 600
_SILENCE_S = 30  # without a page, after which a crawler counts as done


class FetchedNothing(Exception):
    """A crawler is installed but fetched no page."""


@dataclass(frozen=True, slots=True)
class Run:
    """The result and the cost of a crawl."""

    tally: Tally
    seconds: float  # from its start to its end
    cpu_s: float
    peak_bytes: int
    urls: list[str] = field(repr=False)  # of the pages, without their scheme

    @property
    def cpu_us(self) -> float:
        """CPU a page, in µs."""
        return self.cpu_s / self.tally.pages * 1e6


def adopt_orphans() -> None:
    """Become the parent of every process that a crawler leaves running, so that its CPU is counted when it ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def run(peer: Peer, web: Served, pages: int, longest_s: float) -> Run:
    """Let `peer` crawl `web`, at most `pages` pages. Raises FetchedNothing."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, web.counted() as log:
        folder = Path(name)
        course = Course(web.web.first_page, pages, folder, web.settings, web.ca)
        environment = os.environ | {"HOME": name} | ({"SSL_CERT_FILE": web.ca} if web.ca else {})
        with (folder / "said").open("wb") as said:
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            processes = Processes()
            crawler = subprocess.Popen(
                [*peer.program(), *peer.command(course)], stdout=said, stderr=said, cwd=folder, env=environment,
                preexec_fn=lambda: os.sched_setaffinity(0, {CRAWLER_CORE}),
            )  # fmt: skip
            peak_bytes = watch(crawler, processes, log.read, None if peer.ends_itself else pages, longest_s)
            processes.end(crawler)
            seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        tally, urls = log.read(), log.urls()
        if not tally.pages:
            said_last = (folder / "said").read_text(errors="replace").strip().splitlines()[-1:]
            raise FetchedNothing(f"{peer.name} fetched nothing: {''.join(said_last) or 'it said nothing'}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(tally, seconds, cpu_s, peak_bytes, urls)


class Processes:
    """All processes of a crawler: our new children since the start."""

    def __init__(self) -> None:
        self._others = {process.pid for process in psutil.Process().children(recursive=True)}

    def all(self) -> list[psutil.Process]:
        return [process for process in psutil.Process().children(recursive=True) if process.pid not in self._others]

    def resident_bytes(self) -> int:
        """Return the memory of all together."""
        total = 0
        for process in self.all():
            with suppress(psutil.Error):
                total += process.memory_info().rss
        return total

    def end(self, crawler: "subprocess.Popen[bytes]") -> None:
        """End all and wait for them, so that their CPU is known."""
        while processes := self.all():
            for process in processes:
                with suppress(psutil.Error):
                    process.kill()
            crawler.wait()
            for process in processes:
                with suppress(psutil.Error):
                    process.wait()


def watch(
    crawler: "subprocess.Popen[bytes]",
    processes: Processes,
    fetched: Callable[[], Tally],
    most: int | None,
    longest_s: float,
) -> int:
    """Wait until it ends, has fetched `most` pages, takes too long or falls silent; return its peak bytes."""
    peak_bytes, pages, heard_at = 0, 0, time.monotonic()
    until = heard_at + longest_s
    while crawler.poll() is None and time.monotonic() < until:
        peak_bytes = max(peak_bytes, processes.resident_bytes())
        now = fetched().pages
        if now != pages:
            pages, heard_at = now, time.monotonic()
        if (most is not None and pages >= most) or time.monotonic() - heard_at > _SILENCE_S:
            break
        time.sleep(_GLANCE_S)
    return peak_bytes


def median(runs: Sequence[Run]) -> Run:
    """Return the middle run by CPU a page."""
    return sorted(runs, key=lambda run: run.cpu_us)[len(runs) // 2]


def table(rows: dict[Peer, Run]) -> str:
    """Return the race as Markdown, least CPU a page first, and the politeness that the server saw."""
    ours = rows.get(FYKE)
    lines = ["| crawler | pages | pages/s | CPU µs a page | of Fyke's | peak memory | what it does without |"]
    lines.append("|---|---:|---:|---:|---:|---:|---|")
    for peer, row in sorted(rows.items(), key=lambda item: item[1].cpu_us):
        ratio = f"{row.cpu_us / ours.cpu_us:.2f}" if ours else ""
        lines.append(
            f"| {peer.name} | {row.tally.pages:,} | {row.tally.pages / row.seconds:,.0f} | {row.cpu_us:,.0f} | {ratio}"
            f" | {row.peak_bytes / 1e6:,.0f} MB | {peer.lacks or '–'} |"
        )
    for peer, row in rows.items():
        told = row.tally
        seen = f"{told.robots:,} robots.txt read, {told.forbidden:,} forbidden URLs, {told.again:,} pages again"
        lines.append(f"{peer.name}: {seen}, {told.missing:,} other answers")
    return "\n".join(lines)


def say_who() -> None:
    """Print which crawlers are raced, and how."""
    somewhere = Course("SEED", 1000, Path("FOLDER"), Path("SETTINGS"), "")
    for peer in PEERS.values():
        program = peer.program()
        how = " ".join([*program, *peer.command(somewhere)]) if program else f"not installed: {peer.get}"
        print(f"{peer.name}: {how}\n    does without: {peer.lacks or 'nothing'}")


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("web", nargs="?", choices=WEBS, default="plain")
    parser.add_argument("--only", action="append", choices=PEERS, help="race these; again for more")
    parser.add_argument("--pages", type=int, help="a short race, on a web of so many")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=_LONGEST_S, help="the longest that a crawl may take")
    parser.add_argument("--into", type=Path, help="where webs are kept")
    parser.add_argument("--list", action="store_true", help="say who is raced, and how")
    return parser.parse_args()


def main() -> None:
    wanted = asked()
    if wanted.list:
        say_who()
        return
    web = WEBS[wanted.web]
    files = made(web, size_of(web, wanted.pages), wanted.into)
    go_alone()
    adopt_orphans()
    os.sched_setaffinity(0, {SERVER_CORE})
    most = wanted.pages or web.pages
    racing = [PEERS[name] for name in wanted.only or PEERS]
    runs: dict[Peer, list[Run]] = {peer: [] for peer in racing if peer.program()}
    with tempfile.TemporaryDirectory() as name, served(web, files, Path(name)) as up:
        for _ in range(wanted.rounds):
            for peer, taken in runs.items():
                try:
                    last = run(peer, up, min(most, peer.pages), wanted.seconds)
                except FetchedNothing as failure:
                    print(failure, file=sys.stderr)
                    continue
                taken.append(last)
                print(f"{peer.name}: {last.tally.pages:,} pages, {last.cpu_us:,.0f} µs a page", file=sys.stderr)
    print(table({peer: median(taken) for peer, taken in runs.items() if taken}))
    for peer in racing:
        if not peer.program():
            print(f"{peer.name}: not installed; {peer.get}")


if __name__ == "__main__":
    main()
