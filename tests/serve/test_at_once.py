"""However many copies are asked for together, few are made at a time."""

import asyncio
import threading
import time

from fyke.serve.pages import COPIES_AT_ONCE, ArchivePages
from looping import on_loop


def test_few_copies_are_made_at_a_time(monkeypatch) -> None:
    under_way: list[int] = []
    most = 0
    lock = threading.Lock()

    def slow(_pages, _request):
        nonlocal most
        with lock:
            under_way.append(1)
            most = max(most, len(under_way))
        time.sleep(0.01)
        with lock:
            under_way.pop()

    for name in ("raw", "diff", "copy", "about"):
        monkeypatch.setattr(ArchivePages, name, slow)
    routes = {route.path: route.endpoint for route in ArchivePages(None, None).routes()}

    async def ask() -> None:
        await asyncio.gather(*(routes[path](None) for path in ("/raw", "/diff", "/copy", "/page") * 3))

    on_loop(ask())
    assert most == COPIES_AT_ONCE
