"""Links and robots directives in the header of an answer.

Called by `fyke.harvest.parser` once a page. The HTML module also calls `rel_of`, `obey` and `refresh_target`, because
`<link>` and `<meta>` say the same things. Links here are relative to the page's URL whatever its `<base>` is, so they
are given resolved.

Invariant: malformed input is passed over, never raised.
"""

import re
from itertools import chain, islice
from typing import NamedTuple

from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.urls import canonical
from fyke.core.visits import Exchange

# Without `search`: it leads to a description for browsers more often than to a page.
PAGE_RELS = frozenset(
    {
        "alternate", "amphtml", "appendix", "author", "bookmark", "canonical", "chapter", "contents", "copyright",
        "first", "glossary", "help", "index", "last", "license", "next", "prev", "previous", "section", "start",
        "subsection", "toc", "top", "up",
    }
)  # fmt: skip
REQUISITE_RELS = frozenset(
    {
        "stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "preload",
        "modulepreload", "manifest",
    }
)  # fmt: skip
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[^,;="\s]+\s*(?:=\s*(?:"[^"]*"|[^,;"]*))?)*)')
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|'([^',;\"]*)'|([^,;\"\s]*))", re.IGNORECASE)
_REFRESH = re.compile(r"\s*[\d.]++(?:\s*+[;,]|\s)\s*+(?:url\s*=\s*)?(\"[^\"]*|'[^']*|.*)", re.IGNORECASE | re.DOTALL)
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
BETWEEN = re.compile("[,;]")  # directives, beside blanks
MOST_TARGETS = 200  # of Link fields: resolved, each may be as long as the page's URL
_MARKED = re.compile(rb"\n(?:link|location|refresh|x-robots-tag):", re.IGNORECASE)


class Rel(NamedTuple):
    """The meaning of a link's `rel`."""

    page: bool
    requisite: bool
    nofollow: bool


def rel_of(value: str) -> Rel:
    """Return the meaning of a `rel` attribute; an alternate stylesheet is no page."""
    words = set(value.lower().split())
    requisite = not words.isdisjoint(REQUISITE_RELS)
    return Rel(not requisite and not words.isdisjoint(PAGE_RELS), requisite, "nofollow" in words)


def refresh_target(value: str) -> str:
    """Return the URL of a `Refresh` header or `<meta http-equiv=refresh>`; empty if it only reloads."""
    match = _REFRESH.match(value)
    return match[1].strip("\"' \t\r\n\f") if match else ""


def directives(value: str, product: str) -> set[str]:
    """Return the robots directives of an `X-Robots-Tag` for everyone or for `product`, lower case. Commas, semicolons
    and blanks are between them. The name of a robot is one word before a colon, and no number, as in a time."""
    found: set[str] = set()
    ours = True
    for part in BETWEEN.split(value.lower()):
        words, _, rest = part.partition(":")
        names = words.split()
        if rest and len(names) == 1 and names[0] not in _VALUED and not names[0].isdigit():
            ours = names[0] in (product, "*")
            part = rest
        if ours:
            found.update(part.split())
    return found


def obey(page: Page, words: set[str]) -> None:
    """Note on `page` what the robots directives `words` ask."""
    if "none" in words:
        page.noindex = page.nofollow = True
    page.noindex |= "noindex" in words
    page.nofollow |= "nofollow" in words


def read_headers(page: Page, product: str, requisites: bool) -> list[str]:
    """Put the links and robots directives of the header on `page`; return the redirect's target, if any.

    A redirect is the server's own instruction: it is followed whatever robots directives say.
    """
    exchange = page.exchange
    if not _MARKED.search(exchange.head):
        return []
    read_robots(page, product)
    _read_links(page, requisites)
    for value in exchange.headers("refresh")[:1]:
        page.links.pages += _resolved(refresh_target(value), page.url)
    if exchange.outcome is Outcome.REDIRECTED or exchange.status == 201:
        return _resolved(exchange.location, page.url)
    return []


def read_robots(page: Page, product: str) -> None:
    """Note on `page` what the robots directives of the header ask."""
    for value in page.exchange.headers("x-robots-tag") if _MARKED.search(page.exchange.head) else []:
        obey(page, directives(value, product))


def said_of_links(exchange: Exchange) -> str:
    """Return all that the header says of links and robots. Answers that differ in it may lead elsewhere with the same
    body."""
    if not _MARKED.search(exchange.head):
        return ""
    return repr([exchange.headers(name) for name in ("x-robots-tag", "link", "refresh", "location")])


def _read_links(page: Page, requisites: bool) -> None:
    matches = chain.from_iterable(_LINK.finditer(value) for value in page.exchange.headers("link"))
    for target, parameters in (match.groups() for match in islice(matches, MOST_TARGETS)):
        rel = _REL.search(parameters)
        means = rel_of(rel[1] or rel[2] or rel[3] or "") if rel else Rel(False, False, False)
        if means.page:
            (page.links.nofollow if means.nofollow else page.links.pages).extend(_resolved(target, page.url))
        elif means.requisite and requisites:
            page.links.requisites += _resolved(target, page.url)


def _resolved(target: str, base: str) -> list[str]:
    url = canonical(target, base) if target else None
    return [url] if url else []
