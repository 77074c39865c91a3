"""Which host may be asked next, and when: the workbench.

Visits wait here in one FIFO a host. A host may be asked when its delay has passed and no request to it is under way. If
it shares its server's address, that address must be free too. The caller asks `next(now)`, fetches one visit of the
host that is returned, and calls `finished`.

How long they rest is said by `delays`, and whose turn it is at an address by `turns`. An address with a delay is asked
one thing at a time, and rests from the end of the request. If it rested from the start, a delayed packet could shorten
the gap that the server sees.

Invariant: every host that has visits and is not busy, parked or queued at its address is in the heap exactly once. No
clock is read here.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from fyke.core.config import PolitenessSection
from fyke.core.hours import HostHours
from fyke.core.rests import SOON_S, soon_visits
from fyke.core.visits import Purpose, Visit
from fyke.fetcher.delays import Delays
from fyke.fetcher.host import Address, Host

FORGET_AFTER_S = SOON_S
MOST_VISITS = 1 << 20  # of one host; more than the frontier hands out


@dataclass(frozen=True, slots=True)
class WorkbenchStatistics:
    """Counts of the workbench."""

    hosts: int
    visits: int
    busy: int
    parked: int
    asleep: int
    addresses: int
    rest_until: float  # unix seconds; no host with work may be asked before. 0: one may be, or is


class Workbench:
    """Visits in memory, per host, with the times at which they may be made.

    Filled and emptied by the fetcher; bounded by what the frontier hands out (`fyke.frontier.window`).
    """

    def __init__(
        self,
        config: PolitenessSection,
        default_budget_urls: int = 10,
        own_delay_s: Callable[[str], float | None] = lambda _: None,
        hours: HostHours | None = None,
    ) -> None:
        """`own_delay_s(host)` is the rest in seconds that a person set in place of the usual one. `hours` are those of
        the day in which hosts may be asked; None means all."""
        self._config = config
        self._hours = hours
        self.delays = Delays(config, default_budget_urls, own_delay_s)
        self._hosts: dict[int, Host] = {}
        self._addresses: dict[str, Address] = {}
        self._heap: list[tuple[float, int, Host | Address]] = []
        self._order = count()
        self.crowded: list[Host] = []  # asleep because too many share the address, until the caller takes them
        self.visits = 0
        self.busy = 0

    def __repr__(self) -> str:
        return f"Workbench({self.visits} visits of {len(self._hosts)} hosts, {self.busy} under way)"

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def get(self, key: int) -> Host | None:
        """Return the host with this key, or None if it is not here."""
        return self._hosts.get(key)

    def enter(self, host: Host) -> None:
        """Take in `host`, which must not be here yet. It may not be asked before it is due."""
        self._hosts[host.key] = host

    def add(self, host: Host, visit: Visit, *, first: bool = False) -> None:
        """Let `visit` wait for its turn at `host`. `first` puts it before the others."""
        if first:
            host.visits.appendleft(visit)
        else:
            host.visits.append(visit)
        self.visits += 1
        host.domain_key = visit.domain
        if visit.budget and visit.budget != host.budget:
            self._rebudget(host, visit.budget)
        self.enqueue(host)

    def _rebudget(self, host: Host, budget: int) -> None:
        host.budget = budget
        address = host.address
        if address is not None:
            address.budget_total += budget - address.budgets[host.domain_key]
            address.budgets[host.domain_key] = budget

    def next(self, now: float) -> Host | None:
        """Return a host that may be asked now, or None.

        The caller then takes visits of it (`pop`) and starts one, parks the host, or puts it back (`enqueue`).
        """
        while self._heap and self._heap[0][0] <= now:
            _, _, entity = heapq.heappop(self._heap)
            host = (
                self._turn_of_address(entity, now) if isinstance(entity, Address) else self._turn_of_host(entity, now)
            )
            if host is not None:
                return host
        return None

    def _turn_of_host(self, host: Host, now: float) -> Host | None:
        host.queued = False
        if self._hosts.get(host.key) is not host:
            return None  # forgotten in the meantime
        if host.busy or host.parked:
            return None  # `finished` or `unpark` brings it back
        if host.rests_until > now:
            self.enqueue(host)
            return None
        if not host.visits:
            self._forget(host)
            return None
        address = host.address
        if address is None or not self._config.address_delay_s:
            return host
        leaves_until = address.waiting.leaves_until(host.domain_key)
        if leaves_until > now:
            self._wait(host, leaves_until, now)
            return None
        if address.busy or address.due > now or address.waiting:
            wait_s = address.waiting.before(host.domain_key) * self.delays.of_address(address)
            if wait_s > SOON_S:  # too many share it: this host sleeps until the others had their turn
                self._wait(host, now + wait_s, now)
                return None
            host.queued = True
            address.waiting.put(host)
            if len(address.waiting) == 1 and not address.busy:
                self._push(address.due, address)
            return None
        return host

    def _wait(self, host: Host, until: float, now: float) -> None:
        """Let `host` rest until others had their turn at its address."""
        host.due = max(host.due, until)
        if until - now > SOON_S:
            self.crowded.append(host)
        self.enqueue(host)

    def _turn_of_address(self, address: Address, now: float) -> Host | None:
        if address.busy:
            return None  # `finished` brings it back
        if address.due > now:
            self._push(address.due, address)
            return None
        while address.waiting:
            host = address.waiting.take()
            host.queued = False
            if (leaves_until := address.waiting.leaves_until(host.domain_key)) > now:
                self._wait(host, leaves_until, now)
                continue
            if host.visits and host.address is address and not (host.busy or host.parked) and host.rests_until <= now:
                if address.waiting:
                    self._push(max(now, address.due), address)
                return host
            self.enqueue(host)
        return None

    def next_due(self) -> float | None:
        """Return when `next` may have a host, or None if nothing waits for a time."""
        return self._heap[0][0] if self._heap else None

    def pop(self, host: Host, now: float) -> Visit | None:
        """Take out a visit of `host` that may be made now.

        Returns None if there is none, or if all are retries whose time has not come. Visits that give way are taken
        last. A visit that a redirect led here is followed by one of the host's own: otherwise strangers could lead here
        so many that its own were never made.
        """
        if host.last_was_led and (own := self._first_own(host, now)):
            visit = host.visits[own]
            del host.visits[own]
            self.visits -= 1
            return visit
        for give_way in (True, False):
            for _ in range(len(host.visits)):
                visit = host.visits.popleft()
                if visit.not_before <= now and not (give_way and host.gives_way(visit, now)):
                    self.visits -= 1
                    return visit
                host.visits.append(visit)
        if host.visits:
            host.due = max(host.due, min(visit.not_before for visit in host.visits))
        return None

    @staticmethod
    def _first_own(host: Host, now: float) -> int:
        """Return the index of the first visit that may be made now and was not led here; 0 if that is the first one, or
        none."""
        passed = (visit.led or visit.not_before > now or host.gives_way(visit, now) for visit in host.visits)
        return next((place for place, is_passed in enumerate(passed) if not is_passed), 0)

    def start(self, host: Host) -> None:
        """Mark `host` and its address as busy until `finished`."""
        self.busy += 1
        host.busy = True
        if host.address is not None and self._config.address_delay_s:
            host.address.busy = True

    def enqueue(self, host: Host) -> None:
        """Put `host` into the heap until it has rested, unless it waits for something or is being asked."""
        if not (host.queued or host.busy or host.parked):
            host.queued = True
            self._push(host.rests_until, host)

    def finished(
        self, host: Host, now: float, duration_s: float, wait_s: float = 0.0, awake_s: float = math.inf
    ) -> None:
        """End the request to `host`, which took `duration_s`. The host rests for at least `wait_s`. The process has not
        stood still for `awake_s`."""
        self.busy -= 1
        host.busy = False
        host.due = now + max(wait_s, self.delays.of_host(host, duration_s))
        address = host.address
        if address is not None and address.busy:
            address.busy = False
            own_s = self.delays.own_s(host.name)
            address.due = now + (self.delays.of_address(address) if own_s is None else own_s)
            address.waiting.held(host.domain_key, now, min(duration_s, awake_s))
            if address.waiting:
                self._push(address.due, address)
        if host.visits or host.due - now <= FORGET_AFTER_S:
            self.enqueue(host)
        else:
            self._forget(host)

    def park(self, host: Host) -> None:
        """Take `host` out of the order until `unpark`: its name or rules are not known yet."""
        host.parked = True

    def unpark(self, host: Host) -> None:
        host.parked = False
        self.enqueue(host)

    def sleep_until(self, host: Host, due: float) -> None:
        """Let no request to `host` begin before `due`."""
        host.due = max(host.due, due)
        self.enqueue(host)

    def apply_hours(self, host: Host, now: float) -> bool:
        """Let `host` rest until its hours of the day begin, if they keep it from being asked once it has rested.
        Returns whether they do."""
        if not self._hours:
            return False
        rested = max(now, host.due)
        opens_at = self._hours.opens_at(host.name, rested)
        host.closed_until = opens_at if opens_at > rested else 0.0
        return opens_at > rested

    def settle(self, host: Host, text: str, due: float = 0.0) -> None:
        """Ask `host` at the address `text` from now on. If that address is new here, it rests until `due`."""
        if host.address is not None and host.address.text == text:
            return
        self._leave_address(host)
        address = self._addresses.get(text)
        if address is None:
            address = self._addresses[text] = Address(text, due)
        address.hosts += 1
        domain = host.domain_key
        if domain not in address.members:
            address.members[domain] = 0
            address.budgets[domain] = host.budget or self.delays.default_budget_urls
            address.budget_total += address.budgets[domain]
        address.members[domain] += 1
        host.address = address

    def _leave_address(self, host: Host) -> None:
        address, domain = host.address, host.domain_key
        if address is None:
            return
        address.hosts -= 1
        address.members[domain] -= 1
        if not address.members[domain]:
            del address.members[domain]
            address.budget_total -= address.budgets.pop(domain)
        host.address = None

    def drain(self, host: Host) -> list[Visit]:
        """Take out all visits of `host`."""
        visits = list(host.visits)
        host.visits.clear()
        self.visits -= len(visits)
        return visits

    def take_late(self, host: Host, now: float) -> list[Visit]:
        """Take out the visits that `host` does not come to soon: all if it sleeps, otherwise those that are too
        many."""
        self.apply_hours(host, now)
        return self.take_beyond(host, host.rests_until - now)

    def take_beyond(self, host: Host, rest_s: float) -> list[Visit]:
        """Take out the visits that `host` would not come to soon if it rested `rest_s` after each, as `take_late`."""
        room = soon_visits(rest_s, MOST_VISITS)
        if len(host.visits) <= 2 * room:  # twice the room, so that a small surplus does not go to and fro
            return []
        kept, gone = list[Visit](), list[Visit]()
        for visit in host.visits:
            stays = len(kept) < room or (room > 0 and visit.purpose is Purpose.ROBOTS and not visit.led)
            (kept if stays else gone).append(visit)
        return self._keep(host, kept, gone)

    def take_late_retries(self, host: Host, now: float) -> list[Visit]:
        """Take out the visits of `host` that may not be made soon, though others may."""
        return self._take(host, lambda visit: visit.not_before > now + SOON_S)

    def take_rules(self, host: Host, now: float) -> list[Visit]:
        """Take out the visits of `host` that bring rules."""
        return self._take(host, lambda visit: visit.purpose is Purpose.ROBOTS)

    def take_pages(self, host: Host) -> list[Visit]:
        """Take out the visits of `host` that bring no rules."""
        return self._take(host, lambda visit: visit.purpose is not Purpose.ROBOTS)

    def _take(self, host: Host, goes: Callable[[Visit], bool]) -> list[Visit]:
        kept = [visit for visit in host.visits if not goes(visit)]
        return self._keep(host, kept, [visit for visit in host.visits if goes(visit)])

    def _keep(self, host: Host, kept: list[Visit], gone: list[Visit]) -> list[Visit]:
        host.visits = deque(kept)
        self.visits -= len(gone)
        return gone

    def leave(self, host: Host, now: float) -> bool:
        """Forget `host` if it has no visits, and rests for long or has no address. Returns whether it is gone. The
        caller writes its rest down."""
        if not host.visits and (host.address is None or host.rests_until - now > FORGET_AFTER_S):
            self._forget(host)
        return host.key not in self._hosts

    def _push(self, due: float, entity: Host | Address) -> None:
        heapq.heappush(self._heap, (due, next(self._order), entity))

    def _forget(self, host: Host) -> None:
        if host.busy or host.parked:
            return
        self._leave_address(host)
        host.origins.clear()
        host.check = None
        self._hosts.pop(host.key, None)

    def prune(self, now: float) -> None:
        """Forget hosts that got no visit, unused addresses whose rest is over, and turns of hosts that are gone."""
        for host in [host for host in self._hosts.values() if host.has_nothing_to_do and host.rests_until <= now]:
            self._forget(host)
        gone = [text for text, address in self._addresses.items() if not address.hosts and address.due <= now]
        for text in gone:
            del self._addresses[text]
        for address in self._addresses.values():
            address.waiting.prune(now)
        heap, self._heap = self._heap, []
        for turn in heap:
            entity = turn[2]
            if isinstance(entity, Address) or self._hosts.get(entity.key) is entity:
                self._heap.append(turn)
            else:
                entity.queued = False  # it may come back
        heapq.heapify(self._heap)

    def statistics(self, now: float) -> WorkbenchStatistics:
        asleep = sum(1 for host in self._hosts.values() if host.rests_until > now and not host.busy)
        parked = sum(1 for host in self._hosts.values() if host.parked)
        return WorkbenchStatistics(
            len(self._hosts), self.visits, self.busy, parked, asleep, len(self._addresses), self._rest_until(now)
        )

    def _rest_until(self, now: float) -> float:
        """Return when the first host with work may be asked (unix seconds); 0 unless all rest."""
        working = [host for host in self._hosts.values() if host.visits or host.busy]
        if not working or any(host.busy or host.parked for host in working):
            return 0.0
        until = min(max(host.rests_until, host.address.due if host.address else 0.0) for host in working)
        return until if until > now else 0.0
