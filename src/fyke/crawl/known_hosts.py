"""What is known of the hosts at the workbench, and is written down in the host book.

The fetcher enters a host here when its first visit comes; from then on its record and the rules of its
origins are with it in memory. What changes is written with the next checkpoint, a long rest at once.

Invariant: a host that must rest for longer than `BOOKED_WAIT_S` does so also after a crash.
"""

from dataclasses import dataclass, field

from fyke.core.clock import Clock
from fyke.core.config import PolitenessSection
from fyke.core.urls import pay_level_domain
from fyke.hosts.book import HostBook, HostRecord
from fyke.hosts.dns import Answer, Resolver
from fyke.hosts.politeness import Host, Workbench
from fyke.hosts.robots import RobotsRecord

BOOKED_WAIT_S = 5.0  # a rest longer than this is written down, so that it outlives the process


@dataclass(slots=True)
class Known:
    """What is kept with a host at the workbench."""

    record: HostRecord
    rules: dict[str, RobotsRecord] = field(default_factory=dict)  # by origin
    asking: set[str] = field(default_factory=set)  # origins whose rules are on their way
    listed: set[str] = field(default_factory=set)  # origins whose sitemaps were handed on
    answered: set[str] = field(default_factory=set)  # origins whose rules have come and decided nothing yet


class KnownHosts:
    """The hosts at `bench`, with their records out of `book`."""

    def __init__(
        self,
        bench: Workbench,
        resolver: Resolver,
        book: HostBook,
        clock: Clock,
        politeness: PolitenessSection,
        rested_since: float,
    ) -> None:
        self._bench = bench
        self._resolver = resolver
        self._book = book
        self._clock = clock
        self._politeness = politeness
        self._rested_since = rested_since  # of a crawl that resumes: what came before is not known
        self._touched: dict[str, HostRecord] = {}  # changed since the book was written

    def at(self, key: int, name: str, now: float) -> Host:
        """The host `name`, taken to the workbench if it is not there."""
        return self._bench.get(key) or self._enter(key, name, now)

    def _enter(self, key: int, name: str, now: float) -> Host:
        record = self._touched.get(name) or self._book.host(name)
        due = self._rested_since + self._politeness.host_delay_s if self._rested_since else 0.0
        if record is None:
            record = HostRecord(name, pay_level_domain(name), first_seen=now)
        else:
            due = max(due, record.next_allowed_at, self._rested_since + (record.crawl_delay_s or 0.0))
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
        self._bench.settle(host, answer.addresses[0], answer.expires_at)
        record: HostRecord = host.known.record
        record.addresses, record.addresses_until = answer.addresses, answer.expires_at
        self.touch(host)

    def book_rest(self, host: Host, now: float) -> None:
        """Write a long rest down: it must outlive the process, and the host's place at the workbench."""
        record: HostRecord = host.known.record
        if host.due - now > BOOKED_WAIT_S or record.retired:
            record.next_allowed_at = host.due
            self._book.save_host(record)

    def write(self) -> None:
        """Write down every host that changed."""
        self._book.save_hosts(self._touched.values())
        self._touched.clear()
        self._bench.prune(self._clock.now())
