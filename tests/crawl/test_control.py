"""The control socket, with an agent that is none."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fyke.archive.figures import Figures, HostFigures
from fyke.archive.orders import connected, ordered
from fyke.archive.statistics import CrawlStatistics
from fyke.crawl.control import MOST_LISTENERS, Control


class Faulty:
    """An agent with a mistake of ours in one order."""

    def hold(self, held: bool) -> None: ...

    def stop(self) -> None: ...

    def add_seeds(self, urls: Iterable[str]) -> int:
        return 0

    def block(self, name: str, blocked: bool) -> str:
        return "done"

    def figures(self) -> Figures:
        return Figures(at=0.0, statistics=CrawlStatistics())

    def host_figures(self, name: str) -> HostFigures | None:
        raise ZeroDivisionError


async def test_a_mistake_of_ours_takes_nobodys_place(tmp_path: Path) -> None:
    """It is told to the loop's handler, for whoever runs the crawl; those who come later are let in."""
    told: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    async with Control(Faulty(), tmp_path):
        for _ in range(MOST_LISTENERS):
            async with connected(tmp_path) as (reader, writer):
                writer.write(json.dumps({"do": "host", "host": "a.example"}).encode() + b"\n")
                await reader.read()  # until it is closed
        assert await ordered(tmp_path, "block", host="a.example") == (True, "done")
    assert list(map(type, told)) == [ZeroDivisionError] * MOST_LISTENERS
