"""The contents of pages as rows of a table: CSS selectors and JSON-LD paths instead of a program.

An `Extractor` is made of an `[[extract]]` table of the settings, or of a class of fields (`fyke.Item`). The crawl asks
it for every page it has parsed, `fyke extract` for pages from the archive. The same page gives the same rows.

The text of an element is what a reader sees: without scripts and the like, and with white space where blocks, cells and
lines begin and end.

Invariant: whatever a page holds, rows come back, each with a value or None for every field, and of bounded size. A page
with more is `cut`.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from fyke.core.choices import FieldType
from fyke.core.errors import ConfigurationError
from fyke.core.extraction import ExtractSection, FieldSection
from fyke.core.markup import TakesLong
from fyke.core.pace import breathe, in_haste
from fyke.core.pages import HTML_TYPES, Page
from fyke.core.urls import canonical
from fyke.harvest.json_ld import as_list, json_ld, types_of
from fyke.harvest.matching import LOOKS, Matcher
from fyke.harvest.numerals import decimal, parts_by_points
from fyke.harvest.selectors import Selector

MOST_ROWS = 10_000  # of a page
MOST_VALUES = 1_000  # of a field
MOST_CHARS = 1 << 16  # of a text
MOST_PAGE_CHARS = 8 << 20  # of all reading in a page, with or without a value, and again where places lie in others
HASTY_CHARS = 1 << 19  # of the same, in haste: 50 ms
NODE_CHARS = 16  # that each look at a node counts for, beside its text
PIECES = 8  # of a text that was read before: putting so many together counts for a character
MOST_BEGINS = 50_000  # nodes of which it is remembered where their texts begin
ATTRIBUTE_CHARS = 100  # of attributes, searched by lexbor for classes, count for one

Row = tuple[Any, ...]
T = TypeVar("T")

_SELECT = re.compile(r"(.*?)(?:::(?:attr\(([\w:.-]+)\)|(text)))?", re.DOTALL)
_PARTS = frozenset(  # tags of elements that begin and end with a line, or are cells or choices
    {"address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog", "dir"}
    | {"div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"head", "header", "hgroup", "hr", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option"}
    | {"p", "plaintext", "pre", "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title"}
    | {"tr", "ul", "xmp"}
)
_NEVER = -1  # no node's id
_UNSEEN = frozenset({"script", "style", "template", "noscript", "iframe", "noembed", "noframes"})
_TYPES = {FieldType.NUMBER: pa.float64(), FieldType.INTEGER: pa.int64()}


class Extractor:
    """The rows that `section` asks for. Raises ConfigurationError for an invalid selector or `match`."""

    def __init__(self, section: ExtractSection) -> None:
        self.name = section.table
        self._match = section.match
        self._each = _selector(section.table, "each", section.each) if section.each else None
        self._fields = [_Column(section.table, name, _section(field)) for name, field in section.fields.items()]
        columns = [("url", pa.string()), *((field.name, field.kind) for field in self._fields)]
        self.schema = pa.schema(columns, metadata={"description": f"Extracted: {section.table}."})
        try:
            pc.match_substring_regex(pa.array([""]), section.match)
        except pa.ArrowInvalid as error:
            raise ConfigurationError(f"[[extract]] {section.table}: match = {section.match!r}: {error}") from None

    def __repr__(self) -> str:
        return f"Extractor({self.name}, {len(self._fields)} fields)"

    def rows(self, page: Page) -> list[Row]:
        """Return the rows of `page`: its URL, then each field. Rows without any value are left out. Raises TakesLong in
        haste."""
        if page.media_type not in HTML_TYPES or not self._wants(page.url):
            return []
        root = page.tree.root
        if root is None:
            return []
        room = _Allowance()
        with closing(Matcher(root, lambda looks: room.take(NODE_CHARS * looks))) as matcher:
            found = self._found(matcher, root, page, room)
        page.cut |= room.is_cut
        return found

    def _found(self, matcher: Matcher, root: LexborNode, page: Page, room: "_Allowance") -> list[Row]:
        stated = self._stated(root, page, room)
        texts = _Texts(room)
        stated_chars = sum(map(_chars_of, stated.values()))
        by_points = parts_by_points(root.attributes.get("lang") or "")
        found: list[Row] = []
        for place in self._places(matcher, root, page, room) if self._each else [root]:
            values = tuple(
                stated[field.name]
                if field.path
                else field.value(field.texts(matcher, place, texts), page, room, by_points=by_points)
                for field in self._fields
            )
            if any(value not in (None, []) for value in values):
                found.append((page.url, *values))
                room.take(stated_chars)
        return found

    def _places(self, matcher: Matcher, root: LexborNode, page: Page, room: "_Allowance") -> Iterator[LexborNode]:
        """Yield the places of the rows. All attributes of a place may be read again for each place around it."""
        assert self._each is not None
        places = room.first(matcher.find(self._each, root), MOST_ROWS)
        again = (1 + len(self._fields)) * page.size_bytes // ATTRIBUTE_CHARS
        for place, nested in zip(places, matcher.nested(places), strict=False):
            if not room.take(NODE_CHARS * (len(place.css("*")) + len(self._fields)) + again * nested):
                return
            yield place

    def _stated(self, root: LexborNode, page: Page, room: "_Allowance") -> dict[str, Any]:
        """Return the fields from JSON-LD, which are the same in each row."""
        fields = [field for field in self._fields if field.path]
        data = [*json_ld(root)] if fields else []
        room.take(NODE_CHARS * len(data) * len(fields))
        return {field.name: field.value(_along(data, field.path), page, room) for field in fields}

    def _wants(self, url: str) -> bool:
        return not self._match or bool(pc.match_substring_regex(pa.array([url]), self._match)[0].as_py())


class _Column:
    """One column."""

    def __init__(self, table: str, name: str, section: FieldSection) -> None:
        self.name = name
        self._many = section.many
        self._type = section.type
        plain = _TYPES.get(section.type, pa.string())
        self.kind = pa.list_(plain) if section.many else plain
        select = section.select.strip()
        self.path = select.removeprefix("json:").strip().split(".") if select.startswith("json:") else []
        if self.path and not all(self.path):
            raise ConfigurationError(f"[[extract]] {table}: {name} = {select} has an empty step: write json:TYPE.NAME")
        self._css: Selector | None = None
        self._attribute = ""
        if not self.path:
            match = _SELECT.fullmatch(select)
            assert match is not None
            self._attribute = match[2] or ""
            if match[1].strip():
                self._css = _selector(table, name, match[1].strip())
            elif not match[2] and not match[3]:
                raise ConfigurationError(f"[[extract]] {table}: {name} has no selector")

    def value(self, said: Iterable[Any], page: Page, room: "_Allowance", *, by_points: bool = False) -> Any:
        """Return the value of the field, given what is `said` of it. With `by_points`, points part thousands in texts;
        attributes are written by programs."""
        read = (_READ_BY_POINTS if by_points and not self._attribute else _READ)[self._type]
        values = (value for value in (read(one, page) for one in room.within(said)) if value is not None)
        return room.first(values, MOST_VALUES) if self._many else next(values, None)

    def texts(self, matcher: Matcher, place: LexborNode, texts: "_Texts") -> Iterator[Any]:
        """Yield the texts of the field in `place`."""
        for node in matcher.find(self._css, place) if self._css else [place]:
            yield node.attributes.get(self._attribute) if self._attribute else texts.of(node)


class _Allowance:
    """The characters of a page that may still be read. The rest of the page has no rows and no values; then it is cut,
    and also if it has too many."""

    def __init__(self) -> None:
        self.is_cut = False
        self._hasty = in_haste()
        self._chars = HASTY_CHARS if self._hasty else MOST_PAGE_CHARS

    def take(self, chars: int) -> bool:
        """Count `chars` as read, and return whether they are allowed. Raises TakesLong in haste if they are not."""
        breathe()
        self._chars -= chars
        if self._chars < 0 and self._hasty:
            raise TakesLong
        self.is_cut |= self._chars < 0
        return self._chars >= 0

    def first(self, found: Iterator[T], most: int) -> list[T]:
        """Return the first `most` of `found`; if there are more, the page is cut."""
        taken = list(islice(found, most + 1))
        self.is_cut |= len(taken) > most
        return taken[:most]

    def within(self, said: Iterable[Any]) -> Iterator[Any]:
        """Yield as much of `said` as there is room for, and of a text its beginning."""
        for one in said:
            text = one[:MOST_CHARS] if isinstance(one, str) else ""
            if not self.take(NODE_CHARS + len(text)):
                return
            yield text or one


def _section(field: str | FieldSection) -> FieldSection:
    return FieldSection(select=field) if isinstance(field, str) else field


def _selector(table: str, name: str, selector: str) -> Selector:
    try:
        LexborHTMLParser("<p>").css(selector)
        return Selector(selector)
    except (SelectolaxError, ValueError):
        raise ConfigurationError(f"[[extract]] {table}: {name} = {selector!r} is not a CSS selector") from None


def _chars_of(value: Any) -> int:
    """Return what a value, or each value of a list, counts for."""
    if isinstance(value, list):
        return sum(map(_chars_of, value))
    return NODE_CHARS + (len(value) if isinstance(value, str) else 0)


# -- texts ---------------------------------------------------------------------------------------------


class _Texts:
    """The texts of elements of a page, with an end of line where blocks and cells begin and end, and without what no
    reader sees. An element within the one that was read last has a part of its text, and is not read again."""

    def __init__(self, room: _Allowance) -> None:
        self._room = room
        self._root: LexborNode | None = None  # that was read last
        self._said: list[str] = []
        self._begins: dict[int, int] = {}  # the place in `_said` of each node in it, by its id
        self._is_whole = False

    def of(self, node: LexborNode) -> str:
        """Return the text of `node` as far as values have it."""
        begin = self._begins.get(node.mem_id)
        if self._root is not None and begin is not None and node.tag not in _UNSEEN:
            behind = _behind(node, self._root)
            end = self._begins.get(behind) if behind else len(self._said) if self._is_whole else None
            if end is not None:
                self._room.take((end - begin) // PIECES)
                return "".join(self._said[begin:end])
        self._read(node)
        return "".join(self._said)

    def _read(self, root: LexborNode) -> None:
        said = self._said = []
        self._root, self._begins, self._is_whole = root, {}, False
        chars, walked, shown_at = 0, 0, 0
        ends: set[int] = set()  # the ids of nodes before which a block ends
        for walked, one in enumerate(islice(root.traverse(include_text=True), 1, None), 1):
            if chars > MOST_CHARS or (walked % LOOKS == 0 and not self._room.take(NODE_CHARS * LOOKS)):
                return
            here = one.mem_id
            if shown_at not in (0, here):
                continue
            shown_at = 0
            if walked <= MOST_BEGINS:
                self._begins[here] = len(said)
            tag = one.tag
            if (here in ends or tag in _PARTS) and said and not said[-1][-1:].isspace():
                said.append("\n")
            if tag == "-text":
                said.append(one.text_content or "")
                chars += len(said[-1])
            elif tag in _PARTS:
                ends.add(_behind(one, root, _PARTS))
            elif tag in _UNSEEN:
                shown_at = _behind(one, root) or _NEVER
        self._room.take(NODE_CHARS * (walked % LOOKS))
        self._is_whole = True


def _behind(node: LexborNode, place: LexborNode, same: Collection[str] = ()) -> int:
    """Return the id of the node behind `node` and what is in it, 0 if there is none in `place`, or if an element with a
    tag of `same` ends there too."""
    behind = node.next
    while behind is None:
        up = node.parent
        if up is None or up.mem_id == place.mem_id or up.tag in same:
            return 0
        node, behind = up, up.next
    return behind.mem_id


# -- values --------------------------------------------------------------------------------------------


def _text(value: Any, _: Page) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    text = (str(value).lower() if isinstance(value, bool) else str(value)).replace("\0", "")  # no database takes it
    return " ".join(text.split()).encode("utf-8", "replace").decode() or None


def _number(value: Any, _: Page, *, by_points: bool = False) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _finite(value)
    return _finite(decimal(value, by_points=by_points)) if isinstance(value, str) else None


def _finite(text: str | float) -> float | None:
    try:
        number = float(text)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _integer(value: Any, page: Page, *, by_points: bool = False) -> int | None:
    """Return a number without decimals, to its last digit: an identifier may have more than a float has."""
    if isinstance(value, str):
        exact = Decimal(decimal(value, by_points=by_points) or "NaN")
        number = int(exact) if exact.is_finite() and exact == exact.to_integral_value() else None
    else:
        found = value if isinstance(value, int) else _number(value, page)
        number = int(found) if found is not None and found == int(found) and not isinstance(value, bool) else None
    return number if number is not None and abs(number) < 1 << 63 else None


def _url(value: Any, page: Page) -> str | None:
    return canonical(value.strip(), page.links.base or page.url) if isinstance(value, str) and value.strip() else None


_READ: dict[FieldType, Callable[[Any, Page], Any]] = {
    FieldType.TEXT: _text,
    FieldType.NUMBER: _number,
    FieldType.INTEGER: _integer,
    FieldType.URL: _url,
}
_READ_BY_POINTS = _READ | {
    FieldType.NUMBER: partial(_number, by_points=True),
    FieldType.INTEGER: partial(_integer, by_points=True),
}


# -- JSON-LD -------------------------------------------------------------------------------------------


def _along(data: Sequence[Any], path: Sequence[str]) -> Iterator[Any]:
    """Yield the values at `path` in `data`. If the first step is the name of a type, only objects of that type
    count."""
    first, *rest = path
    if first[:1].isupper():
        data, path = [one for one in data if first in types_of(one)], rest
    values: list[Any] = list(data)
    for step in path:
        values = [one.get(step) for value in values for one in as_list(value) if isinstance(one, dict)]
        values = values[: MOST_VALUES + 1]  # one more, so that it is noticed
    for value in values:
        yield from as_list(value)[: MOST_VALUES + 1]
