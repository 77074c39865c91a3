"""Which part of a page is its article? Used for sketches alone, which tell copies from other pages.

Around an article stand menus, teasers, comments and notices, other ones at each host.

- The words of each holder of texts (`fyke.search.holders`) are counted, except for those in links.
- The holder with the most words is of the article. Holders that look like it, from the body down, are posts of a thread
  or parts of one article: then the article is the element around all of them.
- *Cards* are left out: headings that lead elsewhere, three or more alike, with what belongs to them. So are lines that
  are cut with an ellipsis.
- A paragraph of preformatted text becomes one line: a mailing list breaks lines for terminals, its copies break them
  elsewhere or not at all.

Readability and its kin ask for names and lengths of paragraphs, and look for what is best read. This module looks for
what is the same wherever it was copied. What search holds is decided by `fyke.search.main_text`.

Invariant: work is linear in the page, of which at most `holders.MOST_NODES` are read.
"""

import re
from collections import Counter, defaultdict
from typing import Any, NamedTuple

from resiliparse.parse.html import HTMLTree, NodeType

from fyke.search.holders import HOLDERS, Holders

Element = Any  # an ElementNode; below the body its parent is one too, which its types do not say

ALIKE = 10  # a holder that looks like the largest is a post if it has a tenth of its words
LEAST_CARDS = 3
CARD_WORDS = 60  # on average at most
FOOT_WORDS = 120  # a holder with fewer that claims a copyright is the foot of a page
MOST_CUT_CHARS = 800  # of a teaser: about 120 words. A longer text that ends with an ellipsis is whole

_OUTERMOST_PRE = "pre:not(pre pre)"
_HEADINGS = "h2, h3, h4, h5, h6"
_MOST_HEADINGS = 500  # each is read with all that is in it
_ABOVE = 4  # elements between a heading and its card, or its link
_WORD = re.compile(r"\w+")
_OWNED = re.compile(r"©|\bcopyright\b|\ball rights reserved\b", re.IGNORECASE)
_CUT = ("…", "...")
_CUT_WORDS, _LONGEST_END = 3, 200
_SENTENCE_END = re.compile(r"[.!?…]\s")
_MARK = "fyke-card"
_ARTICLE, _REPEATED = ("\x02", "\x03"), ("\x04", "\x05")  # as signs in a text
_SIGNS = re.compile(r"([\x02-\x05])")
_ENDS_LINE = re.compile(r"<(?:br|div|p|li)\b")  # in preformatted text
_BLANK_LINE = re.compile(r"\n[ \t]*+\n")
_BROKEN = re.compile(r"(?<!\n)\n(?=\S)")


class TextParts(NamedTuple):
    """The text of a page, divided into parts."""

    article: str
    beside: str = ""  # beside the article, once
    repeated: str = ""  # beside the article, three times and more in the same look
    visitors: str = ""  # written by visitors, by the names of elements; some of it may come twice


ARTICLE, BESIDE, REPEATED, VISITORS = range(4)  # places in `TextParts`
NO_PARTS = TextParts("")


def mark_parts(tree: HTMLTree) -> bool:
    """Drop cards from `tree`, and put signs around its article and repeated text beside it, for `parted`.

    Returns whether there is an article.
    """
    body = tree.body
    if body is None:
        return False
    _drop_cards(body)
    for pre in body.query_selector_all(_OUTERMOST_PRE)[:]:  # before holders are found: this removes its elements
        pre.text = _flattened(pre)
    holders = _Counted(body)
    article = holders.article()
    if article is None:
        return False
    for holder, (begins, ends) in ((article, _ARTICLE), *((one, _REPEATED) for one in holders.repeated(article))):
        holder.insert_before(tree.create_text_node(begins), holder.first_child)
        holder.append_child(tree.create_text_node(ends))
    return True


def _flattened(pre: Element) -> str:
    """Return the text of a preformatted element, a line for each paragraph. Indented lines are paragraphs, unless there
    is no blank line: then all is one, as code may be."""
    html = pre.html
    tree = HTMLTree.parse(_ENDS_LINE.sub(r"\n\g<0>", html)) if _ENDS_LINE.search(html) else None
    text: str = (pre.text if tree is None or tree.body is None else tree.body.text) or ""
    return _BROKEN.sub(" ", text) if _BLANK_LINE.search(text.strip()) else " ".join(text.split())


def parted(text: str) -> TextParts:
    """Return the parts of `text`, a page's text with signs around them."""
    found: dict[str, list[str]] = {sign: [] for sign in ("", _ARTICLE[0], _REPEATED[0])}
    around = [""]
    for at, part in enumerate(_SIGNS.split(text)):
        if at % 2 == 0:
            found[around[-1]].append(part)
        elif part in found:
            around.append(part)
        elif len(around) > 1:
            around.pop()
    beside, article, repeated = ("\n".join(parts) for parts in found.values())
    return TextParts(article, beside, repeated)


def drop(body: Element, selector: str) -> None:
    """Take out of `body` the elements that the selector finds."""
    for node in reversed(body.query_selector_all(selector)[:]):  # iterating over matches without [:] is quadratic
        node.decompose()


