"""Was a crawler polite, by what the servers saw?

Tests call it with a ledger's columns; it knows nothing of the web behind them. Requests for robots.txt count as
requests. Times are the servers' own: an arrival is never stamped early, and an end never later than the client could
see it. So a gap between end and arrival is never found shorter than the client kept it.

Invariant: no false alarm for hosts. An address's gap runs from arrival to arrival, so `slack_s` absorbs the delays of
a busy server.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class AuditRule(StrEnum):
    """The rules a crawler can break."""

    OVERLAP = "overlap"  # two requests at once to a host
    HOST_DELAY = "host_delay"  # too soon after the end of the last reply
    DOWNLOAD_DELAY = "download_delay"  # sooner than k times the duration of the last download
    CRAWL_DELAY = "crawl_delay"  # sooner than robots.txt asks, once it was read
    RETRY_AFTER = "retry_after"  # sooner than a reply asked
    ADDRESS_DELAY = "address_delay"  # too soon after the last arrival at the address


class Violation(NamedTuple):
    """One request that came too soon: after `gap_s` instead of `due_s`. `place` is a host or an address."""

    rule: AuditRule
    place: str
    path: str
    arrived: float
    gap_s: float
    due_s: float


class _AuditColumns(NamedTuple):
    arrived: Floats
    ended: Floats
    retry_after_s: Floats
    host: npt.NDArray[np.str_]
    server: npt.NDArray[np.str_]
    path: list[str]
    status: list[int]


def audit_politeness(
    requests: Any,
    host_delay_s: float,
    address_delay_s: float = 0.0,
    delay_factor: float = 0.0,
    crawl_delays: Mapping[str, float] | None = None,
    delay_ceiling_s: float = float("inf"),
    slack_s: float = 0.0,
) -> list[Violation]:
    """Return the violations in a table of requests (columns as `ledger.REQUESTS`), in order of arrival.

    `delay_factor` is Mercator's k, capped at `delay_ceiling_s`. `crawl_delays` are seconds by host name, due from the
    end of the host's first answered robots.txt. A gap short by at most `slack_s` passes.
    """
    columns = _columns(requests)
    delays = crawl_delays or {}
    found: list[Violation] = []
    for rows in _groups(columns.host, columns.arrived):
        name = str(columns.host[rows[0]])
        dues = _host_dues(columns, rows, host_delay_s, delay_factor, delay_ceiling_s)
        crawl = _crawl_delay(columns, rows, delays.get(name, 0.0))
        gaps = columns.arrived[rows][1:] - np.maximum.accumulate(columns.ended[rows])[:-1]
        found += _short(columns, name, rows, gaps, {**dues, AuditRule.CRAWL_DELAY: crawl}, slack_s)
    for rows in _groups(columns.server, columns.arrived):
        gaps = np.diff(columns.arrived[rows])
        due = {AuditRule.ADDRESS_DELAY: np.full(len(gaps), address_delay_s)}
        found += _short(columns, str(columns.server[rows[0]]), rows, gaps, due, slack_s)
    return sorted(found, key=lambda one: one.arrived)


def _columns(requests: Any) -> _AuditColumns:
    def numbers(name: str) -> Floats:
        return np.asarray(requests[name].to_numpy(), np.float64)

    def names(name: str) -> npt.NDArray[np.str_]:
        return np.array(requests[name].to_pylist(), np.str_)

    said = (requests["path"].to_pylist(), requests["status"].to_pylist())
    times = (numbers("arrived"), numbers("ended"), numbers("retry_after_s"))
    return _AuditColumns(*times, names("host"), names("server"), *said)


def _groups(names: npt.NDArray[np.str_], arrived: Floats) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the rows of each name, in order of arrival."""
    if not len(names):
        return
    order = np.lexsort((arrived, names))
    cuts = np.flatnonzero(names[order][1:] != names[order][:-1]) + 1
    yield from np.split(order, cuts)


def _host_dues(
    columns: _AuditColumns, rows: npt.NDArray[np.intp], host_delay_s: float, factor: float, ceiling_s: float
) -> dict[AuditRule, Floats]:
    """Return the gap due before each request except the first, by rule, counted from the latest end before it."""
    arrived, ended = columns.arrived[rows], columns.ended[rows]
    last_end = np.maximum.accumulate(ended)
    asked = columns.retry_after_s[rows]
    free_at = np.maximum.accumulate(np.where(asked > 0, ended + asked, -np.inf))
    return {
        AuditRule.OVERLAP: np.zeros(len(rows) - 1),
        AuditRule.HOST_DELAY: np.full(len(rows) - 1, host_delay_s),
        AuditRule.DOWNLOAD_DELAY: np.minimum(factor * (ended - arrived), ceiling_s)[:-1],
        AuditRule.RETRY_AFTER: (free_at - last_end)[:-1],
    }


def _crawl_delay(columns: _AuditColumns, rows: npt.NDArray[np.intp], delay_s: float) -> Floats:
    """Return the gap that Crawl-delay makes due before each request except the first.

    An unanswered robots.txt does not count.
    """
    due = np.zeros(len(rows) - 1)
    if delay_s > 0:
        read = [columns.path[row] == "/robots.txt" and columns.status[row] > 0 for row in rows]
        due[np.logical_or.accumulate(read)[:-1]] = delay_s
    return due


def _short(
    columns: _AuditColumns,
    place: str,
    rows: npt.NDArray[np.intp],
    gaps: Floats,
    dues: dict[AuditRule, Floats],
    slack_s: float,
) -> list[Violation]:
    """Return one violation for each gap that is too short: of overlap, otherwise of the rule that asks most."""
    if not len(gaps):
        return []
    rules = list(dues)
    table = np.stack([dues[rule] for rule in rules])
    worst = table.argmax(axis=0)
    due = table.max(axis=0)
    found = []
    for place_in_rows in np.flatnonzero(gaps < due - slack_s):
        row, gap = rows[place_in_rows + 1], float(gaps[place_in_rows])
        overlap = AuditRule.OVERLAP in dues and gap < -slack_s
        rule = AuditRule.OVERLAP if overlap else rules[worst[place_in_rows]]
        wanted = 0.0 if overlap else float(due[place_in_rows])
        found.append(Violation(rule, place, columns.path[row], float(columns.arrived[row]), gap, wanted))
    return found
