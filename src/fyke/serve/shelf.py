"""The crawls that are served: each by a name, and all of them as one archive with one index.

The server makes it once; pages, API and metrics ask it. An index may be made, grow or go meanwhile, so each question
looks which crawls can be searched. Invariant: a crawl's name is unique, and safe in a URL.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Lock

from fyke.archive.captures import Capture, Captures
from fyke.archive.directory import CrawlDirectory, no_crawl, require_folder, require_format
from fyke.core.errors import DirectoryError, NotACrawl
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.disk.files import real_path
from fyke.explain import Explanation, why
from fyke.frontier.looking import looked_again
from fyke.search.archived import ArchiveReader
from fyke.search.folder import INDEX, IndexFolder
from fyke.search.searcher import Searcher
from fyke.serve.known_domains import Domain, top_domains
from fyke.serve.watch import Watch

MOST_DOMAINS = 100
LEAST_S = 5.0  # between looks at the domains
COST_SHARE = 20  # looking takes one part in `COST_SHARE` of the time at most

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class ShelvedCrawl:
    """One crawl directory, and all that is read of it."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.directory = CrawlDirectory(path)
        self.captures = Captures(path)
        self.watch = Watch(self.directory)
        self._looking = Lock()
        self._look_again = 0.0
        self._top_domains: list[Domain] = []

    def __repr__(self) -> str:
        return f"ShelvedCrawl({self.name}, {str(self.path)!r})"

    def why(self, url: str) -> Explanation | None:
        """Return what the crawl knows of `url` (canonical); None for an archive without a crawl. Raises
        StateDamaged."""
        with suppress(NotACrawl):
            return looked_again(lambda: why(self.directory, url))
        return None

    def page(self, capture: Capture) -> Page | None:
        """Return the page archived there, decoded and parsed; None if it cannot be read."""
        with ArchiveReader(self.path) as reader:
            return reader.read(
                {
                    "warc_file": capture.file,
                    "warc_offset": capture.offset,
                    "warc_length": capture.length,
                    "url": capture.url,
                    "outcome": Outcome.OK,  # so that the body of an error page is read too
                    "fetched_at": capture.taken_at,
                    "status": capture.status,
                }
            )

    def top_domains(self, limit: int) -> list[Domain]:
        """Return the `limit` domains that most others link to. They may be some time old if looking costs much."""
        with self._looking:
            now = time.monotonic()
            if now >= self._look_again:
                try:
                    self._top_domains = top_domains(self.directory, MOST_DOMAINS)
                except NotACrawl:
                    self._top_domains = []
                self._look_again = now + max(LEAST_S, COST_SHARE * (time.monotonic() - now))
            return self._top_domains[:limit]

    @property
    def indexed(self) -> bool:
        """Whether there is an index."""
        return IndexFolder(self.path).stamp() > 0


class Shelf:
    """The crawls in `folders`. Raises DirectoryError, and NotACrawl if one is no crawl."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.crawls: dict[str, ShelvedCrawl] = {}
        for folder in folders:
            _require_crawl(folder)
            name = self._free_name(_UNSAFE.sub("-", real_path(folder).name).strip(".-") or "crawl")
            self.crawls[name] = ShelvedCrawl(name, folder)
        self._lock = Lock()
        self._searcher: Searcher | None = None
        self._searched: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Shelf({list(self.crawls)})"

    def __iter__(self) -> Iterator[ShelvedCrawl]:
        return iter(self.crawls.values())

    def __len__(self) -> int:
        return len(self.crawls)

    def _free_name(self, name: str) -> str:
        names = [name, *(f"{name}-{number}" for number in range(2, len(self.crawls) + 3))]
        return next(free for free in names if free not in self.crawls)

    def searcher(self) -> Searcher:
        """Return a searcher over all indexes that are there. Raises DirectoryError if there is none."""
        with self._lock:
            indexed = tuple(crawl.name for crawl in self if crawl.indexed)
            if not indexed:
                raise DirectoryError(f"there is no index yet; make it with: fyke index {next(iter(self)).path}")
            if self._searcher is None or indexed != self._searched:
                self._searcher = Searcher([self.crawls[name].path for name in indexed])
                self._searched = indexed
            return self._searcher

    def captures(self, url: str) -> list[tuple[ShelvedCrawl, Capture]]:
        """Return every copy of `url` (canonical), newest first; within a second, in the reverse order of writing."""
        found = [(crawl, capture) for crawl in self for capture in crawl.captures.of(url)]
        return sorted(found, key=lambda one: one[1].order, reverse=True)

    def capture(self, url: str, at: datetime | None = None) -> tuple[ShelvedCrawl, Capture] | None:
        """Return the copy of `url` taken nearest to `at`; without a time, the newest that has a page."""
        found = self.captures(url)
        if at is not None:
            return min(found, key=lambda one: abs(one[1].taken_at - at), default=None)
        return next((one for one in found if one[1].is_page), found[0] if found else None)


def _require_crawl(folder: Path) -> None:
    require_folder(folder)
    if not folder.is_dir():
        raise DirectoryError(f"{folder}: no such directory; name the directory of a crawl")
    if not any((folder / part).exists() for part in ("fyke.toml", "tables", INDEX)):
        raise no_crawl(folder)
    require_format(folder)
