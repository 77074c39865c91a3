"""One index, open for queries; it follows what an indexer writes meanwhile.

The searcher makes one for each directory. Invariant: a `View` stays as it was, whatever is committed to the index after
it was given out.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import tantivy
from tantivy import Occur

from fyke.core.errors import DirectoryError, StateDamaged
from fyke.search.damage import index_faults
from fyke.search.folder import IndexFolder, IndexState, require
from fyke.search.repeated import RepeatedLines
from fyke.search.schema import Analysis, engine_at


@dataclass(frozen=True, slots=True)
class View:
    """An index as it was at an instant."""

    folder: IndexFolder
    state: IndexState
    engine: tantivy.Searcher
    schema: tantivy.Schema
    repeated: RepeatedLines
    hosts: frozenset[int]  # keys of two hosts that have pages here, or of the only one

    def page(self, key: int) -> tantivy.DocAddress | None:
        """Return where the page with this key is; None if it is not in the index."""
        found = self.engine.search(tantivy.Query.term_query(self.schema, "key", key), 1).hits
        return found[0][1] if found else None


class Shard:
    """The index of the crawl directory `crawl`. Raises DirectoryError if there is none."""

    def __init__(self, crawl: Path, analysis: Analysis) -> None:
        self._folder = IndexFolder(crawl)
        self._analysis = analysis
        self._lock = Lock()
        self._damaged = (-1, "")  # stamp of the state that is known as damaged, and the message
        self._stamp, self._view = self._opened(None)

    def __repr__(self) -> str:
        return f"Shard({str(self._folder.crawl)!r}, {self._view.engine.num_docs} pages)"

    def view(self) -> View:
        """Return the index as it is now. Raises DirectoryError if it is gone, StateDamaged if it is known as
        damaged."""
        with self._lock:
            if self._damaged[0] == self._folder.stamp():
                raise StateDamaged(self._damaged[1])
            if self._folder.stamp() != self._stamp:
                self._stamp, self._view = self._opened(self._view.state)
            return self._view

    def require_whole(self) -> None:
        """Read all of the index after an answer failed. Raises StateDamaged if it is damaged, as `view` does from then
        on."""
        stamp, faults = self._folder.stamp(), index_faults(self._folder.crawl)
        if faults:
            self._damaged = stamp, f"{self._folder.crawl / faults[0].place}: {faults[0].what}"
            raise StateDamaged(self._damaged[1])

    def _opened(self, before: IndexState | None) -> tuple[int, View]:
        stamp = self._folder.stamp()
        state = require(self._folder.state(), self._folder)
        try:
            return stamp, self._view_of(state, before)
        except DirectoryError:
            self.require_whole()
            raise

    def _view_of(self, state: IndexState, before: IndexState | None) -> View:
        engine = self._folder.engine(state)
        with engine_at(engine), _lockable(engine) as folder:
            if before is None or state.engine_number != before.engine_number or folder != engine:
                self._index = tantivy.Index.open(str(folder))
                self._analysis.register(self._index)
                self._index.config_reader("manual")
            self._index.reload()
            searcher, schema = self._index.searcher(), self._index.schema
            repeated = RepeatedLines(searcher, schema)
            return View(self._folder, state, searcher, schema, repeated, _two_hosts(searcher, schema))


@contextmanager
def _lockable(engine: Path) -> Iterator[Path]:
    """Yield the folder `engine`, or one with links to its files if it cannot be written, because opening locks a
    file."""
    if os.access(engine, os.W_OK):
        yield engine
        return
    with TemporaryDirectory(prefix="fyke-") as folder:
        for path in engine.iterdir():
            if path.suffix != ".lock":
                (Path(folder) / path.name).symlink_to(path.absolute())
        yield Path(folder)


def _two_hosts(engine: tantivy.Searcher, schema: tantivy.Schema) -> frozenset[int]:
    hosts: frozenset[int] = frozenset()
    for _ in range(2):
        others = [(Occur.MustNot, tantivy.Query.term_query(schema, "host", host)) for host in hosts]
        query = tantivy.Query.boolean_query([(Occur.Must, tantivy.Query.all_query()), *others])
        found = [address for _, address in engine.search(query, 1, count=False).hits]
        hosts |= {int(host or 0) for host in engine.fast_field_values("host", found)}
    return hosts
