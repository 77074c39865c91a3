"""Extraction: title, headings, description, main text, language, date and anchors of a page, for search.

The indexer calls it once a page. Links are read in the tree that the parser made; main text and headings by
`fyke.search.main_text`. Invariant: text has no control characters and is no longer than its limit, whatever the page
is. The main text has a line for each block of the page; all else is one line.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from sys import getsizeof
from typing import Any

from selectolax.lexbor import LexborCSSSelector, LexborNode

from fyke.core.document import PIECE_BYTES
from fyke.core.memory import Trimmer
from fyke.core.pages import HTML_TYPES, Page
from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical, key_of, split
from fyke.harvest.documents import DOCUMENT_TYPES
from fyke.harvest.queries import with_queries_encoded
from fyke.search.article import TextParts
from fyke.search.dates import date_of, stated_dates
from fyke.search.language import LanguageGuesser
from fyke.search.lines import by_lines, needed, one_line
from fyke.search.main_text import TEXT_CHARS, main_text
from fyke.search.pieces import Pieces, pieces_of
from fyke.search.teasers import teased

PLAIN_TYPES = frozenset({"text/plain", "text/markdown", "text/x-rst", *DOCUMENT_TYPES})

CANONICAL = "link[rel~=canonical i]"
TITLE_CHARS = 300
DESCRIPTION_CHARS = 500
ANCHOR_CHARS = 120

_SAYS_SOMETHING = re.compile(r"\w")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")  # of Markdown


@dataclass(frozen=True, slots=True)
class Anchor:
    """The words of one link, and the key of the URL it points at."""

    target: int
    words: str


@dataclass(frozen=True, slots=True)
class Extract:
    """The content of one page, for search."""

    title: str
    headings: str
    description: str
    text: str
    language: str
    date_s: int  # unix seconds: modified or published, otherwise fetched
    canonical: int  # key of the address the page says is its own; 0 when it says nothing
    anchors: tuple[Anchor, ...]
    parts: TextParts  # for sketches
    teased: float = 0.0  # share of the text that names or introduces other pages

    @property
    def size_bytes(self) -> int:
        """Memory that its texts take, without anchors and parts."""
        return sum(map(getsizeof, (self.title, self.headings, self.description, self.text)))

    def pieces(self) -> Pieces:
        """Return its pieces. Title and links help to tell which are its own (`fyke.search.own_text`)."""
        return pieces_of(self.parts, (anchor.words for anchor in self.anchors), self.title)


class TextExtractor:
    """A reader of pages. It holds the language model."""

    def __init__(self) -> None:
        self._languages = LanguageGuesser()
        self._links = LinkResolver()
        self._trimmer = Trimmer()
        self._selector: Any = LexborCSSSelector()  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return f"TextExtractor({self._languages!r}, {self._links!r})"

    def extract(self, page: Page) -> Extract | None:
        """Return what `page` says; None if it is not text that people read."""
        if page.media_type in HTML_TYPES:
            return self._html(page)
        return self._plain(page) if page.media_type in PLAIN_TYPES else None

    def _plain(self, page: Page) -> Extract:
        said = page.first_text(needed(TEXT_CHARS))
        text = by_lines(said, TEXT_CHARS)
        first = next((line for line in said[:4000].splitlines() if _SAYS_SOMETHING.search(line)), "")
        if _is_markdown(page):
            first = _without_signs(first)
        return Extract(
            one_line(page.title, TITLE_CHARS) or one_line(first, ANCHOR_CHARS),
            "",
            "",
            text,
            self._languages.guess(text),
            self._date(page, []),
            0,
            (),
            TextParts(text),
        )

    def _html(self, page: Page) -> Extract:
        root = page.tree.root
        if root is None:
            return self._plain(page)
        find = self._selector.find
        metas = [node.attributes for node in find("meta", root)]
        declared = (root.attributes.get("lang") or "") if root.attributes else ""
        date_s = self._date(page, stated_dates(root, find))
        address = canonical_of(page, find(CANONICAL, root))
        anchors = () if page.nofollow else tuple(self._anchors(page, find("a[href],area[href]", root)))
        del root
        page.drop_tree()  # before another is made
        if page.size_bytes > PIECE_BYTES:
            self._trimmer.trim()
        main = main_text(page, parts=True)
        return Extract(
            title=one_line(page.title, TITLE_CHARS) or main.headings[:ANCHOR_CHARS],
            headings=main.headings,
            description=one_line(_meta(metas, ("description", "og:description")), DESCRIPTION_CHARS),
            text=main.text,
            language=self._languages.guess(main.text, declared),
            date_s=date_s,
            canonical=address,
            anchors=anchors,
            parts=main.parts,
            teased=teased(main.text, (anchor.words for anchor in anchors), ANCHOR_CHARS),
        )

    def _date(self, page: Page, told: Iterable[str]) -> int:
        return date_of(chain(told, [page.exchange.header("last-modified")]), page.exchange.started_at)

    def _anchors(self, page: Page, nodes: list[LexborNode]) -> Iterator[Anchor]:
        """Yield each target with each wording once, without links to the page itself."""
        wordings: list[str] = []
        hrefs: list[str] = []
        seen: set[tuple[str, str]] = set()
        for node in nodes:
            attributes = node.attributes
            href = attributes.get("href") or "#"
            if href[0] == "#" or "nofollow" in (attributes.get("rel") or "").lower().split():
                continue
            words = one_line(_words(node, attributes), ANCHOR_CHARS)
            href = href.partition("#")[0]
            if (href, words) not in seen and _SAYS_SOMETHING.search(words):
                seen.add((href, words))
                hrefs.append(href)
                wordings.append(words)
        base = page.links.base
        found = self._links.resolve([(base, with_queries_encoded(hrefs, base, page.charset))])
        for key, link in zip(found.key.tolist(), found.link.tolist(), strict=True):
            if key != page.exchange.visit.key:
                yield Anchor(key, wordings[link])


def _without_signs(line: str) -> str:
    """Return the words of a Markdown heading; any other line as it is."""
    signs = _HEADING.match(line)
    said = line[signs.end() :].rstrip() if signs else line
    bare = said.rstrip("#")
    return bare if signs and bare.endswith((" ", "\t")) else said


def _is_markdown(page: Page) -> bool:
    return page.media_type == "text/markdown" or split(page.url).target.partition("?")[0].lower().endswith(
        (".md", ".markdown")
    )


def _words(node: LexborNode, attributes: dict[str, str | None]) -> str:
    """Return what a link says: its text, otherwise what its picture or label says."""
    text = node.text()
    if not text.strip():
        picture = node.css_first("img[alt]")
        text = attributes.get("aria-label") or attributes.get("title") or attributes.get("alt") or ""
        text = text or ((picture.attributes.get("alt") or "") if picture else "")
    return text


def _meta(metas: list[dict[str, str | None]], names: tuple[str, ...]) -> str:
    """Return the content of the first of `metas` that has one of `names`, the earlier name first."""
    for name in names:
        for attributes in metas:
            if (attributes.get("name") or attributes.get("property") or "").lower() == name:
                return attributes.get("content") or ""
    return ""


def canonical_of(page: Page, links: list[LexborNode]) -> int:
    """Return the key of the address that the first of `links` (`CANONICAL` selects them) names as that of `page`; 0 for
    none."""
    for node in links[:1]:
        (href,) = with_queries_encoded([node.attributes.get("href") or ""], page.links.base, page.charset)
        url = canonical(href, page.links.base)
        return key_of(url) if url else 0
    return 0
