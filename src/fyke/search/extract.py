"""What a page says, for search: title, headings, description, main text, language, date, and its anchors.

Called by the indexer once a page. Links are read in the tree that the parser made; main text and headings in
resiliparse's, after what is marked as navigation was taken out of it. Invariant: text is without control characters and
no longer than its limit, whatever the page is; the main text has a line for each block of the page, all else is one
line.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import DOMNode, HTMLTree
from selectolax.lexbor import LexborCSSSelector, LexborNode

from fyke.core.hidden import HIDDEN
from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical, key_of
from fyke.core.visits import HTML_TYPES, Page
from fyke.harvest.documents import DOCUMENT_TYPES
from fyke.harvest.queries import with_queries_encoded
from fyke.search.dates import META_NAMES, date_of
from fyke.search.language import LanguageGuesser

PLAIN_TYPES = frozenset({"text/plain", "text/markdown", "text/x-rst", *DOCUMENT_TYPES})

TITLE_CHARS = 300
HEADINGS_CHARS = 4_000
MAX_HEADINGS = 200  # each is read with all that is in it
DESCRIPTION_CHARS = 500
TEXT_CHARS = 200_000
ANCHOR_CHARS = 120

# What leads elsewhere, by the roles of HTML and ARIA, and by the names that DocBook, Sphinx, WordPress and others use.
_NAVIGATION = (
    "nav, aside, footer, menu, "
    "[role=navigation], [role=complementary], [role=contentinfo], [role=search], [role=banner], [role=menu], "
    ".navheader, .navfooter, .navbar, .breadcrumb, .breadcrumbs, .pagination, .pager, .skip-link, "
    ".widget-area, .related, #related, .related-posts"
)

HTML_BYTES = 4 << 20
LITTLE_TEXT = 250  # where the main text says less, in letters of an alphabet, the main part may have been missed
_DENSE = "\u2e80"  # the first of the scripts of China, Japan and Korea
_DENSE_SAYS = 3  # letters, by a character of theirs
# Control characters but blanks, hyphens where a word may be parted, and Sphinx's sign for a link to a heading.
_NOT_SHOWN = re.compile(rf"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad{HIDDEN}¶]")
_MANY_TAGS = 4_000
_DEEP = 1_000  # browsers stop at half of it
_NESTING_TAG = re.compile(
    r"</|<(?!(?:br|img|meta|link|input|hr|wbr|p|li|td|tr|th|dd|dt|option)\b)(?=[a-z])", re.IGNORECASE
)
_SAYS_SOMETHING = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Anchor:
    """The words of one link, and the key of the URL it points at."""

    target: int
    words: str


@dataclass(frozen=True, slots=True)
class Extract:
    """What search knows of a page by itself."""

    title: str
    headings: str
    description: str
    text: str
    language: str
    date_s: int  # unix seconds: modified or published, else fetched
    canonical: int  # key of the address the page says is its own; 0 when it says nothing
    anchors: tuple[Anchor, ...]


def one_line(text: str, limit: int) -> str:
    """`text` with white space collapsed and invisible characters taken out, at most `limit` characters."""
    text = text[: 4 * limit + 1000]  # a page may hold megabytes of blanks
    return " ".join(_NOT_SHOWN.sub("", text).split())[:limit].rstrip().encode("utf-8", "ignore").decode()


def by_lines(text: str, limit: int) -> str:
    """`text` without invisible characters, its lines as `one_line` has them, about `limit` characters."""
    lines = (" ".join(line.split()) for line in _NOT_SHOWN.sub("", text[: 4 * limit + 1000]).splitlines())
    return "\n".join(filter(None, lines))[:limit].rstrip().encode("utf-8", "ignore").decode()


class TextExtractor:
    """Reads pages. Holds the language model."""

    def __init__(self) -> None:
        self._languages = LanguageGuesser()
        self._links = LinkResolver()
        self._selector: Any = LexborCSSSelector()  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return f"TextExtractor({self._languages!r}, {self._links!r})"

    def extract(self, page: Page) -> Extract | None:
        """What `page` says; None when it is not text that people read."""
        if page.media_type in HTML_TYPES:
            return self._html(page)
        return self._plain(page) if page.media_type in PLAIN_TYPES else None

    def _plain(self, page: Page) -> Extract:
        said = page.text
        text = by_lines(said, TEXT_CHARS)
        first = next((line for line in said[:4000].splitlines() if _SAYS_SOMETHING.search(line)), "")
        return Extract(
            one_line(page.title, TITLE_CHARS) or one_line(first, ANCHOR_CHARS),
            "",
            "",
            text,
            self._languages.guess(text),
            self._date(page, []),
            0,
            (),
        )

    def _html(self, page: Page) -> Extract:
        root = page.tree.root
        if root is None:
            return self._plain(page)
        find = self._selector.find
        metas = [node.attributes for node in find("meta", root)]
        text, headings = _main(page)
        declared = (root.attributes.get("lang") or "") if root.attributes else ""
        return Extract(
            title=one_line(page.title, TITLE_CHARS) or headings[:ANCHOR_CHARS],
            headings=headings,
            description=one_line(_meta(metas, ("description", "og:description")), DESCRIPTION_CHARS),
            text=text,
            language=self._languages.guess(text, declared),
            date_s=self._date(page, _dates(metas, find("time[datetime]", root))),
            canonical=_canonical(page, find("link[rel~=canonical i]", root)),
            anchors=() if page.nofollow else tuple(self._anchors(page, find("a[href],area[href]", root))),
        )

    def _date(self, page: Page, told: list[str]) -> int:
        return date_of([*told, page.exchange.header("last-modified")], page.exchange.started_at)

    def _anchors(self, page: Page, nodes: list[LexborNode]) -> Iterator[Anchor]:
        """Each target with each wording once; links to the page itself are left out."""
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


def main_text(page: Page) -> str:
    """The text of an HTML page without its navigation, a line for each block."""
    return _main(page)[0]


def _main(page: Page) -> tuple[str, str]:
    """Main text and headings of an HTML page; all text where the main part has little of it."""
    html = page.safe_html(HTML_BYTES)
    tree = HTMLTree.parse(html)
    if tree.body is None:
        return "", ""
    for node in reversed(tree.body.query_selector_all(_NAVIGATION)[:]):  # to go through what is found is quadratic
        node.decompose()
    deep = is_deep(html)
    main = "" if deep else by_lines(_plain_text(tree, main_content=True), TEXT_CHARS)
    if is_little(main):
        whole = by_lines(_plain_text(tree, main_content=False, formatting=not deep), TEXT_CHARS)
        main = whole if len(whole) > 2 * len(main) else main
    headings = () if deep else tree.body.query_selector_all("h1,h2,h3,h4")[:MAX_HEADINGS]
    return main, one_line(" ".join(_texts(headings, HEADINGS_CHARS)), HEADINGS_CHARS)


def is_little(text: str) -> bool:
    """Whether `text` says less than what would be the main part of a page."""
    if len(text) >= LITTLE_TEXT:
        return False
    return len(text) + (_DENSE_SAYS - 1) * sum(character >= _DENSE for character in text) < LITTLE_TEXT


def is_deep(html: str) -> bool:
    """Whether elements may be nested so deeply that finding the main part, quadratic in depth, takes seconds."""
    if html.count("<") < _MANY_TAGS:
        return False
    ends = np.array(list(map(len, _NESTING_TAG.findall(html)))) == len("</")
    return bool(len(ends)) and int(np.cumsum(1 - 2 * ends).max()) > _DEEP


def _plain_text(tree: HTMLTree, *, main_content: bool, formatting: bool = True) -> str:
    return str(
        extract_plain_text(
            tree, preserve_formatting=formatting, main_content=main_content, list_bullets=False, alt_texts=False
        )
    )


def _texts(nodes: Iterable[DOMNode], limit: int) -> Iterator[str]:
    """The text of the first `nodes` until there are `limit` characters."""
    for node in nodes:
        text = node.text or ""
        yield text
        limit -= len(text)
        if limit <= 0:
            return


def _words(node: LexborNode, attributes: dict[str, str | None]) -> str:
    """What a link says: its text, else what its picture or label says."""
    text = node.text()
    if not text.strip():
        picture = node.css_first("img[alt]")
        text = attributes.get("aria-label") or attributes.get("title") or attributes.get("alt") or ""
        text = text or ((picture.attributes.get("alt") or "") if picture else "")
    return text


def _meta(metas: list[dict[str, str | None]], names: tuple[str, ...]) -> str:
    """The content of the first of `metas` that has one of `names`, the earlier name first."""
    for name in names:
        for attributes in metas:
            if (attributes.get("name") or attributes.get("property") or "").lower() == name:
                return attributes.get("content") or ""
    return ""


def _dates(metas: list[dict[str, str | None]], times: list[LexborNode]) -> list[str]:
    found = [_meta(metas, (name,)) for name in META_NAMES]
    return [text for text in found if text] + [node.attributes.get("datetime") or "" for node in times[:1]]


def _canonical(page: Page, links: list[LexborNode]) -> int:
    for node in links[:1]:
        (href,) = with_queries_encoded([node.attributes.get("href") or ""], page.links.base, page.charset)
        url = canonical(href, page.links.base)
        return key_of(url) if url else 0
    return 0
