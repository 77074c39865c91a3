"""A search as a person asks it on the page: words in one box, filters in others.

The page and the API call it, so that both mean the same. Invariant: filters narrow the answer and never become part of
the words, whatever is typed into them.
"""

import re
from dataclasses import dataclass, replace

from fyke.search.results import Results
from fyke.search.searcher import Searcher

PER_PAGE = 10
MOST = 100  # hits at a time

_NOT_IN_FILTER = re.compile(r"[\s\"|]+")
_LEADING_OR = re.compile(r"^\s*(?:(?:OR|\|)(?:\s+|$))+")


@dataclass(frozen=True, slots=True)
class SearchForm:
    """Words, and filters that may be empty."""

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
        """The question for the searcher."""
        return f"{self._narrowing}{_LEADING_OR.sub('', self.words) if self.filters else self.words}"

    @property
    def _narrowing(self) -> str:
        return "".join(f"{name}:{value} " for name, value in self.filters.items())

    def answer(self, searcher: Searcher, offset: int = 0, limit: int = PER_PAGE) -> Results:
        """Return the answer, with the words that were asked as its query and suggestion."""
        results = searcher.search(self.query, offset, limit)
        better = results.suggestion and results.suggestion.removeprefix(self._narrowing)
        return replace(results, query=self.words, suggestion=better)
