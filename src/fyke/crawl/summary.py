"""What is a person told when a crawl has ended, and what to do next?

`run` makes the `Summary`, the command line prints it; `fyke status` says some of the same lines.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from fyke.archive.asked import AskedLater
from fyke.archive.directory import CrawlDirectory
from fyke.archive.statistics import CrawlStatistics, PassFound
from fyke.core.freshness import Freshness
from fyke.crawl.loop import Ending
from fyke.crawl.monitor import ENDED, deaths_in_words
from fyke.progress import print_line
from fyke.quantities import counted, duration, share_text, size

RULE_CHARS = 60  # of a rule
_ERRORS = frozenset({"client_error", "server_error", "gone"})
_REDIRECTS = frozenset({"redirected", "redirected_too_often"})
_FORBADE = "robots_forbade"


@dataclass(frozen=True, slots=True)
class Summary:
    """How a run ended."""

    ending: Ending
    statistics: CrawlStatistics
    peak_memory_bytes: int
    already: bool = False  # there was nothing left to do
    terminated: bool = False  # by SIGTERM

    def as_dict(self) -> dict[str, Any]:
        return {
            "ending": self.ending.value,
            "already": self.already,
            "peak_memory_bytes": self.peak_memory_bytes,
            **self.statistics.as_dict(),
        }


def nothing_reached(summary: Summary) -> bool:
    """Return whether the crawl ended without a single answer, even to a question for robots.txt."""
    ended = summary.ending in (Ending.UNREACHED, Ending.FINISHED)
    return ended and not summary.statistics.archive_bytes


def without_page_because(summary: Summary) -> str:
    """Return why the crawl came to its end without a page, if its seeds brought only errors of servers (4xx, 5xx),
    redirects that lead to no page, and refusals by robots.txt; otherwise nothing. The exit status tells the person, as
    those of `wget` and `curl -f` do."""
    now = summary.statistics
    if summary.ending is not Ending.FINISHED or now.again or not set(now.outcomes) <= _ERRORS | _REDIRECTS | {_FORBADE}:
        return ""
    forbade, redirects = now.outcomes.get(_FORBADE, 0), sum(now.outcomes.get(kind, 0) for kind in _REDIRECTS)
    reasons = [f"robots.txt forbids {counted(forbade, 'URL')}"] if forbade else []
    if redirects:
        reasons.append(f"{counted(redirects, 'redirect')} {'leads' if redirects == 1 else 'lead'} to no page")
    if not _ERRORS.isdisjoint(now.outcomes):
        reasons.append("check the URL")
    return ", ".join(reasons)


def report(summary: Summary, directory: CrawlDirectory, console: Console) -> None:
    """Print what was done, and what to do next, on `console`."""
    lines = [_nothing_more(summary, directory.path)] if summary.already else [*_lines(summary, directory)]
    for line in lines:
        print_line(console, line)


def _lines(summary: Summary, directory: CrawlDirectory) -> Iterator[str]:
    now = summary.statistics
    yield f"{directory.path}: {ENDED[summary.ending]}"
    rate = now.visits / now.total_s if now.total_s else 0.0
    yield f"  {counted(now.pages, 'page')}, {size(now.bytes)} in {duration(now.total_s)} ({rate:,.1f} visits/s)"
    if summary.ending is Ending.FINISHED and now.over_budget:
        yield f"  {now.over_budget:>9,}  URLs stay unfetched: the budget of their domains is 0"
    yield from passes(now)
    yield from outcomes(now, {kind: count for kind, count in now.outcomes.items() if kind != "ok"})
    if now.cut:
        yield f"  {now.cut:>9,}  pages whose end was not read for links or values, because it would have cost too much"
    if now.listings:
        yield f"  {now.listings:>9,}  sitemaps and feeds read"
    for rule, count in sorted(now.left_out.items(), key=lambda item: -item[1]):
        yield f"  {count:>9,}  links left out by {rule if len(rule) < RULE_CHARS else rule[:RULE_CHARS] + '…'}"
    yield from rewriting(now)
    for name, count in now.plugin_failures.items():
        yield f"  {count:>9,}  failures of the plug-in {name}"
    yield from (f"  {told}" for told in deaths_in_words(now.deaths))
    yield from _waiting(summary, directory)
    yield f"  {size(now.archive_bytes)} archived; memory at most {size(summary.peak_memory_bytes)}"
    yield f"Next: {_next(summary.ending, directory)}"


def outcomes(now: CrawlStatistics, shown: Mapping[str, int]) -> Iterator[str]:
    """Yield the `shown` outcomes of visits, in lines. After a pass, the first says that these are of all visits."""
    if now.again is not None and shown:
        yield f"  of all {counted(now.visits, 'visit')} since the crawl began:"
    for kind, count in sorted(shown.items(), key=lambda item: -item[1]):
        yield f"  {count:>9,}  {kind.replace('_', ' ')}"


def rewriting(now: CrawlStatistics) -> Iterator[str]:
    """Yield what rewrite rules did, in lines."""
    for rule, count in sorted(now.rewritten.items(), key=lambda item: -item[1]):
        yield f"  {count:>9,}  URLs put aside by the rewrite rule {rule}"
    for rule, count in now.revoked.items():
        yield f"  {count:>9,}  contradictions of the rewrite rule {rule}, which is revoked"
    if now.rewrite_exceptions:
        yield f"  {now.rewrite_exceptions:>9,}  pages that are exceptions to rewrite rules (fyke why URL)"


def _nothing_more(summary: Summary, path: Path) -> str:
    """Say that there was nothing to do in the crawl at `path`."""
    now, again = summary.statistics, f"fyke crawl --into {shlex.quote(str(path))}"
    if summary.ending is Ending.FINISHED:
        return f"{path}: finished before, {counted(now.pages, 'page')}; {again} --again looks for changes"
    what = f"{now.pages:,}" if summary.ending is Ending.PAGES else size(now.bytes)
    return f"{path}: {ENDED[summary.ending]}, {what}; {again} --{summary.ending} MORE goes on"


def passes(now: CrawlStatistics) -> Iterator[str]:
    """Yield what the last pass found, and how fresh copies are, in lines."""
    if now.again is not None:
        yield f"  {_passed(now.again)}"
    if now.freshness is not None:
        yield f"  {_freshness(now.freshness)}"


def _passed(found: PassFound) -> str:
    """Say what a pass found, in a line."""
    which, since = f"pass {found.number:,}", " since the pass before"
    if found.forever:
        which, since = f"since {datetime.fromtimestamp(found.began_at):%Y-%m-%d %H:%M}", ""
    pages = f"{found.unchanged:,} unchanged, {found.changed:,} changed, {found.new:,} new, {found.gone:,} gone"
    return f"{which}: {pages}{since}; {counted(found.requests, 'request')}, {size(found.bytes)}"


def _freshness(told: Freshness) -> str:
    """Say how fresh copies were at the last plan of a crawl without end, in a line."""
    late = told.due - told.chosen
    due = f"{told.due:,} due" + (f", {late:,} more than there is time for now" if late else "")
    then = f"{datetime.fromtimestamp(told.next_at):%Y-%m-%d %H:%M:%S}"
    if not told.pages:
        return f"no page was fetched before the last plan; next plan at {then}"
    return f"{share_text(told.fresh)} of {counted(told.pages, 'copy')} fresh, by estimate; {due}; next plan at {then}"


def _waiting(summary: Summary, directory: CrawlDirectory) -> Iterator[str]:
    """Say what a crawl waits for that did not finish."""
    now = summary.statistics
    if summary.ending is Ending.BLOCKED:
        yield f"  {now.blocked:>9,}  URLs are on blocked hosts: {AskedLater(directory.state).blocked_in_words}"
    if summary.ending is Ending.RESTING:
        first = f", the first host until {datetime.fromtimestamp(now.rest_until):%Y-%m-%d %H:%M:%S}"
        yield f"  {now.waiting:>9,}  URLs wait for hosts that rest{first if now.rest_until else ''}"


def _next(ending: Ending, directory: CrawlDirectory) -> str:
    """Say what a person may do next."""
    typed = shlex.quote(str(directory.path))
    if ending is Ending.BLOCKED:
        host = next(iter(AskedLater(directory.state).blocked), "HOST")
        return f"fyke unblock {typed} {host}; then fyke crawl --into {typed} goes on with its URLs"
    if ending is Ending.FINISHED:
        return f"fyke check {typed}; the archive is {directory.warc}, the tables are {directory.tables}"
    if ending is Ending.RESTING:
        return f"fyke crawl --into {typed} goes on then; with --wait 2d it waits up to 2 days for the next host"
    more = f" --{ending} MORE" if ending in (Ending.PAGES, Ending.BYTES) else ""
    return f"fyke crawl --into {typed}{more} goes on where it stopped"
