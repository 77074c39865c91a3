"""An opening that fails, wherever it does, gives all back: descriptors, threads, what the loop does with exceptions."""

import asyncio
import builtins
import gc
import io
import os
import shutil
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from crawl.runs import begin, settings, wait_until
from crawl.small_site import small_site
from fyke.archive.directory import CrawlDirectory
from fyke.crawl.agent import Agent
from fyke.frontier.frontier import Frontier

OPENERS = [(os, "open"), (io, "open"), (builtins, "open"), (sqlite3, "connect")]


class Refused(Exception):
    pass


class Refusing:
    """What opens files below `folder` does so but for the `most`-th time."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path, most: int) -> None:
        self.count, self.most, self.folder = 0, most, str(folder)
        for module, name in OPENERS:
            patch.setattr(module, name, self._counted(getattr(module, name)))

    def _counted(self, opened: Any) -> Any:
        def checked(path: Any, *args: Any, **kwargs: Any) -> Any:
            if self.folder in str(path):
                self.count += 1
                if self.count == self.most:
                    raise Refused(path)
            return opened(path, *args, **kwargs)

        return checked


def held() -> Counter[str]:
    """What this process has open, and its threads."""
    gc.collect()
    kept = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if os.path.lexists(path)]
    names = Counter(path for path in kept if not path.startswith("/proc/"))
    names["thread"] = threading.active_count()
    return names


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A crawl that was killed, with journals of every table, and queues."""
    folder = tmp_path_factory.mktemp("begun")
    with small_site(pages=400) as site:
        config = settings(folder, store={"checkpoint_s": 0.1}, politeness={"address_delay_s": 0.02})
        with config.open("a") as file:
            file.write('[[extract]]\ntable = "titles"\nfields.title = "title"\n')
        process = begin(folder / "crawl", config, site.url)
        checkpoints = folder / "crawl/state/shard-0000"
        wait_until(lambda: any("0005" in path.name for path in checkpoints.glob("manifest-*.json")))
        process.kill()
        process.wait()
    (folder / "crawl/state/control.sock").unlink()
    yield folder / "crawl"


def left_since(before: Counter[str]) -> Counter[str]:
    """What is open and was not `before`, in two looks: threads of tests before this one open files for a moment. Less
    may be: what they left open is closed some time."""
    left = held() - before
    if left:
        time.sleep(0.1)  # our own loop stands still meanwhile
        left &= held() - before
    return left


async def opened(folder: Path) -> None:
    directory = CrawlDirectory(folder)
    async with Agent(directory, directory.config()):
        pass


def test_whichever_file_cannot_be_opened(begun: Path, tmp_path: Path) -> None:
    async def run() -> None:
        shutil.copytree(begun, tmp_path / "whole")
        await opened(tmp_path / "whole")  # once, for what is loaded then
        handler, before, at = asyncio.get_running_loop().get_exception_handler(), held(), 0
        opened_whole = False
        while not opened_whole:
            at += 1
            folder = tmp_path / f"{at}"
            shutil.copytree(begun, folder)
            with pytest.MonkeyPatch.context() as patch, suppress(Refused):
                Refusing(patch, folder, at)
                directory = CrawlDirectory(folder)
                agent = Agent(directory, directory.config())
                await agent.__aenter__()
                opened_whole = True
            if opened_whole:
                await agent.__aexit__(Refused, Refused(), None)
            await asyncio.sleep(0)
            assert not left_since(before), at
            assert asyncio.get_running_loop().get_exception_handler() is handler
            shutil.rmtree(folder)
        assert at > 20

    asyncio.run(run())


def test_a_frontier_that_cannot_go_on(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resume(self: Frontier) -> None:
        raise Refused

    async def run() -> None:
        shutil.copytree(begun, tmp_path / "crawl")
        await opened(tmp_path / "crawl")
        handler, before = asyncio.get_running_loop().get_exception_handler(), held()
        monkeypatch.setattr(Frontier, "resume", resume)
        with pytest.raises(Refused):
            await opened(tmp_path / "crawl")
        await asyncio.sleep(0)
        assert not left_since(before)
        assert asyncio.get_running_loop().get_exception_handler() is handler

    asyncio.run(run())
