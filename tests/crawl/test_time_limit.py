"""A crawl that paused ends when its time is up, and leaves nothing behind that would end another."""

import asyncio
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

from rich.console import Console

from fyke.archive.directory import CrawlDirectory
from fyke.archive.statistics import CrawlStatistics
from fyke.core.config import build
from fyke.core.errors import DiskFull
from fyke.crawl.loop import Ending
from fyke.crawl.run import _CrawlRun


def test_the_timer_goes_with_the_crawl(tmp_path: Path) -> None:
    config = build({"crawl": {"seeds": ["http://a.example/"], "for_s": 60.0}}, "test")
    directory = CrawlDirectory(tmp_path)
    run = _CrawlRun(directory, config, Console(quiet=True), None, None, None)
    timers: list[asyncio.TimerHandle] = []
    ended: list[Ending] = []

    class Crawl:
        statistics = Mock(return_value=CrawlStatistics())

        async def run(self) -> Ending:
            ended.append(Ending.FINISHED)
            if len(ended) == 1:
                raise DiskFull("no room")
            return ended[-1]

        def stop(self, ending: Ending = Ending.STOPPED) -> None:
            ended.append(ending)

    async def crawled(_: object) -> object:
        return await run._watched(Crawl(), [])  # type: ignore[arg-type]

    async def paused() -> None:
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def noted(*arguments: Any, **options: Any) -> asyncio.TimerHandle:
            timers.append(call_at(*arguments, **options))
            return timers[-1]

        with patch.object(loop, "call_at", noted), patch.object(run, "_with_one_agent", crawled):
            await run.to_its_end(None)

    with directory.recorded(config):
        began = time.monotonic()
        asyncio.run(paused())
    assert timers and all(timer.cancelled() for timer in timers if timer.when() > began + 30)
    assert ended == [Ending.FINISHED, Ending.FINISHED]
