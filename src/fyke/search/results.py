"""Results: the answer of a search as plain data, ready for a terminal, a page or JSON.

Made by the searcher. Nothing here is escaped or marked up: a snippet is a sequence of (text, whether it is a matched
word), so each renderer escapes in its own way.
"""

from dataclasses import dataclass
from datetime import datetime

Spans = tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A page found. `more_from_site` counts further pages of its host that match and are not listed, `more_like_it`
    those that say nearly the same; `like_it` has the URLs of the best of these."""

    url: str
    title: str
    snippet: Spans
    site: str  # the host
    dated: datetime  # when it was written, as far as can be told
    fetched_at: datetime
    language: str
    score: float
    more_from_site: int = 0
    more_like_it: int = 0
    like_it: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """The answer to a query: `total` pages match, `hits` are those asked for, the best first.

    `unknown` has the words of the query that no page has. Those that need not be there were left out of it.
    """

    query: str
    total: int
    hits: tuple[Hit, ...]
    unknown: tuple[str, ...]
    suggestion: str | None  # a better spelling of the query, if one finds more
    is_respelt: bool  # the hits are for the suggestion, because no page has what was typed
    took_ms: float

    @property
    def unsaid(self) -> tuple[str, ...]:
        """The unknown words, unless they are all that was asked and nothing was found, which says as much."""
        return () if self.unknown == (self.query.strip(),) and not self.is_respelt else self.unknown


@dataclass(frozen=True, slots=True)
class InLink:
    """A page that links to another, and in which words."""

    url: str
    title: str
    words: str
