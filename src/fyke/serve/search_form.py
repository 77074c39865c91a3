"""A search as a person asks it on the page: words in one box, filters in others.

Called by the page and by the API, so that both mean the same. Invariant: whatever is typed into the filters narrows the
answer and never becomes part of the words.
"""

import re
from dataclasses import dataclass, replace
from datetime import date

from fyke.search.results import Results
from fyke.search.searcher import Searcher

PER_PAGE = 10
MOST = 100  # hits at a time

_NOT_IN_FILTER = re.compile(r"[\s\"|]+")
_LEADING_OR = re.compile(r"^\s*(?:(?:OR|\|)(?:\s+|$))+")


@dataclass(frozen=True, slots=True)
class SearchForm:
    """Words, and filters; empty is none."""

    words: str = ""
    site: str = ""
    language: str = ""
    after: str = ""  # a date, 2026 or 2026-11-14
    before: str = ""

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set, by their word in the query language."""
        named = {"site": self.site, "lang": self.language, "after": self.after, "before": self.before}
        return {name: clear for name, value in named.items() if (clear := _NOT_IN_FILTER.sub("", value)[:200])}

    @property
    def query(self) -> str:
        """The question for the searcher: filters first, since it reads no more than so many characters."""
        return f"{self._narrowing}{_LEADING_OR.sub('', self.words) if self.filters else self.words}"

    @property
    def _narrowing(self) -> str:
        return "".join(f"{name}:{value} " for name, value in self.filters.items())

    def answer(self, searcher: Searcher, offset: int = 0, limit: int = PER_PAGE) -> Results:
        """The answer, its query and suggestion as the words that were asked."""
        results = searcher.search(self.query, offset, limit)
        better = results.suggestion and results.suggestion.removeprefix(self._narrowing)
        return replace(results, query=self.words, suggestion=better)


def day_of(text: str) -> str:
    """`text` if it is a day, month or year, else nothing: a person may type anything."""
    pieces = text.strip().split("-")
    try:
        date(*(int(piece) for piece in [*pieces, "1", "1"][:3]))
    except (ValueError, OverflowError):
        return ""
    return text.strip() if len(pieces) <= 3 else ""
