"""Links, inline code and tables of a page, carried as marks through a reader that keeps text alone.

resiliparse decides what is main content; it gives text, headings and lists and forgets the rest. So `marked` puts marks
into the page's tree before resiliparse reads it: characters of Unicode's private use, in pages without such characters.
When the text has become Markdown, `written` writes the marks out. Called by `fyke.export.prose`. Invariant: no mark is
left in the result of `written`, and a link in it leads to a canonical URL of a scheme that is crawled. All expressions
are linear.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from fyke.core.foreign import ForeignParts
from fyke.core.markup import TREE_OPTIONS, bounded
from fyke.core.urls import canonical

MOST_MARKS = 20_000  # links, pieces of code and cells of a page
MOST_COLUMNS = 64
MOST_LISTS = 2_000
NAME_CHARS = 200  # of an element's classes and id, searched for menu words
_DEEP = 3  # the depth from which the reader takes no list for a menu
_HELD = 6  # elements around a list with little else in them, such as a table's cell
_LINK, _NUMBERED, _UNLINK, _CODE, _UNCODE, _TABLE, _CELL, _ROW = map(chr, range(0xE000, 0xE008))
MARKS = f"{_LINK}\\d*+{_NUMBERED}|[{_LINK}-{_ROW}]"
_OURS = re.compile(f"[{_LINK}-{_ROW}]|&#(?:[xX]0*+[eE]00[0-7]|0*+5734[4-9]|0*+5735[01])")
_ANY = re.compile(MARKS)
_LINKED = re.compile(f"{_LINK}(\\d++){_NUMBERED}([^{_LINK}{_UNLINK}]*+){_UNLINK}")
_CODED = re.compile(f"{_CODE}([^{_CODE}{_UNCODE}]*+){_UNCODE}")
_ROWS = re.compile(f"{_TABLE}(?:[^{_TABLE}{_ROW}]*+{_ROW}\\s*+)++")
_DOUBLE = re.compile(f"([{_LINK}-{_ROW}])\\1")
_GUARD = re.compile(r"\\([\\`*<\[\]_#>+=|~.)&!-])")
_TICKS = re.compile(r"`++")
_CONTENT = "main ul,[role=main] ul,article ul"  # lists in a page's declared main part
_AROUND = "nav ul,aside ul,header ul,footer ul,form ul,[role=navigation] ul"
_MENU = re.compile(
    r"(?:\b|_)(?:nav|navigation|navbar|menu|breadcrumbs?|sidebar|footer|toc|pager|pagination|share|sharing|social|tags?"
    r"|related)(?:\b|_)",
    re.IGNORECASE,
)
_NO_DATA = "ul,ol,dl,pre,blockquote,h1,h2,h3,h4,h5,h6,form,img"  # a table with these in it is for layout


class Marked(NamedTuple):
    """A page with marks, and the URLs of its links, by number."""

    html: str
    urls: Sequence[str]


def marked(html: str, url: str) -> Marked:
    """Return `html`, the page at `url`, with marks. A page that has such characters itself stays as it is."""
    if _OURS.search(html):
        return Marked(html, ())
    parser = LexborHTMLParser(html, options=TREE_OPTIONS)
    root = parser.root
    if root is None:
        return Marked(html, ())
    based = next(filter(ForeignParts().is_html, root.css("base[href]")), None)
    base = (canonical(_href(based), url) if based is not None else None) or url
    urls = _mark_links(root, base)
    for node in root.css("code,kbd,samp,tt")[:MOST_MARKS]:
        if node.css_first("a[href]") is None and not _within(node, ("pre", "code")):
            node.insert_before(2 * _CODE)
            node.insert_after(2 * _UNCODE)
    left = MOST_MARKS
    for table in root.css("table"):
        left -= _mark_table(table) if left > 0 else 0
    _keep_lists(parser, root)
    written = bounded((parser.html or html).encode("utf-8", "ignore"))  # it may be much longer than what was parsed
    return Marked(written.decode("utf-8", "ignore"), urls)


def _mark_links(root: LexborNode, base: str) -> list[str]:
    urls: list[str] = []
    for node in root.css("a[href]")[:MOST_MARKS]:
        href = _href(node).strip()
        target = canonical(href, base) if href and not href.startswith("#") else None
        if target is not None and not _within(node, ("pre",)):
            node.insert_before(f"{_LINK}{len(urls)}{_NUMBERED}")
            node.insert_after(2 * _UNLINK)
            urls.append(target)
    return urls


def _href(node: LexborNode) -> str:
    """Return the URL of the link `node`; SVG links found by a selector for `href` may have `xlink:href` instead."""
    attributes = node.attributes
    return attributes.get("href") or attributes.get("xlink:href") or ""


def _keep_lists(parser: LexborHTMLParser, root: LexborNode) -> None:
    """Change lists so that the reader keeps them, if they say more than their links do, or are links as content.

    The reader takes a list for a menu if it has links, or is not deep in the page.
    """
    within: set[int] = set()  # lists inside lists that were handled
    around = {one.mem_id for one in root.css(_AROUND)}
    content = {one.mem_id for one in root.css(_CONTENT)} - around
    for one in root.css("ul")[:MOST_LISTS]:
        if one.mem_id in within:
            continue
        within.update(inner.mem_id for inner in one.css("ul"))
        links = one.css("a[href]")
        says_more = len(one.text()) > 2 * sum(len(link.text()) for link in links)
        told = one.mem_id in content or (one.mem_id not in around and _after_paragraph(one))
        if says_more or (told and not _is_menu(one, links)):
            for link in links:
                link.unwrap()
            for _ in range(_DEEP):
                one = _wrapped(parser, one)


def _after_paragraph(node: LexborNode) -> bool:
    """Return whether `node`, or an element with little else, follows a paragraph."""
    for _ in range(_HELD):
        before = node.prev
        while before is not None and before.tag == "-text" and not (before.text_content or "").strip():
            before = before.prev
        if before is not None or node.parent is None:
            return before is not None and before.tag == "p"
        node = node.parent
    return False


def _is_menu(node: LexborNode, links: Sequence[LexborNode]) -> bool:
    """Return whether a list of `links` in the content is for navigation: by its name, or as half of them stay here."""
    here = sum(_href(link).startswith("#") for link in links)
    if 2 * here >= len(links):
        return True
    above: LexborNode | None = node
    for _ in range(_DEEP):
        if above is None:
            return False
        names = f"{above.attributes.get('class') or ''} {above.attributes.get('id') or ''}"
        if _MENU.search(names[:NAME_CHARS]):
            return True
        above = above.parent
    return False


def _wrapped(parser: LexborHTMLParser, node: LexborNode) -> LexborNode:
    """Put a <div> with a copy of `node` in its place; return it."""
    around = parser.create_node("div")
    around.insert_child(node)
    node.insert_before(around)
    placed = node.prev
    assert placed is not None
    node.remove()
    return placed


def _within(node: LexborNode, tags: Sequence[str]) -> bool:
    """Return whether one of the eight elements above `node` is one of `tags`."""
    above = node.parent
    for _ in range(8):
        if above is None:
            return False
        if above.tag in tags:
            return True
        above = above.parent
    return False


def _mark_table(table: LexborNode) -> int:
    """Mark the cells and rows of a table of data, one for each column of a row; return how many cells."""
    if table.css_first(_NO_DATA) is not None or len(table.css("table")) > 1:
        return 0
    rows = [row.css("td,th") for row in table.css("tr")]
    sizes = [len(cells) for cells in rows if cells]
    if len(sizes) < 2 or not 2 <= max(sizes) <= MOST_COLUMNS:
        return 0
    begin, count = 2 * _TABLE, 0
    below = [0] * MOST_COLUMNS  # rows into which a cell further up reaches, by column
    for cells in rows:
        column = done = 0
        for cell in cells:
            while column < MOST_COLUMNS and below[column]:
                below[column] -= 1
                column += 1
            _put_first(cell, begin + 2 * _CELL * max(1, column + 1 - done))
            begin, done = "", column + 1
            columns, height = _span(cell, "colspan"), _span(cell, "rowspan")
            for _ in range(min(columns, MOST_COLUMNS - column)):
                below[column] = height - 1
                column += 1
        below[column:] = [max(0, left - 1) for left in below[column:]]
        if cells:
            cells[-1].insert_child(2 * _ROW)
        count += done
    return count


def _span(cell: LexborNode, name: str) -> int:
    """Return how many columns or rows a cell takes."""
    said = cell.attributes.get(name) or ""
    return max(1, int(said)) if said.isdecimal() and len(said) <= 3 else 1


def _put_first(cell: LexborNode, mark: str) -> None:
    first = cell.first_child
    if first is None:
        cell.insert_child(mark)
    else:
        first.insert_before(mark)


def single(html: str) -> str:
    """Return the reader's result with each mark once; a single mark would count as white space, so they are doubled."""
    return _DOUBLE.sub(r"\1", html)


