"""What came of asking for a robots.txt, and what follows: RFC 9309, section 2.3, as pure functions.

`RulesDesk` has `<origin>/robots.txt` fetched. `redirect_of` says where a redirect leads on. `rules_from` makes the last
answer a `RobotsRecord`, which `fyke.fetcher.book` keeps on disk. The rules themselves are `fyke.fetcher.robots_rules`.

    answer                                        meaning                        believed
    2xx                                           its rules                      the server's time, at most 24 h
    3xx, beyond five hops or to no URL            there is none: all allowed     "
    4xx except 429                                there is none: all allowed     "
    429, 5xx, no answer, no address, no target    nothing allowed                until retried, doubling
    3xx to an address or port that is refused     "                              "

If a site itself is refused, or libcurl never takes its name, all is allowed. Then each of its pages is tried at once,
and ends for the same reason as its robots.txt.

Differs: the standard lets a crawler treat a robots.txt that could not be had for 30 days as missing; here it stays a
"no" until the server answers. The server's time is its Cache-Control or Expires, but at least `MIN_TTL_S`: many sites
mark all they send as stale, and their robots.txt would be fetched before every page.

Invariant: an answer that is not understood forbids.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from fyke.core.outcomes import Outcome
from fyke.core.ports import OTHERS_PORTS
from fyke.core.slices import Slices, whole
from fyke.core.urls import canonical, split
from fyke.core.visits import Exchange
from fyke.fetcher.faults import http_date, retry_after
from fyke.fetcher.robots_lines import MAX_BYTES
from fyke.fetcher.robots_rules import RobotsRules

MAX_REDIRECTS = 5
MAX_CRAWL_DELAY_S = 86400.0  # a longer Crawl-delay is cut to it
MIN_TTL_S, MOST_TTL_S = 3600.0, 86400.0  # RFC 9309, section 2.4
FIRST_RETRY_S = 30.0
LONGEST_RETRY_S = 3600.0


class RobotsState(StrEnum):
    """What a record says of its origin."""

    RULES = "rules"  # there is a robots.txt: its lines decide
    ALLOW_ALL = "allow_all"  # there is none
    DISALLOW_ALL = "disallow_all"  # it could not be had: nothing may be fetched


@dataclass(slots=True)
class RobotsRecord:
    """The robots.txt of one origin (`scheme://host:port`), as far as it is known; times are unix seconds.

    `body` is kept for state RULES only, cut at 516 KiB. `failures` counts failed attempts in a row.
    """

    origin: str
    state: RobotsState
    fetched_at: float
    expires_at: float
    status: int = 0
    reason: str = ""
    body: bytes = b""
    failures: int = 0
    _agent: str = field(default="", repr=False, compare=False)
    _rules: RobotsRules | None = field(default=None, repr=False, compare=False)

    def rules(self, agent: str) -> RobotsRules:
        """Return the rules for the product token `agent`, parsed at the first call."""
        return whole(self.reading(agent))

    def reading(self, agent: str) -> Slices[RobotsRules]:
        """Return the same as `rules`, in slices."""
        if self._rules is None or self._agent != agent:
            rules = yield from self._made(agent)
            self._agent, self._rules = agent, rules
        return self._rules

    def read(self, agent: str) -> Slices["RobotsRecord"]:
        """Return this record with its rules for `agent` read, in slices; its text is dropped."""
        yield from self.reading(agent)
        self.body = b""
        return self

    def _made(self, agent: str) -> Slices[RobotsRules]:
        if self.state is RobotsState.RULES:
            return (yield from RobotsRules.reading(self.body, agent))
        if self.state is RobotsState.ALLOW_ALL:
            return RobotsRules.allow_all()
        return RobotsRules.disallow_all(self.reason)

    def fresh(self, now: float) -> bool:
        """Return whether the record may be believed at `now`; if not, robots.txt is fetched again."""
        return now < self.expires_at


def redirect_of(exchange: Exchange, hops: int) -> str | None:
    """Return where to look for the robots.txt after this redirect, or None to go no further.

    `hops` redirects were followed before this one. Other hosts and schemes are followed, but not ports of other
    protocols. DNS and politeness decide whether they may be spoken to. The rules are those of
    `exchange.visit.robots_of`.
    """
    if exchange.outcome is not Outcome.REDIRECTED or hops >= MAX_REDIRECTS:
        return None
    target = _target_of(exchange)
    return target if target and split(target).port not in OTHERS_PORTS else None


def _target_of(exchange: Exchange) -> str | None:
    """Return where a redirect leads, or None if no robots.txt can be asked for there."""
    target = canonical(exchange.location, exchange.visit.url)
    return target if target and target.startswith(("http://", "https://")) else None


def rules_from(
    exchange: Exchange,
    body: bytes,
    *,
    now: float,
    previous: RobotsRecord | None = None,
    least_failures: int = 1,
    retry_s: tuple[float, float] = (FIRST_RETRY_S, LONGEST_RETRY_S),
) -> RobotsRecord:
    """Return the record that the last answer of a robots visit makes; `body` has its codings undone.

    `previous` is the origin's record until now: its failures count on, and are at least `least_failures` after a failed
    attempt. `retry_s` is the wait after the first failed attempt, and the longest, to which it doubles. A longer
    Retry-After is kept.
    """
    origin = exchange.visit.robots_of
    state, reason = _judged(exchange)
    if state is RobotsState.DISALLOW_ALL:
        failures = max(least_failures, previous.failures + 1 if previous else 1)
        wait = _retry_s(exchange, failures, now, retry_s)
        return RobotsRecord(origin, state, now, now + wait, exchange.status, reason, failures=failures)
    expires_at = now + _ttl_s(exchange, now)
    kept = body[: MAX_BYTES + 1] if state is RobotsState.RULES else b""
    return RobotsRecord(origin, state, now, expires_at, exchange.status, reason, kept)


def _judged(exchange: Exchange) -> tuple[RobotsState, str]:
    outcome, status = exchange.outcome, exchange.status
    if status in (0, *range(200, 300)) and outcome in (Outcome.OK, Outcome.TOO_LARGE):
        return RobotsState.RULES, "robots.txt"
    if outcome is Outcome.REDIRECTED:
        target = _target_of(exchange) if exchange.visit.depth < MAX_REDIRECTS else None
        if target and (port := split(target).port) in OTHERS_PORTS:
            return RobotsState.DISALLOW_ALL, f"robots.txt redirects to port {port}, which belongs to another protocol"
        return RobotsState.ALLOW_ALL, f"robots.txt leads nowhere: over {MAX_REDIRECTS} redirects, or one without target"
    if outcome is Outcome.CLIENT_ERROR and status != 429:
        return RobotsState.ALLOW_ALL, f"no robots.txt: the server answered {status or exchange.detail or outcome}"
    if outcome in (Outcome.ADDRESS_REFUSED, Outcome.UNSUPPORTED) and not exchange.visit.led:  # as its pages will say
        return RobotsState.ALLOW_ALL, f"robots.txt was not requested: {exchange.detail}"
    what = exchange.detail or (f"the server answered {status}" if status else outcome.value)  # a 200 may break off
    return RobotsState.DISALLOW_ALL, f"robots.txt could not be fetched: {what}"


def _retry_s(exchange: Exchange, failures: int, now: float, retry_s: tuple[float, float]) -> float:
    """Return the seconds until robots.txt is asked for again: doubling, or longer if the server says so."""
    first, longest = retry_s
    wait = min(first * 2.0 ** min(failures - 1, 30), longest)
    return max(wait, retry_after(exchange, now) or 0.0)


def _ttl_s(exchange: Exchange, now: float) -> float:
    """Return the seconds that the answer is believed: RFC 9111 between `MIN_TTL_S` and `MOST_TTL_S`."""
    said = _freshness_s(exchange, now)
    return MOST_TTL_S if said is None else min(max(said, MIN_TTL_S), MOST_TTL_S)


def _freshness_s(exchange: Exchange, now: float) -> float | None:
    """Return max-age minus Age, otherwise Expires minus Date (RFC 9111, 4.2.1); None if the server says nothing."""
    directives = [part.strip().lower() for value in exchange.headers("cache-control") for part in value.split(",")]
    if "no-cache" in directives or "no-store" in directives:
        return 0.0
    for directive in directives:
        name, _, value = directive.partition("=")
        if name == "max-age":
            return _number(value.strip('" ')) - _number(exchange.header("age"))
    expires = exchange.header("expires")
    if not expires:
        return None
    end, begin = http_date(expires), http_date(exchange.header("date"))
    return 0.0 if end is None else end - (now if begin is None else begin)


def _number(text: str) -> float:
    return float(text[:9]) if text.isascii() and text.isdigit() else 0.0
