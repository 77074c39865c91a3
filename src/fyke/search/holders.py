"""Which elements of a page hold its texts? Read in its HTML, for `fyke.search.article`.

The *holder* of a text is the nearest element around it that divides pages and not text, such as `div`. Holders are
numbered in the order in which they begin, the body first. A walk over the nodes of a tree would take ten times as long,
because each becomes an object.

Invariant: time is linear in the page, of which at most `MOST_NODES` are read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

HOLDERS = ("div", "article", "main", "td", "form")  # and the body
MOST_NODES = 20_000
_NO_TEXT = frozenset({
    "a", "script", "style", "template", "noscript", "textarea", "select", "button", "svg", "iframe", "object"
})  # fmt: skip
_VOID = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link",
    "meta", "param", "source", "track", "wbr"
})  # fmt: skip
_RAW = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"})  # hold text alone
_NOBODY = -1  # in place of a holder
_TOKEN = re.compile(r"<(/?)([A-Za-z][^\s/>]*)((?:[\s/][^>]*)?)>|<!--.*?(?:-->|\Z)|[^<]+", re.DOTALL)
_CLASS = re.compile(r' class="([^"]*)"')
_REFERENCES = (("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", "\xa0"), ("&amp;", "&"))
_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class _Open:
    """An element that is open."""

    tag: str
    attributes: str
    holder: int  # of its texts
    look: int | None = None  # if it was asked for


class Holders:
    """The holders of a page's body."""

    def __init__(self) -> None:
        self.looks: list[int] = []  # of each: a number for the tags and classes from the body down, without digits

    def texts(self, html: str) -> Iterator[tuple[int, str]]:
        """Yield each text with the number of its holder, but none in links and in elements that show no text.

        `html` is the body as a parser writes its tree: each element has its end, and no > stands for itself. It is read
        to the first tag without an end.
        """
        around = [_Open("", "", _NOBODY, 0)]
        at = nodes = hidden = 0  # hidden: templates around, whose content is in no tree
        while nodes < MOST_NODES and (token := _TOKEN.match(html, at)):
            at = token.end()
            closes, tag, attributes = token.groups()
            if closes:
                if len(around) > 1:  # more ends than beginnings: a parser writes some text in SVG as if it were HTML
                    hidden -= around.pop().tag == "template"
                continue
            nodes += not hidden
            if tag is None:
                if around[-1].holder != _NOBODY and not token[0].startswith("<"):
                    yield around[-1].holder, _unescaped(token[0])
            elif tag not in _VOID:
                self._open(around, tag, attributes, shown=not hidden)
                hidden += tag == "template"
                if tag in _RAW:
                    begin, at = at, max(at, html.find(f"</{tag}", at))
                    if around[-1].holder != _NOBODY and begin < at:
                        yield around[-1].holder, html[begin:at]

    def _open(self, around: list[_Open], tag: str, attributes: str, *, shown: bool) -> None:
        """Put an element below those `around`; if it is a holder, note its look."""
        holder = _NOBODY if tag in _NO_TEXT or not shown else around[-1].holder
        is_holder = shown and (tag in HOLDERS or tag == "body")
        around.append(_Open(tag, attributes, len(self.looks) if is_holder else holder))
        if is_holder:
            self.looks.append(_look(around))


def _unescaped(text: str) -> str:
    """Return `text` without the references that a parser writes."""
    for reference, sign in _REFERENCES if "&" in text else ():
        text = text.replace(reference, sign)
    return text


def _look(around: list[_Open]) -> int:
    """Return the look of the last of the elements `around`, which are within each other."""
    known = next(at for at in range(len(around) - 1, -1, -1) if around[at].look is not None)
    for outer, inner in zip(around[known:], around[known + 1 :], strict=False):
        found = _CLASS.search(inner.attributes)
        inner.look = hash((outer.look, inner.tag, _DIGITS.sub("0", found[1]) if found else ""))
    look = around[-1].look
    assert look is not None
    return look
