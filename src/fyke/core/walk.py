"""How much of an HTML page may be parsed, and how long will that take?

lexbor has no limits of its own, and kilobytes can cost it gigabytes or hours: an element looks through all open ones;
an attribute is compared with all others of its tag; formatting elements left open are made again in each block that
follows, with all their attributes (`<b x1 x2 … x900><p>x<p>x…`: 30 KB took 2 GB). So before a tree is made the page is
walked by the tokenizer of the HTML Standard (13.2.5), and what the tree builder (13.2.6) would do is estimated: from
above, but for the depth of nesting, of which end tags are believed.

In one thing the tokens depend on the tree: in SVG, MathML, `<select>` and `<frameset>` what is text elsewhere
(`<style>`, say) may be markup. A page could hide there what it costs. So behind the first of them each `<` in such a
text is written as a reference, which means the same, and the text is without tags either way.

`walker`, in C, is this walk, a hundred times as fast; this one is for where it was not compiled. Both find the same.
"""

import re
from collections import Counter
from operator import gt

from fyke.core.pace import breathe

MAX_TAGS = 200_000  # comments among them
MAX_UNITS = 800_000  # of 150 bytes: an element with its text is two, an attribute one
MAX_STEPS = 50_000_000  # through open elements
MAX_PAIRS = 10_000_000  # of attributes that are compared
MAX_ATTRIBUTES = 250  # of a tag
MAX_KINDS = 1 << 11  # of formatting tags
MAX_NAMES = 1 << 9  # of elements whose open ones are counted
MAX_FRESH = 64  # formatting elements that nothing may part yet from their end tags
NAME_BYTES = 16  # longer names are none that are known
UNIT_BYTES = 128  # of a tag
HEAVY_UNITS = 6  # a formatting element with more is dear to make again
ADOPTED = 8  # times that an end tag may have an element made again ("adoption agency")
ALIKE = 3  # formatting elements of one kind are made again, and no more
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
# Elements that never part formatting elements: they hold nothing, or are no blocks.
_INLINE = frozenset(b"br img wbr input span sup sub abbr cite label time mark q kbd var samp dfn del ins".split())
_ITEMS = {b"li": b"li", b"dd": b"dd", b"dt": b"dd"}  # and of which kind they are
# Elements that end SVG and MathML, where all others may hold others.
_BREAK_OUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta"
    b" nobr ol p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
# What an SVG holds that ends with its own tag, if that says so.
_SHAPES = frozenset(
    b"path g circle rect use line polygon polyline ellipse defs symbol stop lineargradient radialgradient clippath mask"
    b" text tspan animate".split()
)
_ODD = frozenset(b"svg math select".split())


class _Cost:
    """What was met so far, and what it costs."""

    def __init__(self) -> None:
        self.tags = self.units = self.steps = self.pairs = self.again = 0
        self.each_again = 0  # units that are made again in each block, at most
        self.heavy = 0  # of these, those of elements that are dear to make again
        self.anchor = 0  # the heaviest: one at most is open
        self.whole = 0  # attributes of <html> and <body>, which further such tags add to
        self.depth = 0
        self.item = b""  # which the latest was: an item of one kind ends none of the other
        self.options = 0  # of the latest select, which each new one looks through twice
        self.foreign = self.foreign_met = False  # whether it may be within SVG or MathML, or was
        self.drawing = False  # whether within an SVG, of which nothing but shapes was met
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
        """Count a start tag of which `tag` is all, and `name` what it is called, in small letters."""
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
        """From here on formatting elements that are open may be made again."""
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
        self._kept = 0  # what is before is written
        self._odd = False  # whether texts may hold tags
        self._frames = False  # the same, but for those of <noframes>

    def result(self, end: int) -> tuple[bytes, int, int]:
        """What may be parsed if that ends there."""
        rest = self.content[self._kept : end]
        return b"".join([*self._written, rest]) if self._written else rest, end, self.cost.us

    def to_its_end(self) -> int:
        """How far the page may be parsed."""
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
        """Where a comment ends, or what counts as one, of which the text begins `at`; -1: there are too many."""
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
        """Where a tag ends whose name does `at`, and the text of its element if that holds no tags; -1: it has too many
        attributes, or is one too many."""
        attributes, at, closes_itself = _attributes(self.content, at)
        if attributes > MAX_ATTRIBUTES:
            return -1
        if at < 0:
            return len(self.content)  # the page ends within the tag, which is none
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
        """Where a text ends that begins `at`, of an element whose tag does at `start`."""
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
    """As much of `content` (UTF-8) from its beginning as may be parsed, how many of its bytes that is, and microseconds
    that it may take beside what all pages take."""
    walk = _PageWalk(content)
    return walk.result(walk.to_its_end())


def _attributes(content: bytes, at: int) -> tuple[int, int, bool]:
    """How many attributes a tag has whose name ends there, where the tag ends (-1: nowhere), and whether it closes
    itself. No more than one too many are counted."""
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
    """Behind a comment of which the text begins there."""
    if content.startswith((b">", b"->"), at):
        return at + 1 + (content[at : at + 1] == b"-")
    found = _COMMENT_END.search(content, at)
    return found.end() if found else len(content)


def _end_of_text(content: bytes, at: int, name: bytes) -> int:
    """Where the end tag begins of an element whose text holds no tags."""
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
