"""What is learned of hosts is written down a few thousand at a time, however many are met, and all of it is."""

from contextlib import closing
from pathlib import Path

import pytest

from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.outcomes import Outcome
from fyke.fetcher import host_desk
from fyke.fetcher.book import HostBook
from fyke.fetcher.host_desk import HostDesk
from fyke.fetcher.names import Resolution, Resolver
from fyke.fetcher.rests import Rests
from fyke.fetcher.workbench import Workbench


def test_of_many_hosts_few_wait_to_be_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_desk, "MOST_CHANGED", 10)
    config, clock = Config(), VirtualClock()
    resolver = Resolver(config.dns, clock, lambda _: False, hosts_file=tmp_path / "none")
    rests = Rests(tmp_path / "rests", config.politeness, 300.0, clock.now(), resumed=False)
    with closing(rests), HostBook(tmp_path / "hosts.sqlite") as book:
        bench = Workbench(config.politeness)
        desk = HostDesk(bench, resolver, book, rests, clock, lambda _: True)
        names = [f"h{number}.example" for number in range(97)]
        for number, name in enumerate(names):
            host = desk.host(name, clock.now())
            desk.learn_addresses(host, Resolution(name, Outcome.OK, (f"93.184.216.{number}",), clock.now() + 3600))
            written = sum(1 for _ in book.hosts())
            assert number + 1 - written < 10
            bench.leave(host, clock.now())
        desk.save()
        assert {host.name: host.addresses for host in book.hosts()} == {
            name: (f"93.184.216.{number}",) for number, name in enumerate(names)
        }
