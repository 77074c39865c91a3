"""The query language takes apart a line that a person typed.

    words              most of the important ones must be there       sorting dictionaries
    "a phrase"         these words in this order                      "list comprehension"
    +word  -word       must be there, must not be                     python +asyncio -twisted
    a OR b             either, of the two beside it                   colour OR color pickers
    intitle:  inurl:   in the title, in the address                   intitle:howto inurl:library
    a URL              by its words, without the scheme               https://docs.python.org/3/
    site:              on this host, or below this domain             site:docs.python.org
                       at an address that begins so                   site:docs.python.org/3/library/
    near:              says nearly what this page says                near:https://example.org/a.html
    lang:              in this language                               lang:de
    after:  before:    dated from that day on, before that day        after:2024 before:2024-06-15

The searcher calls `parse`; `fyke.search.compiling` makes the engine's queries of the result. Invariant: any text
parses, or is refused with one line that says what to write instead (`after:soon`). If a filter that says nothing were
taken as words, it would answer another question.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum

from fyke.core.errors import BadQuery
from fyke.core.urls import canonical, key_of, split

MAX_CHARS = 2_000
MAX_CLAUSES = 40
MAX_SITE_CHARS = 400  # with a path: the engine compares few more

_TOKEN = re.compile(
    r'(?P<sign>[+-])?(?:(?P<field>site|near|inurl|intitle|lang|after|before):)?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))',
    re.IGNORECASE,
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://(?:www\.)?(?=[^\W_])", re.IGNORECASE)  # and what addresses have no word for
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_PORT = re.compile(r":\d*$")
_OR = frozenset({"OR", "|"})
_FILTER = re.compile(r"(site|near|inurl|intitle|lang|after|before):", re.IGNORECASE)
_INSTEAD = {
    "site": "the name of a host or domain, and at most a short path, such as site:docs.example.org",
    "near": "the address of a page, such as near:https://example.org/a.html",
    "inurl": "a word of the address, such as inurl:library",
    "intitle": "a word of the title, such as intitle:howto",
    "lang": "a language by its two letters, such as lang:de",
    "after": "a year, month or day, such as after:2024 or after:2024-06-15",
    "before": "a year, month or day, such as before:2024 or before:2024-06-15",
}


class Occur(Enum):
    """How a clause counts: it may, must or must not be met."""

    SHOULD = "should"
    MUST = "must"
    NOT = "not"


@dataclass(frozen=True, slots=True)
class Words:
    """Text to be found: a word, or a phrase. `where` is title, url, or empty for anywhere."""

    text: str
    begin: int  # its place in the query, so that a better spelling can replace it
    phrase: bool = False
    where: str = ""

    @property
    def typed(self) -> str:
        """The words as a query has them."""
        if self.where:
            return f"in{self.where}:{self.text}"
        return f'"{self.text}"' if self.phrase else self.text


@dataclass(frozen=True, slots=True)
class Site:
    """Pages of a host, or of a domain and all below it; those at addresses with a path that begins with `path`."""

    name: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Near:
    """A page, by its key, and pages that say nearly the same."""

    key: int


@dataclass(frozen=True, slots=True)
class Language:
    """Pages in a language, by its ISO 639-1 code."""

    code: str


@dataclass(frozen=True, slots=True)
class Dated:
    """Pages dated from `begin_s` on and before `end_s`; unix seconds, None for no limit."""

    begin_s: int | None = None
    end_s: int | None = None


Part = Words | Site | Near | Language | Dated


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition, met by any of its parts."""

    parts: tuple[Part, ...]
    occur: Occur

    @property
    def may_miss(self) -> bool:
        """True if it is of words that need not be there, and of no phrase."""
        words = all(isinstance(part, Words) and not part.phrase for part in self.parts)
        return words and self.occur is Occur.SHOULD


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A query taken apart. `left_out` are clauses that ask for nothing, because no page meets them."""

    text: str
    clauses: tuple[Clause, ...]
    left_out: tuple[Clause, ...] = ()

    def words(self) -> Iterator[Words]:
        """Yield every word and phrase that may be there."""
        for clause in self.clauses:
            if clause.occur is not Occur.NOT:
                yield from (part for part in clause.parts if isinstance(part, Words))

    @property
    def names_sites(self) -> bool:
        """True if it asks for the pages of certain sites."""
        return self._asks_for(Site)

    @property
    def names_clusters(self) -> bool:
        """True if it asks for the pages that are near certain ones."""
        return self._asks_for(Near)

    def without(self, clauses: Iterable[Clause]) -> "SearchQuery":
        """Return the query with `clauses` left out."""
        out = tuple(clauses)
        return replace(self, clauses=tuple(c for c in self.clauses if c not in out), left_out=self.left_out + out)

    def _asks_for(self, kind: type[Part]) -> bool:
        return any(isinstance(part, kind) for c in self.clauses if c.occur is not Occur.NOT for part in c.parts)


def parse(text: str) -> SearchQuery:
    """Return the query in `text`. Raises BadQuery for a filter that says nothing, and for a query that is too long."""
    if len(text) > MAX_CHARS:
        raise BadQuery(f"the query is too long; write at most {MAX_CHARS:,} characters")
    text = text.encode("utf-8", "replace").decode()  # lone surrogates become question marks
    clauses: list[Clause] = []
    either = False
    for match in _TOKEN.finditer(text):
        if match[0] in _OR and clauses:
            either = True
            continue
        occur = {"+": Occur.MUST, "-": Occur.NOT}.get(match["sign"] or "", Occur.SHOULD)
        part = _part(match)
        if isinstance(part, Site | Near | Language | Dated) or (isinstance(part, Words) and part.where):
            occur = Occur.MUST if occur is Occur.SHOULD else occur
        last = clauses[-1] if clauses else None
        if either and last is not None and occur is not Occur.NOT and last.occur is not Occur.NOT:
            clauses[-1] = Clause((*last.parts, part), last.occur)
        else:
            clauses.append(Clause((part,), occur))
        either = False
    if len(clauses) > MAX_CLAUSES:
        raise BadQuery(f"the query has {len(clauses)} words and filters; write at most {MAX_CLAUSES}")
    return SearchQuery(text, tuple(clauses))


def _part(match: re.Match[str]) -> Part:
    phrase = match["phrase"]
    value = match["word"] if phrase is None else phrase
    begin = match.start("word" if phrase is None else "phrase")
    if match["field"]:
        return _filter(match["field"].lower(), value, begin)
    if phrase is None and (empty := _FILTER.fullmatch(value)):
        raise _refused(empty[1].lower(), "")
    scheme = _SCHEME.match(value) if phrase is None else None  # a URL: pages are found by the rest of it
    skipped = scheme.end() if scheme else 0
    return Words(value[skipped:], begin + skipped, phrase is not None)


def _filter(field: str, value: str, begin: int) -> Part:
    """Return what `field:value` narrows the answer to. Raises BadQuery."""
    if field == "site" and (site := _site(value.partition("://")[2] or value)) is not None:
        return site
    if field == "near" and (url := canonical(value)):
        return Near(key_of(url))
    if field == "lang" and value.isalpha() and len(value) > 1:
        return Language(value.lower()[:2])
    if field in ("after", "before") and (day := _day(value)) is not None:
        return Dated(begin_s=day) if field == "after" else Dated(end_s=day)
    if field in ("inurl", "intitle") and any(map(str.isalnum, value)):
        return Words(value, begin, phrase=True, where=field.removeprefix("in"))
    raise _refused(field, value)


def _refused(field: str, value: str) -> BadQuery:
    shown = "".join(letter if letter.isprintable() else " " for letter in value[:60])
    what = f"{shown!r} is not valid" if value else "it is empty"
    return BadQuery(f'{field}: {what}; write {_INSTEAD[field]}, or "{field}:{shown}" in quotes to find it as words')


def _site(value: str) -> Site | None:
    host, _, path = value.partition("/")
    name = _PORT.sub("", host).strip(".").removeprefix("*.").lower()
    if not name or not path:
        return Site(name) if name else None
    url = canonical(f"http://a.example/{path}")
    target = split(url).target if url else ""
    return Site(name, target) if target and len(name) + len(target) <= MAX_SITE_CHARS else None


def _day(value: str) -> int | None:
    """Return the beginning of a day, month or year, in unix seconds; None if it is no date."""
    match = _DATE.fullmatch(value)
    if match is None:
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return int(datetime(year, month, day, tzinfo=UTC).timestamp())
    except ValueError:
        return None
