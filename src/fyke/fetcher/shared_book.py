"""The host books of several agents: each writes its own, and reads what others know of a host."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from fyke.core.closing import Closing
from fyke.fetcher.book import HostBook
from fyke.fetcher.host import Host
from fyke.fetcher.robots import RobotsRecord


def newest(records: Iterable[Host | None]) -> Host | None:
    """Return the latest of what several books say of a host. Its rest ends no sooner than any of them says."""
    found = [record for record in records if record]
    if not found:
        return None
    latest = max(found, key=lambda record: record.last_seen)
    latest.due = max(record.due for record in found)
    return latest


class SharedBook(HostBook):
    """The book of one agent, which also reads the books of `others`, because a host may have been theirs. It writes
    only its own."""

    def __init__(self, path: Path, others: Iterable[Path]) -> None:
        super().__init__(path)
        self._others = [other for other in others if other != path]
        self._looked_into: dict[Path, HostBook] = {}

    def _books(self) -> Iterator[HostBook]:
        for path in self._others:
            if path not in self._looked_into and path.is_file():
                self._looked_into[path] = HostBook(path, read_only=True)
        yield from self._looked_into.values()

    def host(self, name: str) -> Host | None:
        """Return the `newest` record of the host `name` in any book."""
        return newest((super().host(name), *(book.host(name) for book in self._books())))

    def robots(self, origin: str) -> RobotsRecord | None:
        """Return the robots.txt of `origin` as last fetched by any agent."""
        found = (super().robots(origin), *(book.robots(origin) for book in self._books()))
        return max((record for record in found if record), key=lambda record: record.fetched_at, default=None)

    def close(self) -> None:
        for book in self._looked_into.values():
            book.close()
        super().close()


class ReadBooks(Closing):
    """The books of all agents of a crawl, to read during the crawl or after it. Use as a context manager."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Open those of `paths` that exist. Raises as HostBook does."""
        self._books = [HostBook(path, read_only=True) for path in paths if path.is_file()]

    def close(self) -> None:
        for book in self._books:
            book.close()

    def host(self, name: str) -> Host | None:
        """Return the `newest` record of the host `name`."""
        return newest(book.host(name) for book in self._books)

    def robots(self, origin: str) -> RobotsRecord | None:
        """Return the robots.txt of `origin` as last fetched."""
        found = [record for book in self._books if (record := book.robots(origin))]
        return max(found, key=lambda record: record.fetched_at, default=None)

    def hosts(self, within: str = "", failing: bool = False) -> Iterator[Host]:
        """Iterate as `HostBook.hosts`, book by book. A host in several books comes once, as its `newest` record."""
        for place, book in enumerate(self._books):
            for host in book.hosts(within, failing):
                known = [other.host(host.name) for other in self._books]
                latest = newest(known)
                if latest and known.index(latest) == place:
                    yield latest
