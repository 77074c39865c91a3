"""The laws of a crawl, judged by the servers' ledger and the crawl's own tables, for `benches/soak.py`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fyke.archive.reading import read_table
from fyke.lab.simweb import AuditRule, IntendedCrawl, Violation, audit_politeness
from fyke.lab.simweb.child import RunningWeb

CEILING_S = 60.0
NOTICED_S = 0.05
UNREAD_S = 0.25  # an answer that arrives this shortly before a kill may be unread
NAMED = 4  # URLs and requests named per broken law


def broken_laws(web: RunningWeb, into: Path, host_delay_s: float, kills: Sequence[float]) -> list[str]:
    """Return a line for each law that the finished crawl in `into` broke. It was killed at `kills` (unix seconds)."""
    return list(_broken(web, into, host_delay_s, kills))


def _broken(web: RunningWeb, into: Path, host_delay_s: float, kills: Sequence[float]) -> Iterator[str]:
    expected = web.perfect(IntendedCrawl(scope="web"))
    got = archived(into)
    pages = set(got) - expected.auxiliary
    yield from _named("were not archived", expected.archived - pages)
    yield from _named("were archived and not expected", pages - expected.archived)
    yield from _named("were archived more than once", {url for url, times in got.items() if times > 1})
    beginnings = archived(into, "incomplete")
    yield from _named("whose beginnings were not archived", expected.begun - set(beginnings))
    yield from _named("whose beginnings were archived and not expected", set(beginnings) - expected.begun)
    yield from _named("were begun more than once", {url for url, times in beginnings.items() if times > 1})
    rows = web.ledger()
    asked = {
        f"{scheme}://{host}:{web.ports.http}{path}"
        for scheme, host, path in zip(*(rows[name].to_pylist() for name in ("scheme", "host", "path")), strict=True)
        if path
    }
    yield from _named("were asked for and are forbidden", asked & expected.forbidden)
    yield from _named("were asked for and only linked where links do not count", asked & expected.avoided)
    yield from _named("were asked for and are outside", asked - expected.requested - expected.auxiliary)
    for violation in too_soon(rows, host_delay_s, web.crawl_delays(), kills, web.stalls())[:NAMED]:
        yield f"too soon: {violation}; before it: {_last_of(rows, violation)}"


def _last_of(rows: Any, one: Violation) -> list[tuple[str, int, float, float]]:
    """Return the last few requests to the host of `one` before it: path, status, and the seconds from arrival and
    end to it."""
    columns = [rows[name].to_pylist() for name in ("host", "path", "status", "arrived", "ended")]
    before = [
        (path, status, round(one.arrived - arrived, 3), round(one.arrived - ended, 3))
        for host, path, status, arrived, ended in zip(*columns, strict=True)
        if host == one.place and arrived < one.arrived
    ]
    return before[-NAMED:]


def too_soon(
    rows: Any,
    host_delay_s: float,
    crawl_delays: dict[str, float],
    kills: Sequence[float],
    stalls: Sequence[tuple[float, float]] = (),
) -> list[Violation]:
    """Return the violations in a ledger's `rows`, except for those that the crawler is not to blame for.

    If the crawler broke a request off, the server notices late, and not before its `stalls` end (from and until, unix
    seconds). If the crawler was killed as an answer came, nobody read its Retry-After.
    """
    found = audit_politeness(rows, host_delay_s, 0.0, 0.0, crawl_delays, CEILING_S)
    if not found:
        return []
    columns = {name: rows[name].to_pylist() for name in ("host", "arrived", "ended", "status")}
    ends: dict[str, list[tuple[float, float, int]]] = {}
    for host, arrived, ended, status in zip(*columns.values(), strict=True):
        ends.setdefault(host, []).append((ended, arrived, status))
    return [one for one in found if not _is_excused(one, ends[one.place], kills, stalls)]


def _is_excused(
    one: Violation,
    ends: list[tuple[float, float, int]],
    kills: Sequence[float],
    stalls: Sequence[tuple[float, float]],
) -> bool:
    """Return whether the crawler could not know better, by the latest end of a request before."""
    ended, _, status = max(end for end in ends if end[1] < one.arrived)
    if one.rule is AuditRule.RETRY_AFTER:
        return any(ended <= kill < ended + UNREAD_S for kill in kills)
    late_s = max((ended - begun for begun, end in stalls if begun <= ended <= end + NOTICED_S), default=0)
    return not status and one.due_s - one.gap_s < NOTICED_S + late_s


def _named(what: str, urls: set[str] | frozenset[str]) -> Iterator[str]:
    if urls:
        yield f"{len(urls)} {what}: {', '.join(sorted(urls)[:NAMED])}"


def archived(into: Path, wanted: str = "ok") -> Counter[str]:
    """Return the URLs of visits with the outcome `wanted`, with their numbers of rows in the pages table."""
    table = read_table(into, "pages", ["url", "outcome"]).to_pydict()
    return Counter(url for url, outcome in zip(table["url"], table["outcome"], strict=True) if outcome == wanted)


def figures(web: RunningWeb, into: Path) -> str:
    """Return the size of the crawl, in words."""
    seen = web.statistics()
    return f"{len(archived(into)):,} pages archived; {seen.requests:,} requests and {seen.queries:,} queries came"
