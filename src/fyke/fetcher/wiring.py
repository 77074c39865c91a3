"""The rooms that the fetcher acts through, given to it when it is made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fyke.core.clock import Clock
from fyke.core.pace import Pace
from fyke.core.visits import Earlier, Visit
from fyke.fetcher.book import HostBook
from fyke.fetcher.names import Resolver
from fyke.fetcher.rests import Rests
from fyke.fetcher.wire.registry import Registry
from fyke.fetcher.workbench import Workbench


class EarlierVisits(Protocol):
    """The results of earlier visits."""

    def note_known(self, visits: Sequence[Visit]) -> None:
        """Note with each of `visits` whether there were earlier ones; called for many at a time."""
        ...

    def read(self, earlier: Earlier) -> None:
        """Note what is needed to ask for the page again; called when it is asked for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """The rooms the fetcher acts through."""

    bench: Workbench
    resolver: Resolver
    book: HostBook
    rests: Rests
    protocols: Registry
    abort: Callable[[], None]  # breaks off every request under way
    clock: Clock
    past: EarlierVisits
    cut: Callable[[Visit, str], None]  # breaks off the request for a visit, saying why
    holds_back: Callable[[int], bool]  # whether a host must wait until its last page was read
    room: Callable[[int], int]  # how many connections there may be for this many hosts
    ours: Callable[[str], bool]  # whether an address may be asked from here
    shared: bool  # whether other agents ask other hosts of the same crawl
    pace: Pace
