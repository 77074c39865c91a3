"""The main content of a page as text to be read: plain, or as Markdown.

Called once a page by `fyke.export.page_text`. resiliparse decides what is content and what is navigation, as for
search, but paragraphs and lists stay. Invariant: the text has no control characters except line ends and tabs, and none
that turn its direction. In Markdown nothing of the page can act as HTML, or as a link except to a crawled scheme
(`marks`).
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Literal

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborNode

from fyke.core.hidden import CONTROL, HIDDEN
from fyke.core.markup import tree_of
from fyke.core.pages import HTML_TYPES, Page
from fyke.export.marks import MARKS, marked, single, without_marks, written
from fyke.export.numbering import NUMBER, NUMBERS, numbered
from fyke.search.main_text import HTML_BYTES, is_deep, kept, largest_part, readable, without_navigation

TEXT_CHARS = 1_000_000
READ_CHARS = 2 * TEXT_CHARS  # of a text, before blanks and signs are taken out

Formatting = bool | Literal["minimal_html"]

_BEHIND_CHARS = 1_000  # read too, because a sign is escaped by what stands behind it
_LISTS_DEEP = 12  # deeper lists become text of one item
_NOT_TEXT = re.compile(f"[{CONTROL}{HIDDEN}]")
_BLANKS = re.compile(r"(?<![ \t])[ \t]++\n")
_GAPS = re.compile(r"\n{3,}")
_SIGNS = re.compile(rf"([\\`*~<\[\]]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w{{1,32}};)|!(?={MARKS}))")
_LINE_SIGNS = re.compile(rf"^((?:[^\S\n]|{MARKS}|{NUMBERS})*+)([#>+=|-]|\d{{1,9}}(?=[.)]))", re.MULTILINE)
_ITEM = re.compile(rf"^([^\S\n]*+)\d++\. {NUMBER.pattern}", re.MULTILINE)
_LAST_HASH = re.compile(r"#\Z")  # after a blank it would end the heading, and be no part of it
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}


def plain(page: Page) -> str:
    """Return the main content of `page`, a blank line between paragraphs."""
    if page.media_type not in HTML_TYPES:
        return _clean(page.first_text(READ_CHARS))
    text = _main(numbered(readable(page)), formatting=True)
    return _clean(NUMBER.sub("", _ITEM.sub(r"\1\2. ", text)))


def markdown(page: Page) -> str:
    """Return the main content of `page` as Markdown."""
    if page.media_type not in HTML_TYPES:
        text = page.first_text(READ_CHARS + _BEHIND_CHARS)
        return _clean(text if page.media_type == "text/markdown" else _escaped(text))
    html = numbered(page.safe_html(HTML_BYTES))
    if is_deep(html):
        return _clean(_escaped(NUMBER.sub("", _main(html, formatting=False))))
    page_marked = marked(html, page.url)
    parser = tree_of(single(_main(kept(page_marked.html), formatting="minimal_html")).encode("utf-8", "replace"))
    text = "\n\n".join(_blocks(parser.body)) if parser.body else ""
    return _clean(NUMBER.sub("", written(text[:READ_CHARS], page_marked.urls)))


def _main(html: str, formatting: Formatting) -> str:
    """Return the main content; all but the navigation if it says little; all if a page is navigation alone. In one line
    if elements are nested so deep that layout would cost the square of the depth."""
    if is_deep(html):
        return _extracted(html, False, main=False)
    main = largest_part(partial(_extracted, without_navigation(html), formatting), html)
    return main or _extracted(html, formatting, main=False)


def _extracted(html: str | HTMLTree, formatting: Formatting, *, main: bool, noscript: bool = False) -> str:
    text = extract_plain_text(
        html, preserve_formatting=formatting, main_content=main, alt_texts=False, noscript=noscript
    )
    return str(text)


def _clean(text: str) -> str:
    text = _NOT_TEXT.sub("", text[:READ_CHARS].replace("\r\n", "\n").replace("\r", "\n"))
    text = _GAPS.sub("\n\n", _BLANKS.sub("\n", text)).strip()
    return text[:TEXT_CHARS].rstrip().encode("utf-8", "ignore").decode()


def _blocks(parent: LexborNode) -> Iterator[str]:
    """Yield the blocks of resiliparse's minimal HTML: headings, paragraphs, lists, preformatted text, and bare text."""
    for node in parent.iter(include_text=True):
        text = _block(node)
        if text:
            yield text


def _block(node: LexborNode, depth: int = 0) -> str:
    tag = node.tag or ""
    if tag in _HEADINGS:
        title = _LAST_HASH.sub(r"\\#", " ".join(_inline(node).split()))
        return f"{_HEADINGS[tag]} {title}" if title else ""
    if tag in ("ul", "ol") and depth < _LISTS_DEEP:
        return "\n".join(_items(node, depth, ordered=tag == "ol"))
    if tag == "pre":
        return _fenced(without_marks(node.text()).strip("\n"))
    return _inline(node).strip()


def _items(node: LexborNode, depth: int, *, ordered: bool) -> Iterator[str]:
    """Yield the items of a list; blocks of an item after its first line are indented below it."""
    for number, item in enumerate(node.iter(), 1):
        blocks = [text for text in (_block(child, depth + 1) for child in item.iter(include_text=True)) if text]
        lines = "\n".join(blocks).split("\n")
        said = NUMBER.match(lines[0])
        sign = f"{said[1] if said else number}. " if ordered else "- "
        yield sign + ("\n" + " " * len(sign)).join(lines)


def _inline(node: LexborNode) -> str:
    text = node.text_content if node.tag == "-text" else node.text()
    return _escaped("\n".join(line.strip() for line in (text or "").split("\n")))


def _escaped(text: str) -> str:
    return _LINE_SIGNS.sub(_guarded, _SIGNS.sub(r"\\\1", text))


def _guarded(match: re.Match[str]) -> str:
    sign = match[2]
    return f"{match[1]}{sign}\\" if sign.isdigit() else f"{match[1]}\\{sign}"


def _fenced(code: str) -> str:
    """Return `code` between fences longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{code}\n{fence}" if code.strip() else ""
