"""Archives made to order, as a crawl leaves them, and what an index of one holds."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tantivy

from fyke.archive.records import Original
from fyke.archive.tables import LinksTable, PagesTable, links_batch
from fyke.archive.warc import WarcWriter
from fyke.core.batches import LinkKind
from fyke.core.config import FetchSection
from fyke.core.decoding import decode_body
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.resolve import LinkResolver
from fyke.core.visits import Exchange, visit_to
from fyke.harvest import Parser
from fyke.search.folder import IndexFolder
from fyke.search.indexer import Indexed, Indexer, IndexLimits
from fyke.search.live_index import Shard
from fyke.search.schema import Analysis
from fyke.search.searcher import Searcher

BEGIN_S = 1_795_000_000.0
SMALL = IndexLimits(lot_pages=7, lot_bytes=1 << 20, range_rows=8, links_memory_bytes=4096)


@dataclass
class Answer:
    """What a server says to one request."""

    body: str | bytes = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def html(title: str, text: str = "", links: Mapping[str, str] | None = None, head: str = "") -> Answer:
    """A page with links: URL and words."""
    anchors = "".join(f'<p><a href="{url}">{words}</a></p>' for url, words in (links or {}).items())
    return Answer(f"<html><head><title>{title}</title>{head}</head><body><h1>{title}</h1><p>{text}</p>{anchors}</body>")


class Archive:
    """Writes a crawl directory, visit by visit, each a second after the one before."""

    def __init__(self, folder: Path, table_rows: int = 50) -> None:
        self.folder = folder
        self._warc = WarcWriter(folder, 1 << 20, "test")
        self._pages = PagesTable(folder, table_rows)
        self._links = LinksTable(folder, table_rows)
        self._parser = Parser()
        self._resolver = LinkResolver()
        self._originals: dict[str, Original] = {}  # the newest record in full of each URL
        self.now = BEGIN_S

    def visit(self, url: str, answer: Answer, outcome: Outcome | None = None, *, duplicate: bool = False) -> None:
        """One visit, as `fyke.harvest.harvest` takes it in. A `duplicate` is not read for links."""
        self.now += 1
        head = {"Content-Type": "text/html; charset=utf-8", **answer.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        exchange = Exchange(
            visit_to(url), outcome or _outcome(answer.status), self.now, 0.1,
            status=answer.status,
            request=b"GET / HTTP/1.1\r\n\r\n", head=f"HTTP/1.1 {answer.status} So\r\n{lines}\r\n".encode(),
            body=Document(body),
        )  # fmt: skip
        page = self._parser.parse(exchange, decode_body(exchange, FetchSection().max_body_bytes).content)
        if exchange.outcome is not Outcome.OK:
            page.fingerprint = 0
        page.duplicate = duplicate
        found = self._resolver.resolve([(page.links.base, [] if duplicate else page.links.pages)])
        moved = exchange.outcome is Outcome.REDIRECTED
        kind = LinkKind.REDIRECT if moved else LinkKind.PAGE
        rows = (np.full(len(found.key), value, np.uint64) for value in (exchange.visit.key, kind))
        self._links.add(links_batch(next(rows), found.key, found.url, next(rows)))
        place = self._warc.write(
            exchange, media_type=page.media_type, charset=page.charset, refers_to=self._originals.get(url)
        )
        before = self._originals.get(url)
        if exchange.outcome is Outcome.OK and (before is None or before.digest != place.digest):
            self._originals[url] = Original(url, place.date, place.digest)
        target = found.urls[0].decode() if moved and found.urls else None
        self._pages.add(exchange, place, page, links=len(found.urls), redirect_to=target)

    def failure(self, url: str) -> None:
        """A visit that brought nothing."""
        self.now += 1
        self._pages.add(Exchange(visit_to(url), Outcome.TIMED_OUT, self.now, 0.1))

    def flush(self) -> None:
        """Let others see what was written."""
        for writer in (self._warc, self._pages, self._links):
            writer.state()

    def close(self) -> None:
        for writer in (self._warc, self._pages, self._links):
            writer.close()


def _outcome(status: int) -> Outcome:
    if 300 <= status < 400:
        return Outcome.REDIRECTED
    if status >= 500:
        return Outcome.SERVER_ERROR
    return Outcome.CLIENT_ERROR if status >= 400 else Outcome.OK


def archive(folder: Path, visits: Iterator[tuple[str, Answer]] | list[tuple[str, Answer]]) -> Path:
    """A crawl directory with `visits`."""
    made = Archive(folder)
    for url, answer in visits:
        made.visit(url, answer)
    made.close()
    return folder


def indexed(folder: Path, limits: IndexLimits = SMALL) -> Indexed:
    """Index what is new in the crawl directory `folder`."""
    with Indexer(folder, limits) as indexer:
        return indexer.run()


@contextmanager
def searched(*folders: Path) -> Iterator[Searcher]:
    """The crawl directories `folders`, indexed, to be searched."""
    for folder in folders:
        indexed(folder)
    with Searcher(folders) as searcher:
        yield searcher


def urls(searcher: Searcher, query: str, limit: int = 50) -> list[str]:
    return [hit.url for hit in searcher.search(query, limit=limit).hits]


TEXT_FIELDS = ("title", "headings", "description", "anchors", "address", "text", "site", "stem_en", "stem_de")


def contents(folder: Path) -> dict[str, dict[str, Any]]:
    """All that the index of `folder` holds, by URL: stored values, and each field's terms with their documents."""
    view = Shard(folder, Analysis()).view()
    found = view.engine.search(tantivy.Query.all_query(), 1_000_000).hits
    pages: dict[str, dict[str, Any]] = {}
    for _, address in found:
        page = view.engine.doc(address).to_dict()
        url = page["url"][0]
        assert url not in pages
        pages[url] = dict(page)
    for name in TEXT_FIELDS:
        for term, _ in view.engine.terms_with_prefix(name, "", tantivy.Query.all_query()):
            query = tantivy.Query.term_query(view.schema, name, term, "basic")
            hits = view.engine.search(query, 1_000_000).hits
            for _, address in hits:
                url = view.engine.doc(address).get_first("url")
                pages[url].setdefault(f"terms of {name}", []).append(term)
    return pages


def index_of(folder: Path) -> IndexFolder:
    return IndexFolder(folder)
