"""What a person sees while a crawl runs: one live panel on a terminal, plain lines in a pipe.

Watches an agent from a task of its own, beside the loop; it only reads `statistics()`. Rates are over the last few
seconds, so that they show what is happening now.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import islice

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fyke.archive.statistics import CrawlStatistics
from fyke.core.config import CrawlSection
from fyke.quantities import counted, duration, share_text, size

PANEL_S = 0.5
LINE_S = 5.0
WINDOW_S = 10.0
PANEL_COLUMNS = 92  # if there is room; fixed, so that nothing jumps when a number grows
FIGURE_COLUMNS = 30
DEATHS_SHOWN = 3
REST_TOLD_S = 3.0  # a shorter rest of all hosts is everyday politeness

_GOOD = ("ok", "redirected")


class Rates:
    """Pages and bytes a second over the last `WINDOW_S` seconds."""

    def __init__(self, begin: CrawlStatistics) -> None:
        self._samples = deque([(begin.elapsed_s, begin.pages, begin.bytes)])

    def add(self, now: CrawlStatistics) -> tuple[float, float]:
        """Return pages/s and bytes/s up to `now`."""
        self._samples.append((now.elapsed_s, now.pages, now.bytes))
        while len(self._samples) > 2 and self._samples[1][0] <= now.elapsed_s - WINDOW_S:
            self._samples.popleft()
        first = self._samples[0]
        span = now.elapsed_s - first[0]
        if span <= 0:
            return 0.0, 0.0
        return (now.pages - first[1]) / span, (now.bytes - first[2]) / span


def left_s(asked: CrawlSection, now: CrawlStatistics, pages_s: float) -> float | None:
    """Return the seconds until a limit ends the crawl; None if no limit tells."""
    lefts = []
    if asked.for_s:
        lefts.append(asked.for_s - now.elapsed_s)
    if asked.pages and pages_s > 0:
        lefts.append((asked.pages - now.pages) / pages_s)
    if asked.bytes and now.bytes and now.elapsed_s > 0:
        lefts.append((asked.bytes - now.bytes) * now.total_s / now.bytes)
    return max(0.0, min(lefts)) if lefts else None


def progress(asked: CrawlSection, now: CrawlStatistics) -> tuple[float, float]:
    """Return how much is done, and of how much: of a limit of pages, seconds or bytes, otherwise of the URLs known so
    far."""
    if asked.pages:
        return now.pages, asked.pages
    if asked.for_s:
        return now.elapsed_s, asked.for_s
    if asked.bytes:
        return now.bytes, asked.bytes
    return now.visits, max(1, now.visits + now.waiting)


ENDED = {  # by the ending of a crawl
    "finished": "finished: nothing is left to fetch",
    "resting": "all remaining hosts rest for long",
    "blocked": "blocked: all remaining URLs are on blocked hosts",
    "pages": "reached the limit of pages",
    "bytes": "reached the limit of bytes",
    "time": "reached the limit of time",
    "stopped": "stopped",
    "unreached": "could reach nothing",
}


def resting(now: CrawlStatistics, at: float) -> str:
    """Say that all hosts rest, and until when, seen at unix second `at`; empty if one does not, or not for long."""
    left = now.rest_until - at
    if left < REST_TOLD_S:
        return ""
    return f"all hosts rest until {datetime.fromtimestamp(now.rest_until):%H:%M:%S}, {duration(left)} from now"


def deaths_in_words(deaths: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each: which agent died, of what, and that it was started again."""
    for which, count in deaths.items():
        who, _, how = which.partition(": ")
        times = f", {count:,} times" if count > 1 else ""
        yield f"{who} died ({how}){times}, and {'were' if ',' in who else 'was'} started again"


def seeds_in_words(first: str, count: int) -> str:
    """Return where a crawl with `count` seeds begins, in words."""
    return f"{first} and {count - 1:,} more" if count > 1 else first


