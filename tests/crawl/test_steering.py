"""Orders that could not be kept are refused, and done when they are given again."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fyke.archive import asked
from fyke.archive.asked import AskedLater
from fyke.core.batches import EMPTY
from fyke.core.errors import DiskFull
from fyke.core.seeds import seeds_of
from fyke.crawl.control import Steering
from fyke.crawl.post.alone import Alone


def full(path: Path, data: bytes) -> None:
    raise DiskFull("no room")


def test_an_order_that_failed_can_be_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    frontier = SimpleNamespace(
        block=lambda keys: told.append("block"),
        unblock=lambda keys: told.append("unblock"),
        take_back=lambda urls: None,
        know_seeds=lambda seeds: None,
        put_seeds=lambda seeds: told.append("seeds"),
    )
    fetcher = SimpleNamespace(recall=lambda key: EMPTY, blocked=set())
    clock = SimpleNamespace(now=lambda: 0.0)
    outbox = SimpleNamespace(forget_links=lambda: None)
    seeds = seeds_of(["http://b.example/"])
    rooms: list[Any] = [outbox, frontier, fetcher, Alone(), clock]
    steering = Steering(AskedLater(tmp_path), [], *rooms)
    orders: list[Callable[[], object]] = [
        lambda: steering.block("a.example"),
        lambda: steering.unblock("a.example"),
        lambda: steering.add_seeds(seeds),
    ]
    for name, order in zip(("block", "unblock", "seeds"), orders, strict=True):
        with monkeypatch.context() as patch, pytest.raises(DiskFull):
            patch.setattr(asked, "write_whole", full)
            order()
        assert name not in told
        order()
        assert told.pop() == name and not told