def without_marks(text: str) -> str:
    """Return `text` as it was before it was marked."""
    return _ANY.sub("", text)


def written(text: str, urls: Sequence[str]) -> str:
    """Return Markdown `text` with its marks written out; `urls` as in `Marked`."""
    text = _CODED.sub(_code, text.replace(_UNCODE + _CODE, ""))  # side by side they would be one with ticks in it
    text = _LINKED.sub(lambda match: _link(match, urls), text)
    return without_marks(_ROWS.sub(_table, text))


def _code(match: re.Match[str]) -> str:
    code = " ".join(_GUARD.sub(r"\1", without_marks(match[1])).split())
    if not code:
        return ""
    ticks = "`" * (max(map(len, _TICKS.findall(code)), default=0) + 1)
    return f"{ticks} {code} {ticks}" if "`" in code else f"{ticks}{code}{ticks}"


def _link(match: re.Match[str], urls: Sequence[str]) -> str:
    words, number = match[2].strip(), int(match[1][:9])
    if not words or "\n\n" in words or number >= len(urls):
        return match[2]
    url = urls[number].replace("(", "%28").replace(")", "%29")
    before, after = match[2][: len(match[2]) - len(match[2].lstrip())], match[2][len(match[2].rstrip()) :]
    return f"{before}[{words}]({url}){after}"


def _table(match: re.Match[str]) -> str:
    rows = [row.replace(_TABLE, "").split(_CELL)[1:] for row in match[0].split(_ROW)[:-1]]
    columns = max(map(len, rows))
    lines = [_cells(row + [""] * (columns - len(row))) for row in rows]
    lines.insert(1, _cells(["---"] * columns))
    return "\n\n" + "\n".join(lines) + "\n\n"


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"
