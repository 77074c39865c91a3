"""Does a host have an address that may be asked from here? Otherwise its name is looked up while the host is parked.

Hosts whose names have an address begin first: answers without one wait in line for a share of the time.

Invariant: at most one answer for a host's name is waited for, whoever rouses the host meanwhile.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from fyke.core.pace import Pace
from fyke.core.slices import Slicer, Slices
from fyke.fetcher.fault_desk import FaultDesk
from fyke.fetcher.host import Host
from fyke.fetcher.host_desk import HostDesk
from fyke.fetcher.names import Resolution, Resolver
from fyke.fetcher.returns import Returns
from fyke.fetcher.workbench import Workbench

UNNAMED_PARTS = 4  # noting that names have no address takes one part in this many of the time
UNNAMED_STEPS = 50  # to note that a name has no address; a step is about a microsecond
Asking = asyncio.Future[Resolution]


class NameDesk:
    """Looks up the names of hosts at `bench`. `resumed` is called after each answer that was waited for."""

    def __init__(
        self,
        bench: Workbench,
        hosts: HostDesk,
        faults: FaultDesk,
        resolver: Resolver,
        returns: Returns,
        resumed: Callable[[], None],
        pace: Pace,
    ) -> None:
        """`pace` tells the time, of which names without an address have a share."""
        self._bench = bench
        self._hosts = hosts
        self._faults = faults
        self._resolver = resolver
        self._returns = returns
        self._pace = pace
        self._resumed = resumed
        self._unnamed = Slicer(resumed, pace.share(UNNAMED_PARTS))
        self._asked: dict[int, tuple[Asking, Callable[[Asking], None]]] = {}  # by the key of the host that waits

    def __len__(self) -> int:
        """Return the number of names that are being looked up."""
        return len(self._asked)

    def has_address(self, host: Host, now: float) -> bool:
        """Return whether the address of `host` is known. If not, the host is parked until it is."""
        if host.address is not None and host.addresses_until > now:
            return True
        answer = self._resolver.cached(host.name)
        if answer is not None and answer.addresses:
            self._settle(host, answer)
            self._bench.enqueue(host)  # the address has its own order
            return False
        self._bench.park(host)
        if host.key in self._asked:  # somebody roused it meanwhile
            return False
        asked: Asking
        if answer is None:
            asked = self._resolver.asking(host.name)
        else:  # no address, which is remembered for a while
            asked = asyncio.get_running_loop().create_future()
            asked.set_result(answer)
        answered = partial(self._answered, host.key)
        asked.add_done_callback(answered)
        self._asked[host.key] = asked, answered
        return False

    def _settle(self, host: Host, answer: Resolution) -> None:
        """Ask `host` at an address of `answer`, or give its visits back if none is ours."""
        if not self._hosts.learn_addresses(host, answer):
            visits = self._bench.drain(host)
            self._returns.stray(self._faults.pages_of(visit for visit in visits if not visit.errand), visits)

    def _answered(self, key: int, asked: Asking) -> None:
        if asked.cancelled() or asked.exception() is not None or asked.result().addresses:
            self._take(key, asked)
            self._resumed()
        else:
            self._unnamed.line_up(self._taking(key, asked), lambda _: None)

    def _taking(self, key: int, asked: Asking) -> Slices[None]:
        self._take(key, asked)
        yield UNNAMED_STEPS

    def _take(self, key: int, asked: Asking) -> None:
        del self._asked[key]
        host = self._bench.get(key)
        if asked.cancelled() or host is None:
            return
        if (error := asked.exception()) is not None:
            told = {"message": "looking up a name failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(told)
            return
        answer = asked.result()
        if answer.addresses:
            self._settle(host, answer)
        else:
            self._faults.unnamed(host, answer.outcome, answer.detail, answer.expires_at)
        host.parked = False
        if not self._bench.leave(host, self._pace.now()):
            self._bench.enqueue(host)

    def stop(self) -> None:
        """Stop waiting for names."""
        for asked, answered in self._asked.values():
            asked.remove_done_callback(answered)
        self._asked.clear()
        self._unnamed.stop()
