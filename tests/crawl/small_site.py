"""A tree of pages on one address of this machine, for crawls whose mistakes matter more than their pages."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from web_server import Answer, web_server


class SmallSite:
    """`pages` pages, each linking to two more; `answers` gives other paths, `hang` holds an answer back once."""

    def __init__(self, pages: int, page_bytes: int) -> None:
        self.pages = pages
        self.page_bytes = page_bytes
        self.answers: dict[str, Answer | Callable[[], Answer]] = {}
        self.hang: dict[str, threading.Event] = {}
        self.hanging = threading.Event()
        self.asked: Counter[str] = Counter()
        self.url = ""

    @property
    def port(self) -> int:
        return int(self.url.strip("/").rpartition(":")[2])

    def all_urls(self) -> set[str]:
        return {self.url, *(f"{self.url}p{number}" for number in range(1, self.pages))}

    def answer(self, path: str) -> Answer:
        self.asked[path] += 1
        gate = self.hang.pop(path, None)
        if gate is not None:
            self.hanging.set()
            gate.wait(30)
        found = self.answers.get(path)
        if found is not None:
            return found if isinstance(found, tuple) else found()
        name = path.strip("/").removeprefix("p") or "0"
        if not name.isdigit() or int(name) >= self.pages:
            return 404, {}, b"nothing here"
        number = int(name)
        links = "".join(f'<a href="/p{n}">{n}</a>' for n in (2 * number + 1, 2 * number + 2) if n < self.pages)
        filling = Random(number).randbytes(self.page_bytes // 2).hex()
        return 200, {"Content-Type": "text/html; charset=utf-8"}, f"<title>{number}</title>{links}{filling}".encode()


@contextmanager
def small_site(pages: int = 30, page_bytes: int = 200, host: str = "127.0.0.1", port: int = 0) -> Iterator[SmallSite]:
    """Serve a SmallSite until the block ends; on any free port when none is given."""
    site = SmallSite(pages, page_bytes)
    with web_server(lambda path, _: site.answer(path), host, port) as site.url:
        try:
            yield site
        finally:
            for gate in site.hang.values():
                gate.set()
