"""How hosts come to the workbench, and what is written down of them.

A host is entered when its first visit comes: out of the host book, if it was met before. Its changes are written with
the next checkpoint, or as soon as `MOST_CHANGED` hosts changed. A Crawl-delay is written at once, and so is a rest:
into the book if it is long, otherwise into the journal of rests.

Invariant: a host and its address rest for as long as they must, also if the process dies in between.
"""

import heapq
from collections.abc import Callable
from math import inf

from fyke.core.clock import Clock
from fyke.core.urls import host_keys, pay_level_domain
from fyke.fetcher.book import HostBook
from fyke.fetcher.host import Address, Host
from fyke.fetcher.names import Resolution, Resolver
from fyke.fetcher.rests import BOOKED_WAIT_S, Rests, address_name
from fyke.fetcher.workbench import Workbench

MOST_CHANGED = 1024  # changed hosts that are not in the book yet: writing them takes some 25 ms


class HostDesk:
    """Enters hosts at `bench`, out of `book`, and keeps `book` and `rests` true."""

    def __init__(
        self,
        bench: Workbench,
        resolver: Resolver,
        book: HostBook,
        rests: Rests,
        clock: Clock,
        ours: Callable[[str], bool],
    ) -> None:
        """`ours` says whether an address may be asked from here."""
        self._bench = bench
        self._resolver = resolver
        self._book = book
        self._rests = rests
        self._clock = clock
        self._ours = ours
        self._changed: dict[int, Host] = {}  # since the book was written

    def host(self, name: str, now: float) -> Host:
        """Return the host `name`, entered at the workbench if it is not there."""
        key, _ = host_keys(name)
        return self._bench.get(key) or self._enter(key, name, now)

    def _enter(self, key: int, name: str, now: float) -> Host:
        host = self._changed.get(key) or self._book.host(name)
        if host is None:
            host = Host(key, name, pay_level_domain(name), first_seen=now)
        host.due = max(host.due, self._rests.due(name))
        self._resolver.load([(name, host.addresses, host.addresses_until)])
        self._bench.enter(host)
        return host

    def changed(self, host: Host) -> None:
        """Note that the book's row of `host` is out of date."""
        self._changed[host.key] = host
        if len(self._changed) >= MOST_CHANGED:
            self._write()

    def learn_addresses(self, host: Host, answer: Resolution) -> bool:
        """Give `host` the addresses of `answer`, and ask it at the first one that is ours. If it had the same ones
        before, they stay in its order. Returns whether there is one."""
        addresses = host.addresses if {*host.addresses} == {*answer.addresses} else answer.addresses
        address = next(filter(self._ours, addresses), None)
        if address is None:
            return False
        host.addresses, host.addresses_until = addresses, answer.expires_at
        host.look_up_at = answer.refresh_at
        self._bench.settle(host, address, self._rests.due(address_name(address)))
        self.changed(host)
        return True

    def move_on(self, host: Host) -> None:
        """Have `host` asked at its next address from now on, because nobody answers at its present one (RFC 1123, 2.3:
        each should be tried). Once nobody answered at any, its name is looked up anew, for those of version 6 too."""
        if host.address is None or host.address.text not in host.addresses:
            return
        if host.failed >= len(host.addresses) and self._resolver.widen(host.name):
            host.addresses_until = 0.0
        at = host.addresses.index(host.address.text) + 1
        host.addresses = (*host.addresses[at:], *host.addresses[:at])
        self.changed(host)
        address = next(filter(self._ours, host.addresses))
        if self._bench.get(host.key) is host:
            self._bench.settle(host, address, self._rests.due(address_name(address)))

    def look_ahead(self, now: float, names: int) -> None:
        """Have the names of hosts with work looked up before their addresses expire, at most `names` of them."""
        due = [host for host in self._bench if host.look_up_at <= now and host.visits]
        soonest = heapq.nsmallest(names, due, key=lambda host: host.addresses_until)
        for host in soonest:
            host.look_up_at = inf  # until the present answer has expired, and the new one is taken
        self._resolver.refresh(host.name for host in soonest)

    def note_request(self, host: Host, now: float) -> None:
        """Note that a request to `host` is about to begin, so that it rests afterwards whenever the process dies."""
        least = [(host.name, self._bench.delays.of_host(host, 0.0))]
        if host.address is not None and host.address.busy:
            least.append((address_name(host.address.text), self._bench.delays.of_address(host.address)))
        self._rests.note_book(self._book.writes, now)
        self._rests.begin(least, now)

    def note_rest(self, host: Host, now: float, address: Address | None = None) -> None:
        """Write down until when `host` rests, and `address`, at which its request ended.

        A rest must outlive the process. A long rest goes into the book, because the workbench may forget the host
        before it ends.
        """
        if host.busy:
            self.note_request(host, now)  # its least rest may have changed
            return
        due = host.due
        if due - now > BOOKED_WAIT_S:
            self._book.save_hosts([host])
            due = 0.0
        ends = [(host.name, due)]
        if address is not None and address.due:
            ends.append((address_name(address.text), address.due))
        self._rests.note_book(self._book.writes, now)
        self._rests.end(ends, now)

    def note_delay(self, host: Host) -> None:
        """Write `host` down at once if it asks for a Crawl-delay, which the next process must know before it has the
        rules again."""
        if host.crawl_delay_s:
            self._book.save_hosts([host])

    def save(self) -> None:
        """Write down every host that changed."""
        self._write()
        self._bench.prune(self._clock.now())

    def _write(self) -> None:
        self._book.save_hosts(self._changed.values())
        self._rests.note_book(self._book.writes, self._clock.now())
        self._changed.clear()
