"""How much of an HTML page may be parsed, and how long will that take?

lexbor has no limits, and kilobytes can cost it gigabytes or hours:

- For each element it looks through all open elements.
- An attribute is compared with all others of its tag.
- Formatting elements left open are made again in each later block, with all their attributes
  (`<b x1 x2 … x900><p>x<p>x…`: 30 KB took 2 GB).

So before a tree is made, the tokenizer of the HTML Standard (13.2.5) walks through the page and estimates the work of
the tree builder (13.2.6). The estimate is an upper bound, except for the depth of nesting, for which end tags are
believed.

Tokens depend on the tree in one case: in SVG, MathML, `<select>` and `<frameset>`, the text of elements such as
`<style>` may be markup. A page could hide its cost there. So behind the first SVG, MathML, `<select>` or `<frameset>`,
each `<` in such text is replaced by a reference. It means the same, and the text has no tags, whichever way it is read.

`walker`, in C, is the same walk, a hundred times as fast. This one is used if that was not compiled.
"""

import re
from collections import Counter
from operator import gt

from fyke.core.pace import breathe

MAX_TAGS = 200_000  # comments among them
MAX_UNITS = 500_000  # of 150 bytes: an element with its text is two, an attribute one
MAX_STEPS = 50_000_000  # through open elements
MAX_PAIRS = 10_000_000  # of compared attributes
MAX_ATTRIBUTES = 250  # of a tag
MAX_KINDS = 1 << 11  # of formatting tags
MAX_NAMES = 1 << 9  # of elements whose open ones are counted
MAX_FRESH = 64  # open formatting elements that no block may part yet from their end tags
NAME_BYTES = 16  # no known name is longer
UNIT_BYTES = 128  # of a tag
HEAVY_UNITS = 6  # a formatting element with more is expensive to make again
ADOPTED = 8  # times that an end tag may have an element made again ("adoption agency")
ALIKE = 3  # at most so many formatting elements of one kind are made again
AGAIN_NS, STEP_NS, PAIR_NS = 100, 2, 9

_MOST = (MAX_TAGS, MAX_UNITS, MAX_STEPS, MAX_PAIRS, MAX_KINDS)
_BREATH = 256  # tags

_NAME = rb"([a-zA-Z][^\t\n\f\r />]*+)"
_MARKUP = re.compile(rb"<(?:" + _NAME + rb"|/" + _NAME + rb"|(!--)|[!?/])")
_ATTRIBUTE = re.compile(
    rb"[\t\n\f\r /]*+[^\t\n\f\r />][^\t\n\f\r />=]*+"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])[^\t\n\f\r >]*+|([\"'])))?"
)
_BLANKS = re.compile(rb"[\t\n\f\r /]*+")
_COMMENT_END = re.compile(rb"--!?>")
_IN_SCRIPT = re.compile(rb"(<!--)|(-->)|<(/?)script(?=[\t\n\f\r />])", re.IGNORECASE)
_CDATA = b"<![CDATA["

_FORMATTING = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
# Elements that never hold others, or end when the next one of their kind begins.
_FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dd dt td th tr option a".split()
)
_TEXTS = frozenset(b"script style textarea title xmp iframe noembed noframes".split())
# Elements that never part formatting elements: they hold nothing, or are not blocks.
_INLINE = frozenset(b"br img wbr input span sup sub abbr cite label time mark q kbd var samp dfn del ins".split())
_ITEMS = {b"li": b"li", b"dd": b"dd", b"dt": b"dd"}  # with their kinds
# Elements that end SVG and MathML, in which all others may hold elements.
_BREAK_OUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta"
    b" nobr ol p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
# Elements of SVG that end with their start tag, if that closes itself.
_SHAPES = frozenset(
    b"path g circle rect use line polygon polyline ellipse defs symbol stop lineargradient radialgradient clippath mask"
    b" text tspan animate".split()
)
_ODD = frozenset(b"svg math select".split())


