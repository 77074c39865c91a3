"""The figures of a simulation: what the policy did to the web, and what it cost the machine.

The report draws them, and the benches for several policies at once. Curves run over pages fetched, to be laid beside
IRLbot's Figure 6 (Lee et al., WWW 2008).

Invariant: shares and costs are those of the stretch between two samples, not of all before.
"""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fyke.lab.simulate.domain_results import Standings, by_in_degree
from fyke.lab.simulate.tally import Sample
from fyke.plots import BLUE, FAINT, GREEN, ORANGE, PURPLE, RED, Floats, dress, panels
from fyke.quantities import bytes_text, count_mark, count_text, share_text, time_text

WIDTH_IN, HEIGHT_IN = 16.0, 5.6
MOST_STRETCHES = 30


def of_policy(samples: Sequence[Sample], standings: Standings, policy: str) -> Figure:
    """Draw what the policy did: spam, uniqueness, and pages fetched by reputation."""
    last = samples[-1]
    subtitle = (
        f"{policy}: {count_text(last.pages)} pages in {time_text(last.virtual_s)} of virtual time;"
        f" farms own {share_text(last.spam_share)} of the {count_text(last.unique)} URLs discovered"
    )
    figure, (spam, unique, popular) = panels(
        3, "What the policy did to the web", subtitle, width_in=WIDTH_IN, height_in=HEIGHT_IN
    )
    draw_spam(spam, [(policy, samples, BLUE)])
    _draw_unique(unique, samples)
    draw_standings(popular, standings)
    return figure


def of_machine(samples: Sequence[Sample], policy: str) -> Figure:
    """Draw what it cost: queues, bytes moved by the queues of rounds, speed and memory."""
    last = samples[-1]
    peak = max(sample.memory_bytes for sample in samples)
    subtitle = (
        f"{policy}: {count_text(last.pages)} pages in {time_text(last.wall_s)}, at most {bytes_text(peak)} of memory"
    )
    figure, (queues, cost, speed) = panels(
        3, "What it cost the machine", subtitle, width_in=WIDTH_IN, height_in=HEIGHT_IN
    )
    _draw_queues(queues, samples)
    draw_cost(cost, [(policy, samples, GREEN)])
    _draw_speed(speed, samples)
    return figure


def draw_spam(axes: Axes, crawls: Sequence[tuple[str, Sequence[Sample], str]]) -> None:
    """Draw the share of fetches spent on farms, for crawls by name and colour."""
    dress(axes, "Fetches spent on spam farms", "pages fetched", "share of fetches")
    curves = [(*_stretches(of, "spam_pages", "pages"), name, colour) for name, of, colour in crawls]
    _lines(axes, curves, share_text)


def draw_discovered(axes: Axes, crawls: Sequence[tuple[str, Sequence[Sample], str]]) -> None:
    """Draw the share of discovered URLs that farms own, for crawls by name and colour."""
    dress(axes, "URLs that spam farms own", "pages fetched", "share of URLs discovered so far")
    curves = [(_column(of, "pages"), _column(of, "spam_share"), name, colour) for name, of, colour in crawls]
    _lines(axes, curves, share_text)


def draw_cost(axes: Axes, crawls: Sequence[tuple[str, Sequence[Sample], str]]) -> None:
    """Draw the bytes that the queues of rounds read and write per page, for crawls by name and colour."""
    dress(axes, "Disk traffic of the budgets", "pages fetched", "bytes moved by the queues of rounds, a page")
    curves = [(*_stretches(of, "policy_bytes", "pages"), name, colour) for name, of, colour in crawls]
    _lines(axes, curves, bytes_text)


