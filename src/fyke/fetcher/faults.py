"""What does an outcome cost? One row for each, in one table.

`FaultDesk` asks after every visit whether the URL is tried again, how its host must wait, and whether the failure
counts towards `politeness.host_failures`, which in a row retire the host. A page that fails again waits longer each
time. Its host waits no longer for that, because other pages may answer. `retry_after` reads how long a
server asks us to wait: its host rests for that, with whatever 3xx, 4xx or 5xx it comes, and the target of a redirect
waits as long (`fyke.frontier.asleep`).

Invariant: `FAULTS` has a row for every `Outcome`.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum
from types import MappingProxyType

from fyke.core.config import PolitenessSection
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Purpose

MAX_RETRY_AFTER_S = 86400.0  # a server that says "next year" is asked again tomorrow
FLOWING_BYTES_S = 512.0  # at which a stream flows: half of a slow radio, eight times the least rate of a download


class Wait(Enum):
    """The extra delay that a host gets, beside its usual one."""

    NONE = "none"
    FAILURE = "failure"  # politeness.failure_delay_s, doubling
    THROTTLE = "throttle"  # Retry-After, otherwise twice politeness.failure_delay_s, doubling


@dataclass(frozen=True, slots=True)
class OutcomeCost:
    """The cost of an outcome."""

    retry: bool  # the URL is visited again, up to politeness.tries
    wait: Wait
    costs_host: bool  # counts towards politeness.host_failures


_NOTHING = OutcomeCost(retry=False, wait=Wait.NONE, costs_host=False)
_NOT_AGAIN = OutcomeCost(retry=False, wait=Wait.FAILURE, costs_host=True)  # a bad certificate is not mended in minutes
_AGAIN_LATER = OutcomeCost(retry=True, wait=Wait.FAILURE, costs_host=True)

FAULTS: Mapping[Outcome, OutcomeCost] = MappingProxyType(
    {
        Outcome.OK: _NOTHING,
        Outcome.UNCHANGED: _NOTHING,
        Outcome.GONE: _NOTHING,
        Outcome.REDIRECTED: _NOTHING,
        Outcome.REDIRECTED_TOO_OFTEN: _NOTHING,
        Outcome.CLIENT_ERROR: _NOTHING,
        # A host that answers with errors is alive: it waits, and is not retired.
        Outcome.SERVER_ERROR: OutcomeCost(retry=True, wait=Wait.FAILURE, costs_host=False),
        Outcome.THROTTLED: OutcomeCost(retry=True, wait=Wait.THROTTLE, costs_host=False),
        Outcome.NO_SUCH_NAME: _NOT_AGAIN,
        Outcome.DNS_FAILED: _AGAIN_LATER,
        Outcome.ADDRESS_REFUSED: _NOTHING,
        Outcome.CONNECT_FAILED: _AGAIN_LATER,
        Outcome.TLS_FAILED: _NOT_AGAIN,
        Outcome.TIMED_OUT: _AGAIN_LATER,
        Outcome.STALLED: _AGAIN_LATER,
        Outcome.BROKEN_OFF: _AGAIN_LATER,
        Outcome.BAD_ANSWER: _NOT_AGAIN,
        Outcome.TOO_LARGE: _NOTHING,
        Outcome.ROBOTS_FORBADE: _NOTHING,
        # RulesDesk decides when robots.txt is asked for again.
        Outcome.ROBOTS_UNREACHABLE: OutcomeCost(retry=True, wait=Wait.NONE, costs_host=False),
        Outcome.HOST_RETIRED: _NOTHING,
        Outcome.UNSUPPORTED: _NOTHING,
        Outcome.PLUGIN_FAILED: _NOTHING,
        Outcome.MEDIA_REFUSED: _NOTHING,
        Outcome.INCOMPLETE: _NOTHING,  # each try was charged as what it was
    }
)


class FaultPolicy:
    """The consequences of `FAULTS` under the settings of `politeness`. The fetcher asks after each exchange."""

    def __init__(self, politeness: PolitenessSection) -> None:
        self._politeness = politeness

    def failures(self, outcome: Outcome, before: int, tries: int) -> int:
        """Return a host's failures in a row: `before` until this visit, which had failed `tries` times."""
        if not FAULTS[outcome].costs_host:
            return 0
        # A page that fails again says nothing new of its host.
        return before + (not tries or outcome is Outcome.CONNECT_FAILED)

    def faults(self, outcome: Outcome, before: int, tries: int) -> int:
        """Return a host's faults in a row, which are failures and errors that it answers; otherwise as `failures`."""
        wait = FAULTS[outcome].wait
        if wait is Wait.NONE:
            return 0
        return before + (not tries or wait is Wait.THROTTLE or outcome is Outcome.CONNECT_FAILED)

    def wait_s(self, outcome: Outcome, faults: int, tries: int, asked_s: float | None) -> float:
        """Return the seconds that the host must rest beyond its usual delay; `asked_s` is its Retry-After."""
        match FAULTS[outcome].wait:
            case Wait.THROTTLE:
                return self.sleep_s(max(tries + 1, faults) + 1) if asked_s is None else asked_s
            case Wait.FAILURE:
                return max(self.sleep_s(faults), asked_s or 0.0)
        return asked_s or 0.0

    def retry_s(self, outcome: Outcome, tries: int) -> float:
        """Return the least seconds that a page waits which had failed `tries` times before. Its host need not wait."""
        return self.sleep_s(tries + 1) if FAULTS[outcome].wait is Wait.FAILURE else 0.0

    def sleep_s(self, failures: int) -> float:
        """Return the seconds that a host sleeps after `failures` in a row."""
        doubled_s = self._politeness.failure_delay_s * 2.0 ** min(max(0, failures - 1), 20)
        return min(doubled_s, self._politeness.max_sleep_s)

    def again(self, outcome: Outcome, tries: int, *, says_nothing: bool = False) -> bool:
        """Return whether the URL is visited again, after `tries` failures before this one. After an answer that
        `says_nothing` of it, it has one try more."""
        most = self._politeness.tries
        return tries <= most if says_nothing else FAULTS[outcome].retry and tries + 1 < most

    def retires(self, failures: int) -> bool:
        """Return whether `failures` in a row retire a host."""
        return failures >= self._politeness.host_failures


