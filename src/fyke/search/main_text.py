"""Which text of an HTML page is its own, without menus and what leads elsewhere, for search and exports?

resiliparse (Bevendorff et al., Elastic ChatNoir, ECIR 2018) decides what is content, in its own tree, after elements
marked as navigation were taken out. It takes each list near the top of a page for a menu. So lists are put deeper,
where it asks how much of them is links. It takes a character of three bytes alone in an element for an icon, `<time>`
for a remark beside the text, and labels, buttons, figures and what is marked as an author, a date or a link for no
text; `kept` writes these so that it keeps them.
Captions of pictures stay out, because most name a photographer. Invariant: work is linear in the page and in the levels
of its elements, whose sum is bounded; texts are no longer than their limits.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import DOMNode, HTMLTree

from fyke.core.pages import Page
from fyke.search.article import NO_PARTS, TextParts, drop, mark_parts, parted, without_cut_lines
from fyke.search.lines import by_lines, one_line

HTML_BYTES = 4 << 20
TEXT_CHARS = 200_000
HEADINGS_CHARS = 4_000
MAX_HEADINGS = 200  # each is read with all that is in it; the limit of comments too
LITTLE_TEXT = 250  # letters of an alphabet; if the main text has fewer, the main part may have been missed
_DENSE = "\u2e80"  # the first of the scripts of China, Japan and Korea
_DENSE_SAYS = 3  # letters that one of their characters is worth

# Elements that lead elsewhere, by roles of HTML and ARIA and by names of DocBook, Sphinx, WordPress and others.
_NAVIGATION = (
    "nav, aside, footer, menu, "
    "[role=navigation], [role=complementary], [role=contentinfo], [role=search], [role=banner], [role=menu], "
    "[role=dialog], [role=alertdialog], dialog, "
    ".navheader, .navfooter, .navbar, .breadcrumb, .breadcrumbs, .pagination, .pager, .skip-link, "
    ".mw-editsection, .widget-area, .related, #related, .related-posts"
)
# Elements that visitors write, by the names of HTML, schema.org, WordPress, phpBB and others.
_COMMENTS = (
    "#comments, .comments, .comments-area, .comment-list, .commentlist, .comment-body, .comment-content, "
    "div.comment, li.comment, article.comment, "  # no span, which in code is a comment of it
    "#disqus_thread, #reviews, .reviews, .review, .user-reviews, .customer-reviews, .signature, "
    "[itemprop=comment], [itemprop=review], [itemprop=reviews], [itemtype$='schema.org/Comment'], "
    "[itemtype$='schema.org/Review'], [itemtype$='schema.org/UserComments']"
)

_MANY_TAGS = 4_000
_DEEP = 1_000  # browsers stop at half of it
_MOST_LEVELS = 16 << 20  # elements that are open, summed over all tags
_FLAT = "br|embed|hr|img|meta|p|li|dd|dt"  # do not nest in each other, nor in a drawing or formula, which they end
_FLAT_IN_HTML = f"{_FLAT}|area|base|col|link|input|source|track|wbr|td|tr|th|option"  # nor these, but for there
_NESTING_TAG, _NESTING_TAG_IN_HTML = (
    re.compile(rf"</|<(?!(?:{flat})[\s/>])(?=[a-z])", re.IGNORECASE) for flat in (_FLAT, _FLAT_IN_HTML)
)
_FOREIGN = re.compile(r"<(?:svg|math)[\s/>]", re.IGNORECASE)
_MOST_INDENTS = 4 << 20  # levels of lists, summed over all lines; two blanks each
_INDENTED = re.compile(r"<(?:(/?)[uo]l\b)?", re.IGNORECASE)
_LIST_TAG = re.compile(r"<(?:ul(?=[\s/>])|/ul[^<>]*>)", re.IGNORECASE)
_ALONE = re.compile(  # a character of three bytes in UTF-8, not of private use, where icons are; also as a reference
    r">\s*+(?:(?=[\u0800-\ud7ff\uf900-\uffff])\S"
    r"|&(?:#(?!5[7-9]...;|6[0-2]...;|63[0-6]..;|637[0-3].;|6374[0-3];)[0-9]{4,5}"
    r"|#[xX](?!(?:[eE].|[fF][0-8])..;)[0-9a-fA-F]{3,4}|[A-Za-z]{2,31});)"
    r"(?=\s*+<)"
)
_JOINER = "\u2060"  # invisible, and taken out of every text later
_IN_RUBY = r"(?:rb|rt|rp|rtc|ruby)(?=[\s/>])"
_READING = re.compile(  # of one word
    rf"<(r[tp])(?=[\s/>])[^<>]*+>(?:[^<]|<(?!/?{_IN_RUBY})){{0,200}}+(?=</?{_IN_RUBY})(?:</\1(?=[\s/>])[^<>]*+>)?",
    re.IGNORECASE,
)
_TIME_TAG = re.compile(r"<(/?)time(?=[\s/>])", re.IGNORECASE)
# Buttons in a sentence, a heading or a cell, and labels there and in a list; others are of forms and menus.
_SAID_TAG = re.compile(
    r"((?:[^\s<>]\s?|<(?:h[1-6]|t[dh]|d[td]|summary)\b[^<>]*+>\s*+)<)(?:button|label)(?=[\s/>])"
    r"|(<li\b[^<>]*+>\s*+(?:<input\b[^<>]*+>\s*+)?<)label(?=[\s/>])",
    re.IGNORECASE,
)
# Tags that mark an author, a date or a link as such. In lists of things the link has the name of each.
_MARK = re.compile(
    r"\s(?=(?:rel\s*+=\s*+[\"']?author|itemprop\s*+=\s*+[\"']?(?:author|datePublished|url)))", re.IGNORECASE
)
_MARKED_TAG = re.compile(r"<[a-z][^<>]*?\s(?:rel|itemprop)\s*+=[^<>]*+", re.IGNORECASE)
_LINE_TAG = re.compile(r"<(/?)(?:summary|legend)(?=[\s/>])", re.IGNORECASE)  # it takes them for parts of a line
_FIGURE = re.compile(r"<figure(?=[\s/>])((?:[^<]++|<(?!/?figure[\s/>]))*+)</figure(?=[\s/>])", re.IGNORECASE)
_IN_FIGURE = re.compile(r"<(?:table|pre|blockquote)(?=[\s/>])", re.IGNORECASE)
_NOSCRIPT = re.compile(r"<noscript(?=[\s/>])", re.IGNORECASE)
_LISTS = 1_000  # put deeper by three elements at most: resiliparse looks into lists from the fourth below the body on


class TextOf(Protocol):
    """Returns the text of a page: only its `main` part or all, and with what is in `<noscript>` or without."""

    def __call__(self, *, main: bool, noscript: bool = False) -> str: ...


@dataclass(frozen=True, slots=True)
class MainText:
    """Text of an HTML page."""

    text: str  # a line for each block
    headings: str  # in one line
    parts: TextParts  # of all its text, in lines too


def main_text(page: Page, *, parts: bool = False) -> MainText:
    """Return what `page` says without its navigation; all its text if the main part has little of it.

    With `parts`, the article is told apart; without, or if the parts say little, all of the main text is article.
    """
    html = readable(page)
    tree = without_navigation(html)
    if tree.body is None:
        return MainText("", "", NO_PARTS)
    deep = is_deep(html)

    def text_of(*, main: bool, noscript: bool = False) -> str:
        if main and deep:
            return ""
        found = _plain_text(tree, main_content=main, formatting=not deep, noscript=noscript)
        return by_lines(found, TEXT_CHARS)

    main = largest_part(text_of, html)
    if deep:
        return MainText(main, "", TextParts(main))
    headings = tree.body.query_selector_all("h1,h2,h3,h4")[:MAX_HEADINGS]
    said = one_line(" ".join(_texts(headings, HEADINGS_CHARS)), HEADINGS_CHARS)
    return MainText(main, said, _parts(tree, main) if parts else TextParts(main))


def largest_part(text_of: TextOf, html: str) -> str:
    """Return the main text of a page. If it has little, return all text, if that is much more; or all that a reader
    without scripts sees, if next to all of it is in `<noscript>`. Notices that ask for scripts are shorter."""
    main = text_of(main=True)
    if not is_little(main):
        return main
    whole = text_of(main=False)
    if is_little(whole) and _NOSCRIPT.search(html):
        shown = text_of(main=False, noscript=True)
        if _letters(shown) - _letters(whole) >= LITTLE_TEXT:
            return shown
    return whole if len(whole) > 2 * len(main) else main


def without_navigation(html: str) -> HTMLTree:
    """Return the tree of `html` without the elements that are marked as navigation."""
    tree = HTMLTree.parse(html)
    if tree.body is not None:
        drop(tree.body, _NAVIGATION)
    return tree


def _parts(tree: HTMLTree, main: str) -> TextParts:
    """Return the article in `tree` and the text beside it; `main` as one part if they say little."""
    assert tree.body is not None
    wrote = "\n".join(_texts(tree.body.query_selector_all(_COMMENTS)[:MAX_HEADINGS], TEXT_CHARS))
    drop(tree.body, _COMMENTS)
    if not mark_parts(tree):
        return TextParts(main)
    parts = parted(_plain_text(tree, main_content=False))._replace(visitors=wrote)
    found = TextParts(*(without_cut_lines(by_lines(text, TEXT_CHARS)) for text in parts))
    said = "".join(found)
    return TextParts(main) if is_little(said) and 2 * len(said) < len(main) else found


def readable(page: Page) -> str:
    """Return the HTML of `page` for resiliparse. Lists that are in no other stand deeper, the first `_LISTS`."""
    html = page.safe_html(HTML_BYTES)
    out: list[str] = []
    done = depth = 0
    for tag in _LIST_TAG.finditer(html):
        opens = tag[0][1] != "/"
        if depth == int(not opens) and len(out) < 4 * _LISTS:
            at = tag.start() if opens else tag.end()
            out += html[done:at], "<section>" * 3 if opens else "</section>" * 3
            done = at
        depth = max(0, depth + (1 if opens else -1))
    return kept("".join((*out, html[done:])))


def kept(html: str) -> str:
    """Return `html` written so that resiliparse keeps what a browser shows: characters alone in an element, times, and
    labels and buttons in the text, what a tag marks, and figures that are tables, code or quotes. Summaries and legends
    are lines of their own. What stands above letters, as their reading, is left out."""
    html = _READING.sub("", html)
    html = _SAID_TAG.sub(r"\1\2span", _ALONE.sub(rf"\g<0>{_JOINER}", html))
    html = _MARKED_TAG.sub(lambda tag: _MARK.sub(r"\g<0>of-", tag[0]), html)
    html = _FIGURE.sub(lambda figure: f"<div{figure[1]}</div" if _IN_FIGURE.search(figure[1]) else figure[0], html)
    return _LINE_TAG.sub(r"<\1div", _TIME_TAG.sub(r"<\1data", html))


def is_little(text: str) -> bool:
    """Return whether `text` says less than the main part of a page would."""
    return len(text) < LITTLE_TEXT and _letters(text) < LITTLE_TEXT


def _letters(text: str) -> int:
    """Return how many letters of an alphabet say as much as `text`."""
    return len(text) + (_DENSE_SAYS - 1) * sum(character >= _DENSE for character in text)


def is_deep(html: str) -> bool:
    """Return whether elements nest so deeply, or so many of them, that finding the main part takes many seconds,
    because each is looked for in all around it; or lists, so that each of many lines begins with a thousand blanks."""
    if html.count("<") < _MANY_TAGS:
        return False
    nesting = _NESTING_TAG if _FOREIGN.search(html) else _NESTING_TAG_IN_HTML
    lengths = (tag.end() - tag.start() for tag in nesting.finditer(html))  # there may be millions
    ends = np.fromiter(lengths, np.int8) == len("</")
    levels = _levels(np.where(ends, np.int8(-1), np.int8(1)))
    if int(levels.max(initial=0)) > _DEEP or int(levels.sum(dtype=np.int64)) > _MOST_LEVELS:
        return True
    lists = (len(tag[0]) > 1 and 1 - 2 * len(tag[1]) for tag in _INDENTED.finditer(html))
    return int(_levels(np.fromiter(lists, np.int8)).sum(dtype=np.int64)) > _MOST_INDENTS


def _levels(steps: npt.NDArray[np.int8]) -> npt.NDArray[np.int32]:
    """Return how many elements are open after each of `steps` (int8[n]), which open one (1), end one (-1), or neither.
    Ends of what is not open count for nothing: int32[n]."""
    levels = np.cumsum(steps, dtype=np.int32)
    least = np.minimum(levels, 0)
    levels -= np.minimum.accumulate(least, out=least)
    return levels


def _plain_text(tree: HTMLTree, *, main_content: bool, formatting: bool = True, noscript: bool = False) -> str:
    return str(
        extract_plain_text(
            tree,
            preserve_formatting=formatting,
            main_content=main_content,
            list_bullets=False,
            alt_texts=False,
            noscript=noscript,
        )
    )


def _texts(nodes: Iterable[DOMNode], limit: int) -> Iterator[str]:
    """Yield the text of the first `nodes` until there are `limit` characters."""
    for node in nodes:
        text = node.text or ""
        yield text
        limit -= len(text)
        if limit <= 0:
            return
