"""What is known of the hosts at the workbench, and is written down in the host book.

The fetcher enters a host here when its first visit comes; from then on its record and the rules of its
origins are with it in memory. What changes is written with the next checkpoint, a rest at once: into the book
when it is long, else into the journal of rests.

Invariant: a host and its address rest for as long as they must, also when the process dies in between.
"""

import heapq
from dataclasses import dataclass, field
from math import inf

from fyke.core.clock import Clock
from fyke.core.urls import pay_level_domain
from fyke.fetcher.book import HostBook, HostRecord
from fyke.fetcher.names import Answer, Resolver
from fyke.fetcher.rests import BOOKED_WAIT_S, Rests, address_place
from fyke.fetcher.robots import RobotsRecord
from fyke.fetcher.workbench import Address, Host, Workbench


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Whether `rules` forbid the visit `key`: asked, and not answered yet or not heard."""

    key: int
    rules: RobotsRecord


@dataclass(slots=True)
class Known:
    """What is kept with a host at the workbench."""

    record: HostRecord
    rules: dict[str, RobotsRecord] = field(default_factory=dict)  # by origin
    asking: set[str] = field(default_factory=set)  # origins whose rules are on their way, or being read
    listed: set[str] = field(default_factory=set)  # origins whose sitemaps were handed on
    answered: set[str] = field(default_factory=set)  # origins whose rules have come and decided nothing yet
    question: Question | None = None  # the last that could not be answered at once
    answer: str | None = None  # to it: the line that forbids, empty when none does


class KnownHosts:
    """The hosts at `bench`, with their records out of `book`."""

    def __init__(
        self,
        bench: Workbench,
        resolver: Resolver,
        book: HostBook,
        rests: Rests,
        clock: Clock,
    ) -> None:
        self._bench = bench
        self._resolver = resolver
        self._book = book
        self._rests = rests
        self._clock = clock
        self._touched: dict[str, HostRecord] = {}  # changed since the book was written

    def at(self, key: int, name: str, now: float) -> Host:
        """The host `name`, taken to the workbench if it is not there."""
        return self._bench.get(key) or self._enter(key, name, now)

    def _enter(self, key: int, name: str, now: float) -> Host:
        record = self._touched.get(name) or self._book.host(name)
        due = self._rests.due(name)
        if record is None:
            record = HostRecord(name, pay_level_domain(name), first_seen=now)
        else:
            due = max(due, record.next_allowed_at)
            self._resolver.load([(name, record.addresses, record.addresses_until)])
        host = self._bench.enter(key, name, due)
        host.failures = record.failures
        host.crawl_delay_s = record.crawl_delay_s or 0.0
        host.known = Known(record)
        return host

    def touch(self, host: Host) -> None:
        """The record of `host` changed."""
        self._touched[host.name] = host.known.record

    def settle(self, host: Host, answer: Answer) -> None:
        """`host` answers at the first address of `answer`."""
        address = answer.addresses[0]
        self._bench.settle(host, address, answer.expires_at, self._rests.due(address_place(address)))
        host.look_up_at = answer.refresh_at
        record: HostRecord = host.known.record
        record.addresses, record.addresses_until = answer.addresses, answer.expires_at
        self.touch(host)

    def look_ahead(self, now: float, names: int) -> None:
        """Have the names of hosts with work looked up before what is known of them expires, `names` of them at most."""
        due = [host for host in self._bench if host.look_up_at <= now and host.visits]
        soonest = heapq.nsmallest(names, due, key=lambda host: host.address_expires)
        for host in soonest:
            host.look_up_at = inf  # until what is known now has expired, and the new answer is taken
        self._resolver.refresh(host.name for host in soonest)

    def begin(self, host: Host, now: float) -> None:
        """A request to `host` is about to begin: whenever the process dies, it will rest afterwards."""
        places = [(host.name, self._bench.delay_s(host, 0.0))]
        if host.address is not None and host.address.busy:
            places.append((address_place(host.address.text), self._bench.address_delay_s(host.address)))
        self._rests.begin(places, now)

    def book_rest(self, host: Host, now: float, address: Address | None = None) -> None:
        """Write down until when `host` rests, and `address`, where its request ended: that must outlive the process,
        and a long rest the host's place at the workbench too."""
        if host.busy:
            self.begin(host, now)  # its least rest may have changed
            return
        record: HostRecord = host.known.record
        due = host.due
        if due - now > BOOKED_WAIT_S:
            record.next_allowed_at = due
            self._book.save_host(record)
            due = 0.0
        places = [(host.name, due)]
        if address is not None and address.due:
            places.append((address_place(address.text), address.due))
        self._rests.end(places, now)

    def write(self) -> None:
        """Write down every host that changed."""
        self._book.save_hosts(self._touched.values())
        self._touched.clear()
        self._bench.prune(self._clock.now())