def is_of_page(exchange: Exchange) -> bool:
    """Return whether the fault says nothing of the server's other pages, because a whole head came: for an answer that
    is odd, for a page whose body broke off, for a stream that flowed until its time was over, or for a stream of
    events, which may be silent for long. Other slow answers hold us up on purpose, or will for the next page too. Files
    of protocols without heads may break off as well."""
    if exchange.outcome is Outcome.BROKEN_OFF:
        begun = exchange.truncated == "disconnect" and bool(exchange.head or exchange.effective_protocol)
        return begun and exchange.visit.purpose is Purpose.PAGE
    if not exchange.head or exchange.outcome not in _WITH_HEAD:
        return False
    if exchange.outcome is Outcome.BAD_ANSWER:
        return True
    flowed = exchange.body.size >= FLOWING_BYTES_S * exchange.duration_s
    is_stream = _EVENTS.match(exchange.header("content-type")) is not None
    return exchange.status == 200 and (is_stream or (flowed and exchange.outcome is Outcome.TIMED_OUT))


_WITH_HEAD = (Outcome.BAD_ANSWER, Outcome.TIMED_OUT, Outcome.STALLED)
_EVENTS = re.compile(r"text/event-stream\s*(?:;|$)", re.IGNORECASE)
_SECONDS = re.compile(r"\+?(\d+(?:\.\d*)?)\s*(?:s|seconds?)?", re.IGNORECASE)


def retry_after(exchange: Exchange, now: float) -> float | None:
    """Return the seconds from `now` (unix) that the answer asks us to wait (RFC 9110, 10.2.3): 0 to a day.

    The longest of several fields counts, also of those that a proxy put into one. Returns None if none can be read. A
    fraction, a plus sign and the word for seconds are read too. A server whose clock is slow writes dates that are past
    here, so a date counts from its `Date` field if that is earlier.
    """
    values = exchange.headers("retry-after")
    if not values:
        return None
    shown = http_date(exchange.header("date"))
    begin = now if shown is None else min(now, shown)
    return max((wait for value in values if (wait := _asked_s(value, begin)) is not None), default=None)


def _asked_s(value: str, begin: float) -> float | None:
    numbers = [_SECONDS.fullmatch(part.strip()) for part in value.split(",")]
    if all(numbers):
        wait = max(float(number[1][:12]) for number in numbers if number)
    else:
        until = http_date(value)
        if until is None:
            return None
        wait = until - begin
    return min(max(wait, 0.0), MAX_RETRY_AFTER_S) if math.isfinite(wait) else None


def http_date(text: str) -> float | None:
    """Return the unix seconds of the date in a header field, or None if it holds no date. A date without a zone (by C's
    asctime) is in UTC (RFC 9110, 5.6.7)."""
    try:
        when = parsedate_to_datetime(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