class _Cost:
    """Tags met so far, and their cost."""

    def __init__(self) -> None:
        self.tags = self.units = self.steps = self.pairs = self.again = 0
        self.each_again = 0  # units that are made again in each block, at most
        self.heavy = 0  # of these, the units of heavy elements
        self.anchor = 0  # units of the heaviest <a>: at most one is open
        self.whole = 0  # attributes of <html> and <body>, to which further tags of these names add
        self.depth = 0
        self.item = b""  # the kind of the latest item, which ends only items of its kind
        self.options = 0  # of the latest <select>; each new one looks through them twice
        self.foreign = self.foreign_met = False  # whether the walk may be within SVG or MathML, or was
        self.drawing = False  # whether it is within an SVG that had only shapes so far
        self.fresh: list[tuple[bytes, bytes, int]] = []  # open formatting elements: name, tag, units
        self.kinds: Counter[bytes] = Counter()
        self.open: Counter[bytes] = Counter()

    @property
    def is_too_much(self) -> bool:
        met = (self.tags, self.units, self.steps, self.pairs, len(self.kinds))
        return any(map(gt, met, _MOST))

    @property
    def us(self) -> int:
        return (self.again * AGAIN_NS + self.steps * STEP_NS + self.pairs * PAIR_NS) // 1000

    def begin(self, name: bytes, tag: bytes, attributes: int, *, closes_itself: bool) -> None:
        """Count the whole start tag `tag`; `name` is its name in small letters."""
        shape = self.drawing and name in _SHAPES
        self.drawing = shape or (name == b"svg" and not closes_itself)
        if name in (b"svg", b"math"):
            self.foreign = self.foreign_met = True
        elif name in _BREAK_OUT:
            self.foreign = False
        own = attributes + len(tag) // UNIT_BYTES
        formats = name in _FORMATTING
        if not formats and name not in _INLINE:
            self.settle()
        self.units += 2 + own + self.each_again
        self.again += self.each_again
        self.pairs += attributes * (attributes - 1) // 2
        if name in (b"html", b"body"):
            self.pairs += self.whole * attributes
            self.whole += attributes
        holds = name not in _FLAT or self.foreign
        if name in _ITEMS:
            holds = holds or self.item not in (b"", _ITEMS[name])
            self.item = _ITEMS[name]
        if holds and not (shape and closes_itself):
            self.depth += 1
            if name in self.open or len(self.open) < MAX_NAMES:
                self.open[name] += 1
        self.options = 0 if name == b"select" else self.options + (name == b"option")
        self.steps += self.depth + (2 * self.options if name == b"option" else 0)
        if formats:
            if len(self.fresh) == MAX_FRESH:
                self.settle()
            self.fresh.append((name, tag, 1 + own))

    def end(self, name: bytes) -> None:
        """Count an end tag."""
        self.units += 2
        self.drawing = self.drawing and name in _SHAPES
        self.foreign = self.foreign or (self.foreign_met and name not in _BREAK_OUT)
        if name in _FORMATTING:
            self._end_formatting(name)
        elif name not in _INLINE:
            self.settle()
        if self.open.get(name, 0):
            self.open[name] -= 1
            self.depth -= 1
        self.steps += self.depth

    def _end_formatting(self, name: bytes) -> None:
        for place in reversed(range(len(self.fresh))):
            if self.fresh[place][0] == name:
                del self.fresh[place]  # it is closed as it should be
                return
        self.units += ADOPTED * self.heavy
        self.again += ADOPTED * self.heavy

    def settle(self) -> None:
        """Note that open formatting elements may be made again from here on."""
        for name, tag, units in self.fresh:
            heavy = units if units > HEAVY_UNITS else 0
            if name == b"a":
                heavy = units = max(heavy - self.anchor, 0)
                self.anchor += heavy
            else:
                self.kinds[tag] += 1
                if self.kinds[tag] > ALIKE:
                    continue
            self.each_again += units
            self.heavy += heavy
        self.fresh.clear()


