"""The text of pages: rows of the pages table with the main content of their archive record.

Used by the formats that hold text. Pages are read as for search (`fyke.search.archived`), so texts here and there
agree. Invariant: a row whose record cannot be read has no text and is counted; nothing is raised.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fyke.core.closing import Closing
from fyke.core.visits import HTML_TYPES, Page
from fyke.export.source import Source
from fyke.search.archived import ArchiveReader
from fyke.search.language import LanguageGuesser
from fyke.search.lines import one_line

_SAMPLE_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class MainContent:
    """The main content of a page, and its language (ISO 639-1, empty if there is too little text to tell)."""

    text: str
    language: str


class Reading(Closing):
    """Reads pages of `source`; `prose` makes text of them."""

    def __init__(self, source: Source, prose: Callable[[Page], str]) -> None:
        self._archive = ArchiveReader(source.path, source.product)
        self._languages = LanguageGuesser()
        self._prose = prose

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
        if page is None:
            return None
        root = page.tree.root if page.media_type in HTML_TYPES else None
        declared = (root.attributes.get("lang") or "") if root is not None else ""
        del root
        page.drop_tree()  # before another is made
        text = self._prose(page)
        return MainContent(text, self._languages.guess(one_line(text, _SAMPLE_CHARS), declared)) if text else None
