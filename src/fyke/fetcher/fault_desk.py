"""What does an answer cost its host, and what becomes of visits to a host that fails or rests?

This module carries out the table of `fyke.fetcher.faults`. A fault counts against the host, unless the host answers at
another of its origins (at another port). Then it counts against the origin alone, because strangers can name any port
of a good host. The same holds for one of several ports of a host that never answered, unless the port is its scheme's
own. The pages of such an origin wait until its robots.txt is asked for again, later each time, and end if that fails
too often.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from fyke.core.clock import Clock
from fyke.core.config import PolitenessSection
from fyke.core.outcomes import Outcome
from fyke.core.urls import has_default_port
from fyke.core.visits import Exchange, Purpose, Visit
from fyke.fetcher.faults import FAULTS, FaultPolicy, Wait, is_of_page, retry_after
from fyke.fetcher.host import Host
from fyke.fetcher.host_desk import HostDesk
from fyke.fetcher.returns import Returns
from fyke.fetcher.robots import RobotsRecord
from fyke.fetcher.rules_desk import RulesDesk
from fyke.fetcher.wire.http import last_outcome, refuses_condition
from fyke.fetcher.workbench import Workbench

MOST_TROUBLE_CHARS = 300
ORIGINS_SHARE = 8  # for this many times a failure's duration and rest, answering origins are asked first


class FaultDesk:
    """Retires hosts, lets them rest, and ends or puts off the visits that wait for them."""

    def __init__(
        self,
        bench: Workbench,
        hosts: HostDesk,
        rules: RulesDesk,
        returns: Returns,
        politeness: PolitenessSection,
        clock: Clock,
    ) -> None:
        self._bench = bench
        self._hosts = hosts
        self._rules = rules
        self._returns = returns
        self._policy = FaultPolicy(politeness)
        self._most_failures = politeness.host_failures
        self._clock = clock

    def account(self, host: Host, exchange: Exchange, now: float) -> float:
        """Charge `host` for the answer, and return the seconds that it must rest beyond its usual delay."""
        outcome, tries = exchange.outcome, exchange.visit.tries
        asked_s = retry_after(exchange, now) if exchange.status >= 300 else None
        host.last_seen = now
        host.pages += outcome is Outcome.OK and exchange.visit.purpose is Purpose.PAGE
        self._hosts.changed(host)
        if FAULTS[outcome].costs_host or outcome.answered:
            host.heard(exchange.visit.parts.origin, answered=_speaks(exchange))
        if self._is_of_origin(host, exchange):
            host.port_failures += not has_default_port(exchange.visit.parts)
            took_s = exchange.duration_s + self._bench.delays.of_host(host, exchange.duration_s)
            host.gives_way_until = now + ORIGINS_SHARE * took_s
            return asked_s or 0.0
        host.failures = 0 if is_of_page(exchange) else self._policy.failures(outcome, host.failures, tries)
        host.faults = self._policy.faults(outcome, host.faults, tries)
        said = exchange.detail or (f"status {exchange.status}" if exchange.status else "")
        self._note_trouble(host, outcome, said, asks=bool(asked_s))
        return self._policy.wait_s(outcome, host.faults, tries, asked_s)

    def learn_rules(self, host: Host, exchange: Exchange, now: float) -> None:
        """Learn what the answer says of its origin's rules. If the origin is at fault, its robots.txt is asked for
        before any of its pages."""
        visit = exchange.visit
        if visit.purpose is Purpose.ROBOTS:
            self._rules.fetched(exchange, now, self._least_failures(host, exchange))  # it may ask for a longer rest
            return
        known = host.rules_of(visit.parts.origin)
        if _speaks(exchange):
            known.failures = 0
        elif self._is_of_origin(host, exchange):
            known.failures = self._policy.failures(exchange.outcome, known.failures, visit.tries)
            self._rules.lost(host, exchange, now, max(known.failures, self._least_failures(host, exchange)))

    def _least_failures(self, host: Host, exchange: Exchange) -> int:
        """Return the least number of failures that the origin of `exchange` counts as having. Anybody can name any port
        of a host, and each failing port costs a request. Once as many failed as retire a host, one failure is enough
        for each further port. Schemes' own ports, which are few, are exempt."""
        spent = self._policy.retires(host.port_failures - 1) and self._is_of_origin(host, exchange)
        return self._most_failures if spent and not has_default_port(exchange.visit.parts) else 1

    @staticmethod
    def _is_of_origin(host: Host, exchange: Exchange) -> bool:
        """Return whether the answer is a fault of the origin that was asked, and not of its host."""
        if _speaks(exchange):
            return False
        parts = exchange.visit.parts
        is_one_of_many = (
            host.never_answered and not has_default_port(parts) and (len(host.origins) > 1 or host.port_failures > 0)
        )
        return FAULTS[exchange.outcome].costs_host and (is_one_of_many or host.answers_beside(parts.origin))

    def again_s(self, host: Host, exchange: Exchange, wait_s: float) -> float | None:
        """Return the seconds until the page is visited again, if `host` rests `wait_s` for this answer; None if it is
        not."""
        outcome, visit = exchange.outcome, exchange.visit
        again = self._policy.again(outcome, visit.tries, says_nothing=refuses_condition(exchange))
        if host.retired or visit.purpose is not Purpose.PAGE or not again:
            return None
        return max(wait_s, self._policy.retry_s(outcome, visit.tries))

    def finish(self, exchange: Exchange) -> None:
        """Hand back a visit that is not made again. Of a page whose body did not come whole, what came is kept."""
        if exchange.visit.purpose is Purpose.PAGE:
            exchange.outcome = last_outcome(exchange)
        self._returns.put(exchange)

    def _note_trouble(self, host: Host, outcome: Outcome, detail: str, *, asks: bool = False) -> None:
        """Keep why `host` rests: because of a fault, or because it `asks`. Retire it after one fault too many."""
        why = f" ({detail[:MOST_TROUBLE_CHARS]})" if detail else ""
        host.trouble = f"{outcome}{why}" if asks or FAULTS[outcome].wait is not Wait.NONE else ""
        if self._policy.retires(host.failures):
            host.retired = f"{host.failures} failures in a row, the last: {host.trouble}"

    def unnamed(self, host: Host, outcome: Outcome, detail: str, expires_at: float) -> None:
        """Note that the name of `host` has no address, which is believed until `expires_at` (unix seconds)."""
        if outcome is not Outcome.DNS_FAILED:
            self.abandon(host, outcome, detail)
            return
        host.failures += 1
        self._note_trouble(host, outcome, detail)
        # Sleep until the answer expires: sooner, the cache would fail, and not the name.
        now = self._clock.now()
        self._bench.sleep_until(host, max(now + self._policy.sleep_s(host.failures), expires_at))
        self._hosts.changed(host)
        self.put_off(host, self._bench.take_rules, now)  # otherwise failing names would hold all room for rules
        self.settle(host, now)

    def settle(self, host: Host, now: float) -> None:
        """After something ended at `host`, end its visits if it was retired, otherwise put off those that it comes to
        too late."""
        if host.retired:
            self.abandon(host, Outcome.HOST_RETIRED, host.retired)
        else:
            self.put_off(host, self._bench.take_late, now)

    def put_off(self, host: Host, chosen: Callable[[Host, float], Sequence[Visit]], now: float) -> None:
        """Give back the visits that `host` does not come to soon, as `chosen` by the workbench."""
        visits = chosen(host, now)
        self._put_off(host, visits, host.rests_until, now)

    def _put_off(self, host: Host, visits: Sequence[Visit], until: float, now: float) -> None:
        for visit in visits:
            if visit.purpose is Purpose.ROBOTS:
                self._rules.rest_until(visit, max(until, visit.not_before), now)
            else:
                self._returns.put_off(visit, until)
        if visits:
            self._returns.tell()
            self._bench.leave(host, now)

    def put_off_slow(self, host: Host, held_s: float, now: float) -> None:
        """Give back the visits that the request to `host` keeps waiting, under way for `held_s`: those of the host, and
        of others at its address. It is thought to take as long again."""
        rest_s = max(self._bench.delays.of_host(host, held_s), held_s)
        self._put_off(host, self._bench.take_beyond(host, rest_s), now + rest_s, now)
        for other in list(host.address.waiting) if host.address is not None and host.address.busy else ():
            self._put_off(other, self._bench.take_beyond(other, held_s), now + held_s, now)

    def wait_for_rules(self, host: Host, visit: Visit, robots: RobotsRecord) -> None:
        """Put `visit` off until its origin's robots.txt is asked for again, or end it if that failed too often. Other
        origins of the host (https beside a closed port 80) go on."""
        if self._policy.retires(robots.failures):
            self._returns.end(visit, Outcome.ROBOTS_UNREACHABLE, robots.reason)
        else:
            visit.not_before = robots.expires_at
            self._bench.add(host, visit)

    def leave_alone(self, host: Host, now: float) -> None:
        """Give back the visits that wait at `host`, which a person blocked."""
        for page in self.pages_of(self._bench.drain(host)):
            self._returns.put_off(page, now)
        self._returns.tell()
        self._bench.leave(host, now)

    def abandon(self, host: Host, outcome: Outcome, detail: str) -> None:
        """End all visits that wait at `host`."""
        for visit in self._bench.drain(host):
            self.end(visit, outcome, detail)
        self._bench.enqueue(host)

    def end(self, visit: Visit, outcome: Outcome, detail: str) -> None:
        """End a visit that is not made."""
        if visit.purpose is not Purpose.ROBOTS:
            self._returns.end(visit, outcome, detail)
        else:
            self._rules.unmade(visit, outcome, detail, self._clock.now())

    def pages_of(self, visits: Iterable[Visit]) -> Iterator[Visit]:
        """Yield those of `visits`, which are not made here, that the frontier gave. Visits to a robots.txt are put
        off."""
        for visit in visits:
            if visit.purpose is not Purpose.ROBOTS:
                yield visit
            else:
                self._rules.put_off(visit, self._clock.now())


def _speaks(exchange: Exchange) -> bool:
    """Return whether the origin answered, with a page or with a fault that is the page's own. Its robots.txt decides
    about all pages, so no fault is its own."""
    return exchange.outcome.answered or (exchange.visit.purpose is not Purpose.ROBOTS and is_of_page(exchange))
