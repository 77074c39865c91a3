"""The figure of a plan: the cost of URL checks and domain budgets for crawls of every size, with the asked one marked.

`fyke plan --plot` draws it. Both panels are log-log over the number of pages, from 10^7 to 10^13, or further if more
were asked for. Invariant: the curves are the functions of `fyke.lab.plan.model`; only the pages vary from the
question.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from fyke.lab.plan.model import beast_bytes_s, least_overhead, naive_budget_bytes_s, sustained_pages_s
from fyke.lab.plan.planner import OVERHEADS, Plan
from fyke.lab.plan.question import Question
from fyke.plots import BLUE, FAINT, GREEN, INK, ORANGE, RED, Floats, dress, mark_points, name_curve, note, panels
from fyke.quantities import bytes_text, count_mark, count_text, number, share_text, speed_text

SAMPLES = 241
COLOURS = {"DRUM": BLUE, "Mercator-B": ORANGE, "Polybot": RED}


def draw(plan: Plan) -> Figure:
    """Draw the figure of `plan`: the cost of URL checks to the left, of budgets to the right."""
    question = plan.question
    subtitle = (
        f"{bytes_text(question.memory_bytes)} of memory, {_buckets(question)}, {share_text(question.check_share)} of a"
        f" disk of {speed_text(question.disk_bytes_s)}, {number(question.links_per_page)} links a page;"
        f" asked for: {count_text(question.pages)} pages at {number(question.pages_s)} pages/s"
    )
    figure, (checks, budgets) = panels(
        2, "What a crawl costs the disk as it grows", subtitle, width_in=13.6, height_in=6.2
    )
    pages = _pages(question)
    _draw_checks(checks, question, pages)
    _draw_budgets(budgets, plan, pages)
    return figure


def _buckets(question: Question) -> str:
    if question.given_bucket_bytes is not None:
        return f"{bytes_text(question.given_bucket_bytes)} of buckets"
    return "buckets that grow with the crawl"


def _pages(question: Question) -> Floats:
    """Return the crawl sizes to draw, with room for figures to the right of the asked one."""
    least, most = min(1e7, question.pages / 10), max(1e13, 20 * question.pages)
    return np.logspace(math.log10(least), math.log10(most), SAMPLES)


def _place(question: Question, pages: Floats) -> float:
    """Return how far to the right the question stands: 0 to 1."""
    return math.log(question.pages / pages[0]) / math.log(pages[-1] / pages[0])


def _draw_checks(axes: Axes, question: Question, pages: Floats) -> None:
    """Draw Theorems 1 and 2 against the left scale; by Theorem 3 the right scale reads the same curves as pages/s."""
    dress(axes, "Checking which URLs are new", "pages to crawl", "bytes moved on disk per byte of URL")
    curves = [_Curve(name, COLOURS[name], overhead, number) for name, overhead in OVERHEADS.items()]
    least = least_overhead(question.crawl)
    axes.axhline(least, color=FAINT, linewidth=1.2, linestyle=(0, (1, 2)))
    _draw_curves(axes, question, pages, curves, lowest=1.0)
    free, side_pt, ha = (pages[-1], -6, "right") if _place(question, pages) < 0.6 else (pages[0], 6, "left")
    note(axes, f"least with keys on disk, {number(least)}", (free, least), (side_pt, -5), FAINT, ha=ha, va="top")
    _add_pages_s(axes, question)


def _add_pages_s(axes: Axes, question: Question) -> None:
    low, high = axes.get_ylim()
    pages_s = sustained_pages_s(question.crawl, 1.0, question.check_bytes_s)
    right = axes.twinx()
    dress(right, "", "", "pages/s the disk keeps up with")
    right.grid(visible=False)
    right.set_yscale("log")
    right.set_ylim(pages_s / low, pages_s / high)
    _ticks(right.yaxis, count_mark)


def _draw_budgets(axes: Axes, plan: Plan, pages: Floats) -> None:
    """Draw Theorems 4 and 5."""
    question = plan.question
    dress(
        axes,
        "Keeping every domain within its budget",
        "pages to crawl",
        f"disk speed at {number(question.pages_s)} pages/s",
    )
    queues = plan.budgets.beast_queues
    beast = f"BEAST, {queues:,} queue{'s' * (queues > 1)} at {count_mark(question.pages)}"
    curves = [
        _Curve(beast, GREEN, lambda asked: beast_bytes_s(asked.budgets), speed_text),
        _Curve("naive: one queue over budget", RED, lambda asked: naive_budget_bytes_s(asked.budgets), speed_text),
    ]
    speed = question.disk_bytes_s
    axes.axhline(speed, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
    _draw_curves(axes, question, pages, curves)
    note(axes, f"the whole disk, {speed_text(speed)}", (pages[0], speed), (6, 5), FAINT, ha="left", va="bottom")
    _ticks(axes.yaxis, speed_text)


@dataclass(frozen=True, slots=True)
class _Curve:
    name: str
    colour: str
    cost: Callable[[Question], float]
    written: Callable[[float], str]


def _draw_curves(
    axes: Axes, question: Question, pages: Floats, curves: list[_Curve], lowest: float | None = None
) -> None:
    """Draw each curve over `pages`, with its name along it and a dot and figure at the question."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    costs = [np.array([curve.cost(replace(question, pages=float(n))) for n in pages]) for curve in curves]
    for curve, cost in zip(curves, costs, strict=True):
        axes.plot(pages, cost, color=curve.colour, linewidth=2.4)
    axes.set_xlim(pages[0], pages[-1])
    axes.set_ylim(bottom=lowest)
    axes.axvline(question.pages, color=INK, linewidth=0.9, alpha=0.5, zorder=1)
    asked, top = f"{count_mark(question.pages)} pages", ("data", "axes fraction")
    note(axes, asked, (question.pages, 1), (0, 4), INK, xycoords=top, ha="center", va="bottom")
    place = _place(question, pages)
    for curve, cost in zip(curves, costs, strict=True):
        name_curve(axes, pages, cost, curve.name, curve.colour, at=0.93 if place < 0.6 else place - 0.05)
    here = [(curve.cost(question), curve) for curve in curves]
    mark_points(axes, question.pages, [(cost, curve.written(cost), curve.colour) for cost, curve in here])
    _ticks(axes.xaxis, count_mark)
    _ticks(axes.yaxis, count_mark)


def _ticks(axis: Axis, written: Callable[[float], str]) -> None:
    """Set ticks at powers of ten only, as people write them."""
    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
