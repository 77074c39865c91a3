"""A crawl's directory closed to crawls: each lock of one that runs keeps it from that, and it keeps crawls out."""

import asyncio
import os
from pathlib import Path

import pytest

from fyke.archive import orders
from fyke.archive.asked import AskedLater
from fyke.archive.directory import CrawlDirectory
from fyke.archive.division import divide
from fyke.core.config import Config
from fyke.core.errors import DirectoryInUse
from fyke.disk.files import is_locked, lock

AGENTS = 3


@pytest.fixture
def directory(tmp_path: Path) -> CrawlDirectory:
    """Of a crawl with several agents."""
    directory = CrawlDirectory(tmp_path)
    with directory.recorded(Config.model_validate({"crawl": {"seeds": ["http://a.example/"], "agents": AGENTS}})):
        pass
    directory.state.mkdir()
    divide(directory.state, AGENTS, begun=False)
    return directory


def locks(directory: CrawlDirectory) -> list[Path]:
    """What the supervisor and each agent lock."""
    return [directory.supervised, *(part.shard / "lock" for part in directory.parts)]


def test_it_holds_every_lock_and_lets_go(directory: CrawlDirectory) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"), directory.closed_to_crawls():  # told as it is
        assert [is_locked(path) for path in locks(directory)] == [True] * (1 + AGENTS)
        Path("nowhere").read_bytes()
    assert not any(map(is_locked, locks(directory)))


@pytest.mark.parametrize("at", range(1 + AGENTS))
def test_it_waits_for_nobody(directory: CrawlDirectory, at: int) -> None:
    with directory.closed_to_crawls():
        pass
    held = lock(locks(directory)[at], "")
    with pytest.raises(DirectoryInUse, match=r"is in use by a crawl: stop it"), directory.closed_to_crawls():
        pytest.fail("it is in use")
    assert sum(map(is_locked, locks(directory))) == 1
    os.close(held)


@pytest.mark.parametrize("at", range(1 + AGENTS))
def test_a_block_is_written_by_the_crawl_whatever_agent_of_it_lives(
    directory: CrawlDirectory, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "PATIENCE_S", 0.0)
    for path in locks(directory):
        path.parent.mkdir(parents=True, exist_ok=True)
    held = lock(locks(directory)[at], "")
    with pytest.raises(DirectoryInUse):
        asyncio.run(orders.block(directory, "a.example", blocked=True))
    os.close(held)
    assert AskedLater(directory.state).blocked == []
    asyncio.run(orders.block(directory, "a.example", blocked=True))
    assert AskedLater(directory.state).blocked == ["a.example"]