def without_cut_lines(text: str) -> str:
    """Return the lines of `text` that are whole. A teaser is cut in a sentence, and ends with an ellipsis."""
    return "\n".join(line for line in text.split("\n") if not (_is_cut(line) and _in_a_sentence(line)))


def _is_cut(text: str) -> bool:
    return len(text) <= MOST_CUT_CHARS and text.endswith(_CUT)


def _in_a_sentence(line: str) -> bool:
    """Return whether `line` ends with several words of one sentence; "More..." is not cut."""
    return len(_SENTENCE_END.split(line[-_LONGEST_END:].rstrip("….")).pop().split()) >= _CUT_WORDS


class _Counted:
    """The holders in `body`, by their numbers: how many words each has by itself, and its look."""

    def __init__(self, body: Element) -> None:
        self._body = body
        self._elements = [body, *body.query_selector_all(", ".join(HOLDERS))[:]]
        self._words: dict[int, int] = defaultdict(int)
        self._owned: set[int] = set()  # holders whose text claims a copyright
        holders = Holders()
        for holder, text in holders.texts(body.html):
            if (said := text.strip()) and not _is_cut(said) and holder < len(self._elements):
                self._words[holder] += len(_WORD.findall(said))
                if _claims(said):
                    self._owned.add(holder)
        self._looks = holders.looks

    def article(self) -> Element | None:
        """Return the element around all holders of the article; None if there are no words."""
        for holder in self._owned:
            if self._words[holder] < FOOT_WORDS:
                self._words[holder] = 0
        if not any(self._words.values()):
            return None
        most = max(self._words, key=self._words.__getitem__)
        posts = [
            self._elements[holder]
            for holder, words in self._words.items()
            if words * ALIKE >= self._words[most] and self._looks[holder] == self._looks[most]
        ]
        around = set(self._up(posts[0]))
        return next(node for node in self._up(posts[-1]) if node in around)

    def repeated(self, article: Element) -> list[Element]:
        """Return holders outside `article` that look alike, three or more, and say little each."""
        around = set(self._up(article))
        inside = dict.fromkeys(around, False) | {article: True}
        alike: dict[int, list[int]] = defaultdict(list)
        for holder in self._words:
            element = self._elements[holder]
            if element not in around and not self._is_inside(element, inside):
                alike[self._looks[holder]].append(holder)
        return [
            self._elements[holder]
            for holders in alike.values()
            if len(holders) >= LEAST_CARDS and sum(map(self._words.__getitem__, holders)) <= CARD_WORDS * len(holders)
            for holder in holders
        ]

    def _is_inside(self, node: Element, inside: dict[Element, bool]) -> bool:
        """Return whether `node` is within the article. `inside` has the answer for some elements, and learns more."""
        below = []
        while node not in inside:
            below.append(node)
            node = node.parent
        inside.update(dict.fromkeys(below, inside[node]))
        return inside[node]

    def _up(self, node: Element) -> list[Element]:
        """Return `node` and the elements around it, the body last."""
        out = [node]
        while out[-1] != self._body:
            out.append(out[-1].parent)
        return out


def _claims(text: str) -> bool:
    """Return whether `text` claims a copyright."""
    lower = text.lower()  # a look for words takes a tenth of the time
    return any(said in lower for said in ("©", "copyright", "rights reserved")) and bool(_OWNED.search(text))


def _drop_cards(body: Element) -> None:
    """Take out headings that lead elsewhere, with their cards, if several of a kind stand together."""
    children: dict[Element, Counter[tuple[str, str]]] = {}
    cards: dict[tuple[Element, str, str], list[Element]] = defaultdict(list)
    for heading in body.query_selector_all(_HEADINGS)[:_MOST_HEADINGS]:
        card = heading
        for _ in range(_ABOVE if _leads_elsewhere(heading) else 0):
            around = card.parent
            if around is None or card == body:
                break
            if around not in children:
                children[around] = Counter(
                    (child.tag, child.class_name) for child in around.child_nodes[:] if child.type == NodeType.ELEMENT
                )
            kind = card.tag, card.class_name
            if children[around][kind] >= LEAST_CARDS and card != heading and card.tag != "a":
                cards[around, *kind].append(card)
                break
            card = around
    for alike in cards.values():
        for card in alike if len(alike) >= LEAST_CARDS else ():
            card.setattr(_MARK, "")
    drop(body, f"[{_MARK}]")


def _leads_elsewhere(heading: Element) -> bool:
    """Return whether `heading` is in a link to another page, or most of it is one."""
    node: Element | None = heading
    for _ in range(_ABOVE):
        if node is None:
            break
        if node.tag == "a":
            return _is_elsewhere(node)
        node = node.parent
    link = heading.query_selector("a[href]")
    return link is not None and _is_elsewhere(link) and 2 * len(link.text.strip()) > len(heading.text.strip())


def _is_elsewhere(link: Element) -> bool:
    return not (link.getattr("href") or "#").startswith("#")