def panel(
    asked: CrawlSection, now: CrawlStatistics, rates: tuple[float, float], at: float, columns: int, seeds: str
) -> Panel:
    """Return the panel as of unix second `at`, for a terminal of `columns`; `seeds` in words."""
    width = min(PANEL_COLUMNS, columns)
    parts: list[Text | Table | ProgressBar] = [_figures(now, rates, max(1, (width - 2) // FIGURE_COLUMNS))]
    faults = {kind: count for kind, count in now.outcomes.items() if kind not in _GOOD}
    if faults:
        top = sorted(faults.items(), key=lambda item: -item[1])[:6]
        parts.append(Text("  ".join(f"{kind.replace('_', ' ')} {count:,}" for kind, count in top), style="yellow"))
    if rest := resting(now, at):
        parts.append(Text(rest, style="cyan"))
    parts += [Text(one, style="red") for one in islice(deaths_in_words(now.deaths), DEATHS_SHOWN)]
    left = left_s(asked, now, rates[0])
    done, of = progress(asked, now)
    bar = ProgressBar(total=of, completed=min(done, of))
    foot = f"{duration(now.elapsed_s)}" + (f", about {duration(left)} left" if left is not None else "")
    if width >= PANEL_COLUMNS:
        return Panel(
            Group(*parts, bar),
            title=Text(f"fyke  {seeds}"),
            subtitle=f"{foot}   Ctrl-C stops; the same command resumes",
            width=width,
        )
    parts.append(Text(f"{foot}\nCtrl-C stops; the same command resumes", style="dim"))
    return Panel(Group(Text(seeds, overflow="ellipsis", no_wrap=True), *parts, bar), title="fyke", width=width)


def _figures(now: CrawlStatistics, rates: tuple[float, float], across: int) -> Table:
    """Return the figures with their names, `across` in a row; in a single column those that say least are left out."""
    pages_s, bytes_s = rates
    figures = [
        (f"{now.pages:,}", "pages"), (f"{pages_s:,.1f}", "pages/s"), (f"{bytes_s / 1e6:,.2f}", "MB/s"),
        (f"{now.waiting:,}", "waiting"), (f"{now.in_flight:,}", "under way"), (size(now.bytes), "fetched"),
        (f"{now.hosts - now.hosts_asleep:,}", "hosts awake"), (f"{now.hosts_asleep:,}", "resting"),
        (size(now.memory_bytes), "memory"),
        (f"{now.urls:,}", "URLs seen"), (f"{now.links:,}", "links found"), (size(now.archive_bytes), "archived"),
    ]  # fmt: skip
    if now.domains > 1:
        figures += [
            (f"{now.domains:,}", "domains"),
            (f"{now.over_budget:,}", "over budget"),
            (f"{now.without_rules:,}", "await robots"),
        ]
    if now.freshness is not None and now.again is not None:
        figures += [
            (share_text(now.freshness.fresh), "fresh"),
            (f"{now.freshness.due:,}", "due"),
            (f"{now.again.changed:,}", "changed"),
            (f"{now.again.unchanged:,}", "unchanged"),
            (f"{now.again.new:,}", "new"),
            (f"{now.again.gone:,}", "gone"),
        ]
    if across == 1:
        figures = [figure for figure in figures if figure[1] not in ("MB/s", "links found", "archived", "await robots")]
    grid = Table.grid(padding=(0, 1))
    for _ in range(across):
        grid.add_column(justify="right", style="bold", width=13)
        grid.add_column(justify="left", style="dim", width=14)
    for first in range(0, len(figures), across):
        grid.add_row(*(word for figure in figures[first : first + across] for word in figure))
    return grid


def line(asked: CrawlSection, now: CrawlStatistics, rates: tuple[float, float], at: float) -> str:
    """Return the panel's figures in one line, for pipes and logs."""
    pages_s, bytes_s = rates
    left = left_s(asked, now, pages_s)
    rest = resting(now, at)
    return (
        f"{duration(now.elapsed_s)}  {counted(now.pages, 'page')}  {pages_s:.1f} pages/s  {bytes_s / 1e6:.2f} MB/s  "
        f"{now.waiting} waiting  {counted(now.hosts, 'host')}  {now.failed} failed  {size(now.memory_bytes)} memory"
        + (f"  {duration(left)} left" if left is not None else "")
        + (f"  {rest}" if rest else "")
        + "".join(f"  {one}" for one in islice(deaths_in_words(now.deaths), DEATHS_SHOWN))
    )


class Monitor:
    """Shows `read()` on `console` until cancelled."""

    def __init__(self, read: Callable[[], CrawlStatistics], asked: CrawlSection, console: Console, seeds: str) -> None:
        """`seeds`: where the crawl begins, in words."""
        self._read = read
        self._seeds = seeds
        self._asked = asked
        self._console = console
        self._rates = Rates(read())

    async def run(self) -> None:
        if self._console.is_terminal:
            await self._live()
        else:
            await self._lines()

    async def _live(self) -> None:
        with Live(self._picture(), console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                await asyncio.sleep(PANEL_S)
                live.update(self._picture(), refresh=True)

    def _picture(self) -> Panel:
        now = self._read()
        return panel(self._asked, now, self._rates.add(now), time.time(), self._console.width, self._seeds)

    async def _lines(self) -> None:
        while True:
            await asyncio.sleep(LINE_S)
            now = self._read()
            self._console.print(
                line(self._asked, now, self._rates.add(now), time.time()), highlight=False, soft_wrap=True
            )
