"""The result of a simulation: a summary for people and machines, and a report with figures.

`fyke simulate` writes it into the simulation's directory at the end or when stopped.

Invariant: every figure of the summary covers the whole simulation, over all its runs. The report and the figure of
the policy are the same bytes for the same web and policy; the machine's cost is in a figure of its own.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fyke.lab.simulate import figures
from fyke.lab.simulate.domain_results import Bins, Standings, by_in_degree, standings
from fyke.lab.simulate.keep import SimulationSettings, StoredSimulation
from fyke.lab.simulate.simulation import Simulation
from fyke.plots import save
from fyke.quantities import bytes_text, count_text, number, share_text, time_text

REPORT = "report.md"


@dataclass(frozen=True, slots=True)
class SimulationSummary:
    """The state of a simulation at its end, or when it was stopped."""

    policy: str
    order: str
    pages: int
    spam_pages: int
    failures: int
    retries: int
    links: int
    unique: int
    domains: int
    spam_share_of_fetches: float
    spam_share_of_urls: float
    unique_share: float
    policy_bytes_per_page: float
    virtual_s: float
    wall_s: float
    pages_s: float  # pages simulated per wall second
    peak_memory_bytes: int  # over all runs
    revisits: int = 0  # visits to known pages that brought a page
    changed_share: float = 0.0  # of `revisits`, those that found another version
    fresh: float = 0.0  # share of copies that miss no change
    believed_fresh: float = 0.0  # as the frontier believed at its last plan
    stale: float = 0.0  # mean of 1 + 1/2 + ... + 1/n over copies that miss n changes


def summary_of(stored: StoredSimulation, settings: SimulationSettings, of: Standings) -> SimulationSummary:
    """Return the summary of `stored`; `of` has the results of its domains."""
    sample, totals = stored.simulation.tally.samples[-1], stored.simulation.tally.totals
    return SimulationSummary(
        policy=settings.policy,
        order=settings.order,
        pages=totals.pages,
        spam_pages=totals.spam_pages,
        failures=totals.failures,
        retries=totals.retries,
        links=totals.links,
        unique=sample.unique,
        domains=sample.domains,
        spam_share_of_fetches=totals.spam_pages / max(1, totals.pages),
        spam_share_of_urls=of.spam_share_of_urls,
        unique_share=sample.unique / max(1, totals.links),
        policy_bytes_per_page=totals.policy_bytes / max(1, totals.pages),
        virtual_s=sample.virtual_s,
        wall_s=totals.wall_s,
        pages_s=totals.pages / max(1e-9, totals.wall_s),
        peak_memory_bytes=totals.peak_memory_bytes,
        **_freshness(stored.simulation),
    )


def _freshness(simulation: Simulation) -> dict[str, Any]:
    if simulation.copies is None:
        return {}
    seen = simulation.copies.seen(simulation.clock.now())
    return {
        "revisits": seen.revisits,
        "changed_share": seen.changed / max(1, seen.revisits),
        "fresh": seen.fresh,
        "believed_fresh": simulation.frontier.known_pages.freshness.fresh,
        "stale": seen.stale,
    }


def text(summary: SimulationSummary) -> str:
    """Return the summary in a few lines."""
    return "\n".join(f"{name:>28}  {value}" for name, value in [*_rows(summary), *_machine_rows(summary)])


def write(stored: StoredSimulation, settings: SimulationSettings, directory: Path) -> SimulationSummary:
    """Write the report of `stored` to `directory` and return its summary."""
    of = standings(stored.simulation)
    summary = summary_of(stored, settings, of)
    samples = stored.simulation.tally.samples
    lines = [f"# Simulation of {settings.policy}", "", "| | |", "|---|---:|"]
    lines += [f"| {name} | {value} |" for name, value in _rows(summary)]
    if len(samples) > 1:
        name = f"{settings.policy}, {settings.order}" if settings.order != "breadth-first" else settings.policy
        save(figures.of_policy(samples, of, name), directory / "policy.svg")
        save(figures.of_machine(samples, name), directory / "machine.svg")
        lines += ["", "![What the policy did to the web](policy.svg)", "", "![What it cost the machine](machine.svg)"]
    lines += ["", *_table(by_in_degree(of, ~of.spam)), "", *_web(settings), ""]
    (directory / REPORT).write_text("\n".join(lines))
    return summary


def _rows(summary: SimulationSummary) -> list[tuple[str, str]]:
    return [
        ("pages fetched", count_text(summary.pages)),
        ("of spam farms", share_text(summary.spam_share_of_fetches)),
        ("URLs discovered", count_text(summary.unique)),
        ("of spam farms, of these", share_text(summary.spam_share_of_urls)),
        ("new among links", share_text(summary.unique_share)),
        ("domains met", count_text(summary.domains)),
        ("budgets moved on disk, a page", bytes_text(summary.policy_bytes_per_page)),
        ("virtual time", time_text(summary.virtual_s)),
        *(_rows_of_revisits(summary) if summary.revisits else []),
    ]


def _rows_of_revisits(summary: SimulationSummary) -> list[tuple[str, str]]:
    return [
        ("visits to known pages", count_text(summary.revisits)),
        ("of these, found a change", share_text(summary.changed_share)),
        ("fresh copies", share_text(summary.fresh)),
        ("as was believed", share_text(summary.believed_fresh)),
        ("staleness, harmonic", number(summary.stale)),
    ]


def _machine_rows(summary: SimulationSummary) -> list[tuple[str, str]]:
    return [
        ("time", time_text(summary.wall_s)),
        ("pages simulated a second", number(summary.pages_s)),
        ("peak memory", bytes_text(summary.peak_memory_bytes)),
    ]


def _table(bins: Bins) -> list[str]:
    lines = [
        "Honest domains by the number of other domains that link to them (IRLbot, Figure 6(b)):",
        "",
        "| in-degree, mean | domains | pages fetched, mean | most |",
        "|---:|---:|---:|---:|",
    ]
    rows = zip(bins.in_degree, bins.domains, bins.pages, bins.most_pages, strict=True)
    return [*lines, *(f"| {number(d)} | {n:,} | {number(mean)} | {most:,} |" for d, n, mean, most in rows)]


def _web(settings: SimulationSettings) -> list[str]:
    lines = ["The web and the policy, as asked:", ""]
    described = {**asdict(settings.spec), **{name: value for name, value in asdict(settings).items() if name != "spec"}}
    return [*lines, *(f"- {name} = {value}" for name, value in described.items() if value is not None)]
