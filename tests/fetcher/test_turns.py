"""Sites that share an address share its time, however many hosts one of them has, and however slow it is."""

import heapq
from itertools import count

import pytest

from fyke.core.config import PolitenessSection
from fyke.core.visits import Visit
from fyke.fetcher.host import Host
from fyke.fetcher.workbench import Workbench

VICTIM = 0
TAKES_S = 0.2  # a page of the normal site


def pages_of_a_normal_site(strangers: int, hosts: int, slow_s: float, until: float) -> int:
    """Pages that a normal site brings until a time, at an address that it shares with domains of strangers, which have
    so many hosts each, whose pages take `slow_s`."""
    bench = Workbench(PolitenessSection(host_delay_s=1.0, address_delay_s=1.0, delay_factor=10.0))
    numbers = count()

    def visit(host: int, domain: int) -> Visit:
        return Visit(f"http://h{host}.test/", next(numbers), host, domain)

    domains = {VICTIM: VICTIM} | {1 + n: 1 + n % strangers for n in range(strangers * hosts)}
    for key, domain in reversed(domains.items()):
        host = Host(key, f"h{key}.test")
        bench.enter(host)
        bench.add(host, visit(key, domain))
        bench.settle(host, "a")
    now, ends, pages = 0.0, list[tuple[float, int, Host]](), 0
    while now < until:
        while (host := bench.next(now)) is not None:
            assert not ends, "two at once at an address"
            bench.pop(host, now)
            bench.start(host)
            heapq.heappush(ends, (now + (slow_s if host.key else TAKES_S), host.key, host))
        dues = [end for end, *_ in ends] + [due for due in [bench.next_due()] if due is not None]
        now = min(dues)
        while ends and ends[0][0] <= now:
            _, key, host = heapq.heappop(ends)
            pages += key == VICTIM
            bench.add(host, visit(key, domains[key]))
            bench.finished(host, now, slow_s if key else TAKES_S)
    return pages


@pytest.mark.parametrize("strangers", [1, 2, 5])
@pytest.mark.parametrize("hosts", [1, 3, 20])
@pytest.mark.parametrize("slow_s", [0.9, 1.1, 5.0, 60.0, 300.0])
def test_a_normal_site_gets_its_share_of_an_address(strangers: int, hosts: int, slow_s: float) -> None:
    """A third of an equal one at least: its host rests after each page, and others come meanwhile."""
    got, alone = (pages_of_a_normal_site(strangers, many, slow_s, 20_000.0) for many in (hosts, 0))
    assert got > alone / (strangers + 1) / 3, f"{got} pages, and {alone} alone"
