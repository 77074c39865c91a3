"""Pages a second from archive to searchable, and the time of an answer: Fyke's search beside SQLite's FTS5.

Run: python benches/search_speed.py [PAGES]; the default is a million, which takes an hour. The pages are synthetic:
100 words each from a vocabulary of 50,000 by Zipf's law, a title and five links. Fyke reads them out of WARC files:
parsing, main text, language, anchors, PageRank, then the index. FTS5 is given title and text ready-made. Each runs in
one process. Rates are by the clock and by CPU time, which is fairer on a busy machine. Both answer the same queries:
one to three words, all required, the ten best pages with a marked snippet each. FTS5 ranks by bm25 alone.
"""

import argparse
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa

from fyke.archive.tables import LinksTable, PagesTable, links_batch
from fyke.archive.warc import WarcWriter
from fyke.core.batches import LinkKind
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.urls import Locator, locate
from fyke.core.visits import Exchange, Visit
from fyke.search.indexer import Indexer
from fyke.search.searcher import Searcher

PAGES = 1_000_000
WORDS = 100
LINKS = 5
VOCABULARY = 50_000
HOSTS = 1_000
QUERIES = 1_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"


@dataclass(frozen=True)
class Text:
    """A synthetic page; `links` are numbers of other pages."""

    number: int
    title: str
    body: str
    links: list[int]


class Language:
    """Made-up words, some much more frequent than others."""

    def __init__(self) -> None:
        dice = random.Random(1)
        self.words = [
            "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(3, 9))) for _ in range(VOCABULARY)
        ]
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))

    def texts(self, pages: int) -> Iterator[Text]:
        dice = random.Random(2)
        for number in range(pages):
            words = dice.choices(self.words, cum_weights=self._weights, k=WORDS)
            links = [int(pages * dice.random() ** 3) for _ in range(LINKS)]
            yield Text(number, " ".join(words[:4]), " ".join(words), links)

    def queries(self, count: int) -> list[str]:
        dice = random.Random(3)
        return [
            " ".join(dice.choices(self.words, cum_weights=self._weights, k=dice.randint(1, 3))) for _ in range(count)
        ]


def address(number: int) -> Locator:
    return locate(f"http://host{number % HOSTS}.example/{number // HOSTS}.html")


def write_archive(folder: Path, texts: Iterator[Text]) -> None:
    """Write the pages as a crawl directory."""
    warc, pages, links = WarcWriter(folder, 1 << 30, "bench"), PagesTable(folder, 100_000), LinksTable(folder, 100_000)
    for text in texts:
        at = address(text.number)
        targets = [address(number) for number in text.links]
        anchors = "".join(f'<a href="{target.url.decode()}">see {text.title}</a> ' for target in targets)
        body = f"<title>{text.title}</title><h1>{text.title}</h1><p>{text.body}</p><p>{anchors}</p>".encode()
        visit = Visit(at.url.decode(), at.key, at.host, at.domain)
        exchange = Exchange(visit, Outcome.OK, 1.79e9 + text.number, 0.1, status=200, head=HEAD, body=Document(body))
        page = Page(exchange, "text/html", body, "utf-8", title=text.title, fingerprint=at.key)
        source, kind = (np.full(len(targets), value, np.uint64) for value in (at.key, LinkKind.PAGE))
        keys = np.array([target.key for target in targets], np.uint64)
        links.add(links_batch(source, keys, pa.array([target.url for target in targets], pa.binary()), kind))
        pages.add(exchange, warc.write(exchange), page, links=len(targets))
    for writer in (warc, pages, links):
        writer.close()


def write_fts(path: Path, texts: Iterator[Text]) -> None:
    """Write the pages as a full-text table."""
    database = sqlite3.connect(path)
    database.execute("pragma journal_mode = off")
    database.execute("pragma synchronous = off")
    database.execute("create virtual table pages using fts5(url unindexed, title, body)")
    rows = ((address(text.number).url.decode(), text.title, text.body) for text in texts)
    database.executemany("insert into pages values (?, ?, ?)", rows)
    database.commit()
    database.close()


def ask_fts(database: sqlite3.Connection, query: str) -> int:
    sql = (
        "select url, title, snippet(pages, 2, '[', ']', '…', 32) from pages where pages match ?"
        " order by bm25(pages, 0, 3, 1) limit 10"
    )
    return len(database.execute(sql, [" ".join(f'"{word}"' for word in query.split())]).fetchall())


def percentiles(ask: Callable[[str], int], queries: list[str]) -> tuple[float, float, int]:
    """Return milliseconds of the median answer and of the slowest in a hundred, and the number of results in all."""
    took_ms, found = [], 0
    for query in queries:
        begun = time.perf_counter()
        found += ask(query)
        took_ms.append((time.perf_counter() - begun) * 1e3)
    took_ms.sort()
    return took_ms[len(took_ms) // 2], took_ms[len(took_ms) * 99 // 100], found


def size_bytes(path: Path) -> int:
    return (
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size
    )


def measure(pages: int, folder: Path, queries: int = QUERIES) -> dict[str, dict[str, float]]:
    """Return figures for Fyke and FTS5 with `pages` pages, made below `folder`."""
    language = Language()
    asked = language.queries(queries)
    write_archive(folder / "crawl", language.texts(pages))

    fyke_s = _seconds(lambda: index(folder / "crawl", pages))
    with Searcher([folder / "crawl"]) as searcher:
        fyke = percentiles(lambda query: len(searcher.search(query).hits), asked)

    making_s = _seconds(lambda: sum(1 for _ in language.texts(pages)))
    fts_s = _seconds(lambda: write_fts(folder / "fts.sqlite", language.texts(pages)))
    fts_s = (fts_s[0] - making_s[0], fts_s[1] - making_s[1])
    database = sqlite3.connect(folder / "fts.sqlite")
    fts = percentiles(lambda query: ask_fts(database, query), asked)
    database.close()
    return {
        "fyke": _figures(pages, fyke_s, fyke, size_bytes(folder / "crawl/index")),
        "fts5": _figures(pages, fts_s, fts, size_bytes(folder / "fts.sqlite")),
    }


def index(folder: Path, pages: int) -> None:
    with Indexer(folder) as indexer:
        assert indexer.run().documents == pages


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return seconds by the clock, and CPU seconds."""
    begun, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begun, time.process_time() - used


def _figures(pages: int, took_s: tuple[float, float], answers: tuple[float, float, int], size: int) -> dict[str, float]:
    names = ("pages_per_s", "pages_per_cpu_s", "p50_ms", "p99_ms", "found", "bytes")
    return dict(zip(names, (pages / took_s[0], pages / took_s[1], *answers, size), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="?", type=int, default=PAGES)
    parser.add_argument("--folder", type=Path, help="where to make the files; a temporary one by default")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        for name, figures in measure(options.pages, folder).items():
            print(
                f"{name}: {figures['pages_per_s']:,.0f} pages/s ({figures['pages_per_cpu_s']:,.0f} a processor second),"
                f" p50 {figures['p50_ms']:.2f} ms, p99 {figures['p99_ms']:.2f} ms, {figures['found']:,.0f} results,"
                f" {figures['bytes'] / 1e6:,.0f} MB"
            )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
