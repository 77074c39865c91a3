"""The indexer: from an archive to an index, in increments of four phases.

    read    new rows of the pages table → pages of the archive → lots      (arrivals, archived, extract, own_text, lots)
    near    lots → pages that say nearly what an earlier one said           (near)
    merge   lots → the current pages, what others call them → a plan        (merge), with PageRank (linkage)
    write   the plan → documents of the tantivy index                       (documents)

`fyke index` calls `run`. With `--follow` it does so again while the crawl goes on, each time when enough pages have
come to be worth a merge. The indexer is a process of its own and only reads the crawl's files.

Invariant: the state is saved after each lot, each merge and each group of documents, and each is a function of its
inputs. So an index that was killed at any instant ends as if it had never been interrupted.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fyke.archive.arrivals import arrivals, safe_rows
from fyke.archive.directory import CrawlDirectory
from fyke.archive.reading import MENDED, generation
from fyke.core.config import Config
from fyke.core.errors import NotACrawl
from fyke.core.memory import Trimmer
from fyke.core.outcomes import Outcome
from fyke.core.telling import Tell
from fyke.core.urls import key_of, split
from fyke.disk.ranges import RANGE_ROWS
from fyke.search.archived import ArchiveReader
from fyke.search.documents import Writing
from fyke.search.extract import TextExtractor
from fyke.search.folder import ENGINE_META, IndexFolder, IndexState, engine_version
from fyke.search.language import is_untranslated
from fyke.search.linkage import rank_links
from fyke.search.lots import Fate, Lot, LotWriter, NotShown, Read
from fyke.search.merge import merge
from fyke.search.near import find_near
from fyke.search.own_text import OwnText
from fyke.search.schema import Analysis, open_engine

LOT_PAGES = 8_000
LOT_BYTES = 32 << 20  # of text
_WITH_TEXT = frozenset({Outcome.OK, Outcome.TOO_LARGE, Outcome.INCOMPLETE})
COLUMNS = [
    "key", "url", "domain", "status", "outcome", "fetched_at", "media_type", "fingerprint", "noindex", "redirect_to",
    "warc_file", "warc_offset", "warc_length",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class IndexLimits:
    """How much is held at a time. The limits change memory use, not results."""

    lot_pages: int = LOT_PAGES
    lot_bytes: int = LOT_BYTES
    range_rows: int = RANGE_ROWS
    links_memory_bytes: int = 32 << 20
    table_memory_bytes: int = 0  # 0: the crawl's own setting


@dataclass(frozen=True, slots=True)
class Indexed:
    """Counts of a run: pages read, documents written and deleted. Totals of the index: documents, and pages that could
    not be read from the archive."""

    read: int
    written: int
    deleted: int
    documents: int
    unreadable: int


class Indexer:
    """The index of the crawl directory `crawl`, open for writing by this process alone.

        with Indexer(Path("docs")) as indexer:
            print(indexer.run().documents)

    Raises NotACrawl, DirectoryInUse, DiskFull, DirectoryError.
    """

    def __init__(self, crawl: Path, limits: IndexLimits | None = None, progress: Tell | None = None) -> None:
        self.folder = IndexFolder(crawl)
        self._limits = limits or IndexLimits()
        self._progress = progress or (lambda phase, done, of: None)
        self._open = ExitStack()
        self._archive = ArchiveReader(crawl, _settings(crawl).agent.user_agent)
        self._extractor = TextExtractor()
        self._own_text = OwnText()
        self._trimmer = Trimmer()
        self._not_shown = NotShown(self.folder.lots)
        self._read = self._written = self._deleted = 0
        self._planned = False  # the plan is of this process, so nothing of it was written before

    def __repr__(self) -> str:
        return f"Indexer({self.folder!r})"

    def __enter__(self) -> Self:
        safe_rows(self.folder.crawl, "pages")
        with ExitStack() as opening:
            opening.enter_context(self.folder.locked())
            opening.callback(self._archive.close)
            self.state = self._begun()
            self.folder.tidy(self.state)
            if self.state.lots:
                self._own_text = OwnText.read(self.folder.lines(self.state.lots))
            self._open = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def waiting(self) -> int:
        """Return how many pages a checkpoint of the crawl holds that the index lacks."""
        return safe_rows(self.folder.crawl, "pages") - self.state.pages_read

    def run(self, *, growth: float = 0.0) -> Indexed:
        """Index all that is new and return counts. Links are ranked again if they grew by at least the share
        `growth`."""
        self._read = self._written = self._deleted = 0
        self._write()  # the plan of an earlier run
        self._read_pages()
        self._find_near()
        self._rank(growth)
        if (self.state.merged_lots, self.state.merged_ranks) != (self.state.lots, self.state.ranks):
            self._merge()
            self._write()
        return Indexed(self._read, self._written, self._deleted, self.state.documents, self.state.unreadable)

    # --- where it stands

    def _begun(self) -> IndexState:
        """Return the state to go on from: an empty one if crawl or format changed. If only the engine is of another
        version or lost documents, the lots are kept."""
        state = self.folder.state() or IndexState()
        beginning = self._beginning()
        if state.beginning not in ("", beginning) or state.pages_read > safe_rows(self.folder.crawl, "pages"):
            state = IndexState()
        if state.engine != engine_version() or self._has_lost(state):  # the lots stay: only the engine is made anew
            fresh = IndexState(engine=engine_version(), engine_number=self.folder.last_engine() + 1)
            same = ("pages_read", "unreadable", "lots", "links_ranked", "pages_ranked", "ranks")
            kept = {name: getattr(state, name) for name in same}
            state = replace(fresh, **kept)
        state = replace(state, beginning=beginning)
        open_engine(self.folder.engine(state), Analysis())
        self.folder.save(state)
        return state

    def _has_lost(self, state: IndexState) -> bool:
        """Return whether the engine lost what was written. `open_engine` would make an empty one without an error."""
        path = self.folder.engine(state)
        if not (path / ENGINE_META).exists():
            return state.merge > 0
        return state.settled and open_engine(path, Analysis()).searcher().num_docs != state.documents

    def _beginning(self) -> str:
        first = min(1, safe_rows(self.folder.crawl, "pages"))  # a crawl that has just begun has no row yet
        for batch in arrivals(self.folder.crawl, "pages", ["url", "fetched_at"], 0, first):
            row = batch.to_pylist()[0]
            mended = generation(self.folder.crawl)
            return f"{row['url']} {row['fetched_at'].isoformat()}" + (f"{MENDED}{mended}" if mended else "")
        return ""

    def _save(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        self.folder.save(self.state)

    # --- read

    def _read_pages(self) -> None:
        end = safe_rows(self.folder.crawl, "pages")
        position = self.state.pages_read
        lot = LotWriter(self._own_text)
        for row in self._rows(position, end):
            position += 1
            page = self._page(row, lot)
            if page is not None:
                lot.add(page)
            self._progress("read", position, end)
            if len(lot) >= self._limits.lot_pages or lot.size_bytes >= self._limits.lot_bytes:
                lot = self._finished(lot, position)
        self._finished(lot, position)
        del lot
        self._archive.close()  # until more pages come: its files, and who reads documents for it
        self._trimmer.trim()

    def _unreadable(self) -> int:
        """Return the pages so far whose record could not be read; reset the archive's count."""
        new, self._archive.unreadable = self._archive.unreadable, 0
        return self.state.unreadable + new

    def _rows(self, begin: int, end: int) -> Iterator[dict[str, Any]]:
        for batch in arrivals(self.folder.crawl, "pages", COLUMNS, begin, end):
            yield from batch.to_pylist()

    def _finished(self, lot: LotWriter, position: int) -> LotWriter:
        """Write `lot`, save the state, and return a new lot."""
        if len(lot):
            lot.write(self.folder.lots, self.state.lots)
            self._own_text.write(self.folder.lines(self.state.lots + 1))
            self._read += position - self.state.pages_read
            self._save(lots=self.state.lots + 1, pages_read=position, unreadable=self._unreadable())
        elif position > self.state.pages_read:
            self._save(pages_read=position, unreadable=self._unreadable())
        return LotWriter(self._own_text)

    def _page(self, row: dict[str, Any], lot: LotWriter) -> Read | None:
        """Return what became of a page after the visits in `lot`. None if its last visit says nothing new about it, so
        that it stays as it was."""
        outcome = row["outcome"]
        if outcome == Outcome.REDIRECTED:
            return _read(row, Fate.MOVED, target=key_of(row["redirect_to"] or "") if row["redirect_to"] else 0)
        if outcome == Outcome.GONE:
            return _read(row, Fate.GONE)
        as_it_was = outcome == Outcome.UNCHANGED and self._is_news(row, lot)
        if (outcome not in _WITH_TEXT and not as_it_was) or row["warc_file"] is None:
            return None
        page = self._archive.read({**row, "outcome": Outcome.OK} if as_it_was else row)
        if page is None:
            return None
        extract = self._extractor.extract(page)
        if as_it_was:
            row = {**row, "fingerprint": page.fingerprint}  # that of a 304 is of an empty body
        if extract is None or row["noindex"] or (page.noindex and not as_it_was):
            return replace(_read(row, Fate.REFUSED if as_it_was else Fate.HIDDEN), extract=extract)
        read = _read(row, Fate.SHOWN)
        said = {
            "canonical": extract.canonical,
            "teased": round(100 * extract.teased),
            "untranslated": is_untranslated(row["url"], extract.language),
        }
        return replace(read, row=read.row | said, extract=extract)

    def _is_news(self, row: dict[str, Any], lot: LotWriter) -> bool:
        """Return whether a visit that found a page as it was hides it by its header, or no longer does."""
        fate = lot.fate(row["key"]) or self._not_shown.fate(row["key"], self.state.lots)
        return fate is not Fate.HIDDEN and row["noindex"] != (fate is Fate.REFUSED)

    # --- near, merge and write

    def _find_near(self) -> None:
        if self.state.merged_lots == self.state.lots:
            return
        self._progress("near", 0, self.state.pages_read)
        lots = [Lot(self.folder.lots, number) for number in range(self.state.lots)]
        frontier = _settings(self.folder.crawl).frontier
        find_near(self.folder.near, lots, self._limits.table_memory_bytes or frontier.table_memory_bytes)

    def _rank(self, growth: float) -> None:
        """Analyse the links anew if they have grown by at least the share `growth`."""
        links, pages = (safe_rows(self.folder.crawl, name) for name in ("links", "pages"))
        ranked = self.state.links_ranked
        known = (ranked, self.state.pages_ranked) == (links, pages)
        if not links or known or links - ranked < growth * ranked:
            return
        self._progress("rank", 0, links)
        number = self.state.ranks + 1
        rank_links(self.folder, number, (links, pages), self._limits.links_memory_bytes)
        self._save(ranks=number, links_ranked=links, pages_ranked=pages)

    def _merge(self) -> None:
        self._progress("merge", 0, self.state.pages_read)
        number = self.state.merge + 1
        merged = merge(self.folder, self.state, number, self._limits.range_rows)
        self._save(
            merge=number, merged_lots=self.state.lots, merged_ranks=self.state.ranks, written=0, settled=False,
            documents=merged.pages,
        )  # fmt: skip
        self.folder.tidy(self.state)
        self._planned = True
        self._deleted += merged.deletes

    def _write(self) -> None:
        if self.state.settled:
            return
        self._progress("write", 0, self.state.documents)
        writing = Writing(self.folder, self.state)
        self._written += writing.carry_out(
            self.state.written, lambda groups: self._save(written=groups), again=not self._planned
        )
        writing.close()
        self._save(settled=True)
        self._planned = False


def _settings(crawl: Path) -> Config:
    """Return the settings of the crawl, or the usual ones for an archive without a crawl."""
    with suppress(NotACrawl):
        return CrawlDirectory(crawl).config()
    return Config()


def _read(row: dict[str, Any], fate: Fate, target: int = 0) -> Read:
    path = split(row["url"]).target.partition("?")[0]
    facts = {
        "key": row["key"],
        "fetched_at": round(row["fetched_at"].timestamp() * 1e6),
        "fingerprint": row["fingerprint"],
        "domain": key_of(row["domain"]),
        "canonical": 0,
        "target": target,
        "url_chars": len(row["url"]),
        "steps": min(255, path.strip("/").count("/") + (path != "/")),
        "teased": 0,
        "untranslated": 0,
        "fate": fate,
    }
    return Read(facts, row["url"], None)


def be_gentle() -> None:
    """Lower this process's priority, so that a crawl on the same machine does not notice it."""
    os.nice(10)
