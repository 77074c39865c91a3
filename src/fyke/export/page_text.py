"""The text of pages: rows of the pages table with the main content of their archive record.

Used by the formats that hold text. Pages are read as for search (`fyke.search.archived`), so texts here and there
agree. What a page says of itself is read with it, because the rows of exact copies do not have it. Invariant: a row
whose record cannot be read has no text and is counted; nothing is raised.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fyke.core.closing import Closing
from fyke.core.pages import HTML_TYPES, Page
from fyke.export.source import Source
from fyke.search.archived import ArchiveReader
from fyke.search.extract import TITLE_CHARS
from fyke.search.language import LanguageGuesser
from fyke.search.lines import one_line


@dataclass(frozen=True, slots=True)
class MainContent:
    """The main content of a page, and its language (ISO 639-1, empty if there is too little text to tell)."""

    text: str
    language: str
    title: str
    charset: str
    noindex: bool  # whether it asks not to be indexed


class Reading(Closing):
    """Reads pages of `source`; `prose` makes text of them. Pages that ask not to be indexed have nothing to read, if
    not `with_noindex`."""

    def __init__(self, source: Source, prose: Callable[[Page], str], *, with_noindex: bool) -> None:
        self._archive = ArchiveReader(source.path, source.product)
        self._languages = LanguageGuesser()
        self._prose = prose
        self._with_noindex = with_noindex

    def __repr__(self) -> str:
        return f"Reading({self._archive!r})"

    def close(self) -> None:
        self._archive.close()

    @property
    def unreadable(self) -> int:
        """Number of records so far that were not there or not whole."""
        return self._archive.unreadable

    def content_of(self, row: dict[str, Any]) -> MainContent | None:
        """Return the content of the page of `row` (as for `ArchiveReader.read`); None if there is nothing to read."""
        page = self._archive.read(row)
        if page is None or (page.noindex and not self._with_noindex):
            return None
        root = page.tree.root if page.media_type in HTML_TYPES else None
        declared = (root.attributes.get("lang") or "") if root is not None else ""
        del root
        page.drop_tree()  # before another is made
        text = self._prose(page)
        if not text:
            return None
        language = self._languages.guess(text, declared)
        return MainContent(text, language, one_line(page.title, TITLE_CHARS), page.encoding, page.noindex)