def draw_standings(axes: Axes, standings: Standings) -> None:
    """Draw Figure 6(b): mean pages fetched of a domain against its in-degree, for honest domains and farms."""
    dress(axes, "Pages fetched by reputation", "domains that link to it", "pages fetched of a domain, mean")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for name, which, colour in (("honest", ~standings.spam, BLUE), ("spam farms", standings.spam, RED)):
        bins = by_in_degree(standings, which)
        seen = bins.pages > 0
        if seen.any():
            degree, pages = bins.in_degree[seen], bins.pages[seen]
            axes.plot(degree, pages, "o-", color=colour, linewidth=2, markersize=5)
            axes.annotate(
                name,
                (degree[-1], pages[-1]),
                (0, 9),
                textcoords="offset points",
                color=colour,
                fontsize=10,
                fontweight="bold",
                ha="right",
            )
    axes.grid(which="minor", visible=False)


def _draw_unique(axes: Axes, samples: Sequence[Sample]) -> None:
    """Draw Figure 6(a)."""
    dress(axes, "Links that are new", "pages fetched", "unique share p of links")
    pages, share = _stretches(samples, "unique", "links")
    _lines(axes, [(pages, share, "p", BLUE)], share_text)
    axes.axhline(1 / 9, color=FAINT, linewidth=1.2, linestyle=(0, (1, 2)))
    axes.annotate("IRLbot: 11 %", (0, 1 / 9), (6, 4), textcoords="offset points", color=FAINT, fontsize=10)


def _draw_queues(axes: Axes, samples: Sequence[Sample]) -> None:
    dress(axes, "URLs that wait", "pages fetched", "URLs")
    pages = _column(samples, "pages")
    kinds = (
        ("waiting", "for their round", BLUE),
        ("over_budget", "over budget", RED),
        ("ready", "ready", GREEN),
        ("spilled", "for room at their host", PURPLE),
    )
    curves = [(pages, _column(samples, kind), name, colour) for kind, name, colour in kinds]
    _lines(axes, [curve for curve in curves if curve[1].max() > 0], count_mark)


def _draw_speed(axes: Axes, samples: Sequence[Sample]) -> None:
    dress(axes, "Simulated", "pages fetched", "pages simulated a second")
    pages, speed = _stretches(samples, "pages", "wall_s")
    _lines(axes, [(pages, speed, "pages/s", ORANGE)], count_mark)


def _column(samples: Sequence[Sample], name: str) -> Floats:
    return np.array([getattr(sample, name) for sample in samples], np.float64)


def _stretches(samples: Sequence[Sample], above: str, below: str) -> tuple[Floats, Floats]:
    """Return the pages at which stretches of the crawl end, and the growth of `above` over that of `below` in each.

    A stretch ends only after `above` has grown, as many counters grow in batches.
    """
    least_pages = samples[-1].pages / MOST_STRETCHES
    pages, ratios = [], []
    before = samples[0]
    for after in samples[1:]:
        grown = getattr(after, above) - getattr(before, above)
        over = getattr(after, below) - getattr(before, below)
        if after.pages - before.pages >= least_pages and grown > 0 and over > 0:
            pages.append(after.pages)
            ratios.append(grown / over)
            before = after
    return np.array(pages, np.float64), np.array(ratios, np.float64)


def _lines(axes: Axes, curves: Sequence[tuple[Floats, Floats, str, str]], written: Callable[[float], str]) -> None:
    """Draw each curve from zero up, names above in their colours: curves cross too often to bear their names."""
    drawn = [curve for curve in curves if len(curve[0])]
    for place, (x, y, name, colour) in enumerate(drawn):
        axes.plot(x, y, color=colour, linewidth=2.2)
        axes.text(
            0.02,
            0.98 - 0.065 * place,
            name,
            transform=axes.transAxes,
            color=colour,
            fontsize=10,
            fontweight="bold",
            va="top",
        )
    axes.set_xlim(0, max((x[-1] for x, *_ in drawn), default=1.0))
    room = 1.05 + 0.09 * len(drawn)
    axes.set_ylim(0, room * max((float(y.max()) for _, y, *_ in drawn), default=1.0) or 1.0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count_mark(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
