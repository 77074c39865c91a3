"""The plots of a report, each a figure with a title and a sentence.

`fyke.report.page` calls it. A plot with nothing to show is left out. Bounded: a plot has a bounded number of marks,
however large the crawl.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fyke.plots import BLUE, FAINT, GREEN, INK, ORANGE, RED, Floats
from fyke.quantities import count_mark, count_text, number, share_text, time_text
from fyke.report.drawing import canvas, svg
from fyke.report.shown import shown
from fyke.report.sql import Rows
from fyke.report.survey import DEEPEST, Survey

BARS = 9
LABEL_CHARS = 24
BINS_PER_DECADE = 8
LEGEND_IN = 0.3
TICKS = 5

_DAY_S = 86400
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, _DAY_S)


class Chart(NamedTuple):
    """A plot: its title, its meaning in a sentence, and the SVG element."""

    title: str
    sentence: str
    svg: str


def of_time(found: Survey) -> Iterator[Chart]:
    """Plot pages a second over the crawl."""
    if not found.stretches:
        return
    width, begin_s = found.width_s, found.totals.begin_s
    at = np.array([row[0] for row in found.stretches], np.int64)
    x = np.arange(at[-1] + 2) * width
    pages, visits = (np.zeros(len(x)) for _ in range(2))
    pages[at], visits[at] = ([row[column] / width for row in found.stretches] for column in (1, 2))
    figure, axes = canvas("", "a second", top_in=LEGEND_IN)
    for y, name, colour in ((visits, "visits", FAINT), (pages, "pages", BLUE)):
        axes.fill_between(x, y, step="post", color=colour, alpha=0.16, linewidth=0)
        axes.step(x, y, where="post", color=colour, linewidth=1.8, label=name)
    axes.set_xlim(0, x[-1])
    axes.set_ylim(0, float(visits.max()) * 1.06)
    ticks = clock_ticks(begin_s, begin_s + float(x[-1]))
    axes.set_xticks([at_s - begin_s for at_s, _ in ticks], [text for _, text in ticks])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    _legend(axes)
    sentence = f"Pages and all visits a second, in stretches of {time_text(width)}; times are UTC."
    yield Chart("Pages over time", sentence, svg(figure, "time"))


def clock_ticks(begin_s: float, end_s: float) -> list[tuple[float, str]]:
    """Return at most `TICKS` round times of the clock (UTC) from `begin_s` to `end_s`, as unix seconds and in words."""
    span_s = end_s - begin_s
    step_s = next((step for step in _STEPS_S if span_s / step <= TICKS), int(span_s / TICKS / _DAY_S + 1) * _DAY_S)
    form = (
        "%d %b" if step_s >= _DAY_S else "%d %b %H:%M" if span_s > _DAY_S else "%H:%M" if step_s >= 60 else "%H:%M:%S"
    )
    first = -(-begin_s // step_s) * step_s
    times = np.arange(first, end_s, step_s).tolist()
    return [(at_s, datetime.fromtimestamp(at_s, UTC).strftime(form)) for at_s in times]


def of_outcomes(found: Survey) -> Iterator[Chart]:
    """Plot the outcomes of visits."""
    rows = [(outcome.replace("_", " "), count) for outcome, count in found.outcomes]
    if rows:
        good = {"ok": BLUE, "redirected": GREEN, "robots forbade": FAINT}
        figure = _bars(rows, lambda name: good.get(name, RED))
        ok = found.totals.pages / found.totals.visits
        yield Chart("Outcomes of visits", f"{share_text(ok)} brought a page.", svg(figure, "outcomes"))


def of_media_types(found: Survey) -> Iterator[Chart]:
    """Plot media types of whole answers."""
    rows = [(name or "(none)", count) for name, count in found.media_types]
    if rows:
        figure = _bars(rows, lambda name: BLUE if "html" in name else ORANGE)
        yield Chart("Media types", "Of complete answers.", svg(figure, "types"))


def of_languages(rows: Rows, sample: int) -> Iterator[Chart]:
    """Plot languages of HTML pages."""
    if rows:
        figure = _bars([(name or "too little text", count) for name, count in rows], lambda name: BLUE)
        yield Chart("Languages", f"Of HTML pages, by a sample of {sample:,}.", svg(figure, "languages"))


def _bars(rows: Sequence[tuple[str, int]], colour: Callable[[str], str]) -> Figure:
    """Draw the largest of `rows` as horizontal bars, each with count and share; the others are one bar."""
    total = sum(count for _, count in rows)
    kept, others = list(rows[:BARS]), rows[BARS:]
    if others:
        kept.append((f"{len(others)} others", sum(count for _, count in others)))
    names = [shown(name, LABEL_CHARS) for name, _ in kept]
    left_in = 0.14 + 0.075 * max(map(len, names))
    figure, axes = canvas("", "", left_in=left_in, height_in=0.45 + 0.25 * max(2, len(kept)))
    counts = np.array([count for _, count in kept], np.float64)
    y = np.arange(len(kept))
    axes.barh(y, counts, 0.62, color=[colour(name) for name, _ in kept])
    for at, count in zip(y, counts, strict=True):
        text = f"{count:,.0f}  ({share_text(count / total)})"
        axes.annotate(text, (count, at), (5, 0), textcoords="offset points", va="center", fontsize=9.5, color=INK)
    axes.set_yticks(y, names, parse_math=False)
    axes.set_ylim(max(1.5, len(kept) - 0.5), -0.5)
    axes.set_xlim(0, float(counts.max()) * 1.62)
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    return figure


def of_sizes(found: Survey) -> Iterator[Chart]:
    """Plot sizes of pages, unpacked, in powers of two."""
    rows = [row for row in found.sizes if row[0] >= 0]
    if not rows:
        return
    first, last = rows[0][0], rows[-1][0]
    html, other = np.zeros(last - first + 1), np.zeros(last - first + 1)
    for power, pages, others in rows:
        html[power - first], other[power - first] = pages, others
    total = float(html.sum() + other.sum())
    x = np.arange(first, last + 1) + 0.5
    figure, axes = canvas("size, unpacked", "share of answers", top_in=LEGEND_IN)
    axes.axvspan(10, 15, color=FAINT, alpha=0.1, linewidth=0)
    axes.bar(x, html / total, 0.82, color=BLUE, label="HTML")
    axes.bar(x, other / total, 0.82, bottom=html / total, color=ORANGE, label="other")
    ticks = range(first, last + 2, 1 + (last - first) // 7)
    axes.set_xticks(list(ticks), [bytes_mark(power) for power in ticks])
    axes.set_xlim(min(first, 9) - 0.3, max(last + 1, 16) + 0.3)
    axes.set_ylim(0, float((html + other).max()) / total * 1.08)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: share_text(value)))
    _legend(axes)
    sentence = "On a logarithmic axis. Shaded: 1 to 32 kB, where 80 % of Mercator's documents were."
    yield Chart("Sizes", sentence, svg(figure, "sizes"))


def bytes_mark(power: int) -> str:
    """Return two to the `power` bytes, short."""
    units = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
    return f"{1 << power % 10} {units[power // 10]}"


def of_depth(found: Survey) -> Iterator[Chart]:
    """Plot pages by their links from a seed."""
    if not found.depths:
        return
    depth = np.array([row[0] for row in found.depths])
    pages = np.array([row[1] for row in found.depths], np.float64)
    figure, axes = canvas("links from a seed", "pages")
    axes.bar(depth, pages, 0.78, color=GREEN)
    axes.set_xlim(-0.7, max(5, depth[-1]) + 0.7)
    axes.set_ylim(0, float(pages.max()) * 1.1)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count_mark(value)))
    mean = float((depth * pages).sum() / pages.sum())
    deeper = f" The last bar is for {DEEPEST} and more." if depth[-1] == DEEPEST else ""
    yield Chart("Depth", f"A page was {number(mean)} links from a seed, on average.{deeper}", svg(figure, "depth"))


def of_degrees(degrees: Rows) -> Iterator[Chart]:
    """Plot domains by the number of others that link to them."""
    if len(degrees) < 2:
        return
    x, y = binned(np.array([row[0] for row in degrees], np.float64), np.array([row[1] for row in degrees], np.float64))
    figure, axes = canvas("other domains that link to it (in-degree)", "domains")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(x, y, "o", color=BLUE, markersize=5.5, markeredgewidth=0, alpha=0.85)
    axes.grid(which="minor", visible=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: count_mark(value)))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axes.set_xlim(0.8, max(12.0, float(x.max()) * 1.6))
    axes.set_ylim(min(0.8, float(y.min()) * 0.7), max(12.0, float(y.max()) * 1.8))
    total = sum(row[1] for row in degrees)
    sentence = f"Of {count_text(total)} domains with links from another; beyond ten, means of neighbouring degrees."
    yield Chart("Links between domains", sentence, svg(figure, "degrees"))


def binned(degree: Floats, domains: Floats) -> tuple[Floats, Floats]:
    """Return each degree up to ten as it is, and above means over growing ranges: [n] degrees, [n] domains a degree."""
    few = degree <= 10
    steps = max(1, int(np.ceil(BINS_PER_DECADE * np.log10((float(degree.max()) + 1) / 11))) + 1)
    edges = np.unique(np.round(11 * 10 ** (np.arange(steps + 1) / BINS_PER_DECADE)))
    place = np.digitize(degree[~few], edges) - 1
    mass = np.bincount(place, domains[~few], len(edges) - 1)
    moment = np.bincount(place, domains[~few] * degree[~few], len(edges) - 1)
    some = mass > 0
    return (
        np.append(degree[few], moment[some] / mass[some]),
        np.append(domains[few], mass[some] / np.diff(edges)[some]),
    )


def _legend(axes: Axes) -> None:
    axes.legend(
        frameon=False, loc="lower right", bbox_to_anchor=(1.01, 0.985), ncols=2, fontsize=9.5, labelcolor="linecolor",
        handlelength=1.1, borderpad=0.1, columnspacing=1.2,
    )  # fmt: skip