class _PageWalk:
    """One walk through a page."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.cost = _Cost()
        self._written: list[bytes] = []
        self._kept = 0  # the content before it is written
        self._odd = False  # whether texts may hold tags
        self._frames = False  # whether texts except those of <noframes> may hold tags

    def result(self, end: int) -> tuple[bytes, int, int]:
        """Return the result of a walk that ended at `end`."""
        rest = self.content[self._kept : end]
        return b"".join([*self._written, rest]) if self._written else rest, end, self.cost.us

    def to_its_end(self) -> int:
        """Walk, and return how far the page may be parsed."""
        at = 0
        while match := _MARKUP.search(self.content, at):
            self.cost.tags += 1
            if self.cost.tags % _BREATH == 0:
                breathe()
            opened, closed, comment = match.groups()
            if opened or closed:
                end = self._tag(match.start(), match.end(), (opened or closed).lower(), closing=bool(closed))
            else:
                end = self._comment(match.start(), match.end(), written=bool(comment))
            if end < 0 or self.cost.is_too_much:
                return match.start()
            at = end
        return len(self.content)

    def _comment(self, start: int, at: int, *, written: bool) -> int:
        """Return the end of a comment, or of markup that counts as one, whose text begins `at`; -1: too many."""
        self.cost.units += 2
        if self.cost.is_too_much:
            return -1
        if self._odd and self.content.startswith(_CDATA, start):
            self._rewrite(start, start + 1, b"&lt;")
            return start + 1
        if written:
            return _end_of_comment(self.content, at)
        return self.content.find(b">", at) + 1 or len(self.content)

    def _tag(self, start: int, at: int, name: bytes, *, closing: bool) -> int:
        """Return the end of a tag whose name ends `at`, or of its element's text if that holds no tags; -1 if the tag
        has too many attributes, or makes the page cost too much."""
        attributes, at, closes_itself = _attributes(self.content, at)
        if attributes > MAX_ATTRIBUTES:
            return -1
        if at < 0:
            return len(self.content)  # the page ends within the tag, which then does not count
        name = name if len(name) <= NAME_BYTES else b""
        if closing:
            self.cost.end(name)
            return at
        self.cost.begin(name, self.content[start:at], attributes, closes_itself=closes_itself)
        if self.cost.is_too_much:
            return -1
        self._odd = self._odd or name in _ODD
        self._frames = self._frames or name == b"frameset"
        if name in _TEXTS or name == b"plaintext":
            return self._text(start, at, name)
        return at

    def _text(self, start: int, at: int, name: bytes) -> int:
        """Return the end of the text that begins `at`, of an element whose tag begins at `start`."""
        unsure = self._odd or (self._frames and name != b"noframes")
        if unsure and (name == b"plaintext" or self.content[at - 2 : at - 1] == b"/"):
            self._rewrite(start, start + 1, b"&lt;")
            return at
        end = len(self.content) if name == b"plaintext" else _end_of_text(self.content, at, name)
        if unsure:
            self.cost.tags += self.content.count(b"<", at, end)
            if not self.cost.is_too_much:
                self._rewrite(at, end, rb"\u003c" if name == b"script" else b"&lt;")
        return end

    def _rewrite(self, start: int, end: int, reference: bytes) -> None:
        """Write `reference` for each `<` from `start` to `end`."""
        text = self.content[start:end].replace(b"<", reference)
        self._written += [self.content[self._kept : start], text]
        self._kept = end


def walked(content: bytes) -> tuple[bytes, int, int]:
    """Return the beginning of `content` (UTF-8) that may be parsed, how many of its bytes that is, and the microseconds
    that it may take more than an ordinary page."""
    walk = _PageWalk(content)
    return walk.result(walk.to_its_end())


def _attributes(content: bytes, at: int) -> tuple[int, int, bool]:
    """Return for a tag whose name ends `at` how many attributes it has (counted up to one too many), where it ends (-1:
    nowhere), and whether it closes itself."""
    count = 0
    while True:
        blanks = _BLANKS.match(content, at)
        before, at = at, blanks.end() if blanks else at
        if at >= len(content):
            return count, -1, False
        if content[at : at + 1] == b">":
            return count, at + 1, content.endswith(b"/", before, at)
        count += 1
        attribute = _ATTRIBUTE.match(content, at)
        if count > MAX_ATTRIBUTES or attribute is None or attribute[1] is not None:
            return count, -1, False  # or a value does not end
        at = attribute.end()


def _end_of_comment(content: bytes, at: int) -> int:
    """Return the place behind a comment whose text begins `at`."""
    if content.startswith((b">", b"->"), at):
        return at + 1 + (content[at : at + 1] == b"-")
    found = _COMMENT_END.search(content, at)
    return found.end() if found else len(content)


def _end_of_text(content: bytes, at: int, name: bytes) -> int:
    """Return where the end tag of an element whose text holds no tags begins."""
    if name != b"script":
        found = re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE).search(content, at)
        return found.start() if found else len(content)
    escaped = nested = False  # in a comment, and in another script in that
    while found := _IN_SCRIPT.search(content, at):
        comment, dashes, closing = found.groups()
        at = found.end()
        if comment:
            escaped, at = True, at - 2  # its dashes may be those that end it
        elif dashes:
            escaped = nested = False
        elif not closing:
            nested = escaped
        elif nested:
            nested = False
        else:
            return found.start()
    return len(content)


try:
    from fyke.core.walker import walk as walk
except ImportError:  # there was no compiler when Fyke was installed
    walk = walked
