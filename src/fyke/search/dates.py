"""When was a page written? By what it says, what its server says, otherwise when it was fetched.

Called once a page while indexing. `_IN_ORDER` has every place where a page says it, the most trusted first. A date that
is nonsense (before the web, after the fetch) is passed over. Invariant: always a time, in unix seconds; nothing raises.
The work is linear in the page.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from selectolax.lexbor import LexborNode

from fyke.harvest.dates import time_written
from fyke.harvest.json_ld import as_list, json_ld, types_of

EARLIEST_S = 631_152_000  # 1990: before it there were no pages
SLACK_S = 86_400  # clocks and time zones differ
LOOKED_AT = 10  # elements of a kind, and values in JSON-LD; a page may list thousands of dates
DATE_CHARS = 60

_MODIFIED = ("article:modified_time", "og:updated_time", "dcterms.modified", "last-modified")
_PUBLISHED = (
    "article:published_time", "dcterms.issued", "dcterms.created", "dcterms.date", "dc.date.issued", "dc.date",
    "datepublished", "citation_publication_date", "citation_date", "parsely-pub-date", "sailthru.date", "publishdate",
    "pubdate", "date",
)  # fmt: skip
_LEADING_DATE = re.compile(
    r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?\s*(Z|[+-]\d{2}:?\d{2})?)?"
)
_PACKED = re.compile(r"(\d{4})(\d{2})(\d{2})(?:\d{6})?(?!\d)")
_ARTICLE = re.compile(r"\w*(?:Article|Posting)|Report|Recipe|HowTo")  # types of schema.org
_PAGE = re.compile(r"\w*Page")
_OF_VISITORS = re.compile(r".*(?:Comment|Review)s?")
_LEVELS = 50  # elements between a date and the item that it is of


def date_of(told: Iterable[str], fetched_at_s: float) -> int:
    """Return the first usable of the dates `told`, in order of trust, otherwise `fetched_at_s`; whole unix seconds."""
    for text in told:
        seconds = parsed(text)
        if seconds is not None and EARLIEST_S <= seconds <= fetched_at_s + SLACK_S:
            return round(seconds)
    return round(fetched_at_s)


def parsed(text: str) -> float | None:
    """Return `text`, an ISO 8601 date or time, an HTTP date, or a day with an English month, as unix seconds, in UTC
    without a zone. None if it is no date."""
    text = text.strip()[:DATE_CHARS]
    try:
        if match := _PACKED.match(text):
            when = datetime.fromisoformat("-".join(match.groups()))
        elif match := _LEADING_DATE.match(text):
            year, _, month, day, time, zone = match.groups()
            when = datetime.fromisoformat(f"{year}-{month:>02}-{day:>02}T{time or '00:00'}{zone or ''}")
        else:
            when = time_written(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def stated_dates(root: LexborNode, find: Callable[[str, LexborNode], list[LexborNode]]) -> Iterator[str]:
    """Yield the dates that the page with this `root` states, in order of trust; what is not asked for is not read.

    `find` returns the elements that a CSS selector finds.
    """
    stated = _Stated(root, find)
    for read, where in _IN_ORDER:
        yield from read(stated, where)


class _Stated:
    """What a page states of its dates, by the place."""

    def __init__(self, root: LexborNode, find: Callable[[str, LexborNode], list[LexborNode]]) -> None:
        self._root = root
        self._find = find

    def metas(self, names: Sequence[str]) -> Iterator[str]:
        return (self._metas[name] for name in names if name in self._metas)

    def json(self, name: str) -> Iterator[str]:
        values = (value for one in self._described for value in as_list(one.get(name))[:LOOKED_AT])
        for value in values:
            said = value.get("@value") if isinstance(value, dict) else value
            if isinstance(said, str):
                yield said

    def items(self, name: str) -> Iterator[str]:
        nodes = self._find(f"[itemprop~={name}]", self._root)[:LOOKED_AT]
        return (_said(node) for node in nodes if not _OF_VISITORS.fullmatch(_item_of(node)))

    def times(self, selector: str) -> Iterator[str]:
        return map(_said, self._find(selector, self._root)[:LOOKED_AT])

    @cached_property
    def _metas(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for node in self._find("meta[content]", self._root):
            of = node.attributes
            found.setdefault(
                (of.get("name") or of.get("property") or of.get("http-equiv") or "").lower(), of["content"] or ""
            )
        return found

    @cached_property
    def _described(self) -> list[dict[str, Any]]:
        """The article of the page, then the page, as JSON-LD has them; not what else it may tell of, such as films."""
        articles: list[dict[str, Any]] = []
        pages: list[dict[str, Any]] = []
        for one in json_ld(self._root, naming='"date'):
            for each in (one, *(main for main in as_list(one.get("mainEntity"))[:LOOKED_AT] if isinstance(main, dict))):
                types = types_of(each)
                if any(map(_ARTICLE.fullmatch, types)):
                    articles.append(each)
                elif any(map(_PAGE.fullmatch, types)):
                    pages.append(each)
        return [*articles[:LOOKED_AT], *pages[:LOOKED_AT]]


_IN_ORDER: tuple[tuple[Callable[[_Stated, Any], Iterator[str]], str | tuple[str, ...]], ...] = (
    (_Stated.metas, _MODIFIED),
    (_Stated.json, "dateModified"),
    (_Stated.items, "dateModified"),
    (_Stated.metas, _PUBLISHED),
    (_Stated.json, "datePublished"),
    (_Stated.items, "datePublished"),
    (_Stated.times, "time[pubdate]"),
    (_Stated.times, "time[datetime]"),
    (_Stated.times, "time"),
)


def _said(node: LexborNode) -> str:
    """Return the date of an element: in an attribute, or its text."""
    return node.attributes.get("content") or node.attributes.get("datetime") or node.text()


def _item_of(node: LexborNode) -> str:
    """Return the type of the thing that an element with `itemprop` is about, empty if it has none."""
    around = node.parent
    for _ in range(_LEVELS):
        if around is None or "itemscope" in around.attributes:
            break
        around = around.parent
    return (around.attributes.get("itemtype") or "") if around is not None else ""
