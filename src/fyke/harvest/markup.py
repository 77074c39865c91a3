"""How much of an HTML page is safe to parse: a guard before the tree is made.

Called by the HTML module. The HTML Standard has two places where n tags cost n² work or n² elements:
open formatting elements are made again in every paragraph (`<font size=1><p><font size=2><p>…`, 190 KB of
which take lexbor a minute and gigabytes), and each block looks through all open elements. Browsers
limit nesting; lexbor does not; so a page is cut where its parsing would have cost too much. The same goes for a tag
of very many attributes, each of which is looked for among those before it.

Invariant: parsing what `bounded` returns makes about `MAX_ELEMENTS` elements at most. The estimate of
work (not of elements) trusts end tags, so a page made with skill can still be slow.
"""

import re

import numpy as np

MAX_BYTES = 8 << 20
MAX_TAGS = 400_000  # an element and its text take some 300 bytes
MAX_ELEMENTS = 2_000_000
MAX_STEPS = 400_000_000  # through open elements, some 2 ns each

_LESS_THAN = ord("<")
_FEW_TAGS = 4_000  # an eighth of whose square is MAX_ELEMENTS: half of them formatting, half paragraphs
_MANY_TAGS = 20_000
_FORMATTING = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
_WITH_ATTRIBUTES = re.compile(rb"<([bcefinstuBCEFINSTU][a-zA-Z]{0,5})([\s/][^>]+)")  # formatting, and some others
_ONE_ATTRIBUTE = rb"[\s/]*+=?+[^\s/>=]++(?:\s*+=\s*+(?:\"[^\"]*+\"?+|'[^']*+'?+|[^\s>\"'][^\s>]*+)?+)?+"
_ATTRIBUTE = re.compile(_ONE_ATTRIBUTE)
_WHOLE_TAG = re.compile(rb"<[a-zA-Z][^\s/>]*+(?:" + _ONE_ATTRIBUTE + rb")*+")
_LONG_TAG = 8192  # bytes; shorter ones have too few attributes for them to cost much
_SMALL_PAGE = 32_768  # bytes, the same
_TAG = re.compile(rb"<(/?)([a-zA-Z][^\s/>]*)([^>]*)")
# Elements that never hold others, or end when the next one of their kind begins.
_FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dd dt td th tr option a".split()
)


def bounded(content: bytes) -> bytes:
    """`content` (UTF-8), or as much from its beginning as may be parsed."""
    content = content[:MAX_BYTES]
    if len(content) > _SMALL_PAGE:
        content = content[: _few_attributes(content)]
    tags = int(np.count_nonzero(np.frombuffer(content, np.uint8) == _LESS_THAN))  # a quarter of `bytes.count`
    if tags > MAX_TAGS:
        content = content[: int(np.flatnonzero(np.frombuffer(content, np.uint8) == _LESS_THAN)[MAX_TAGS])]
    if tags < _FEW_TAGS:
        return content
    different = set(_WITH_ATTRIBUTES.findall(content))
    kinds = len(_FORMATTING) + sum(name.lower() in _FORMATTING for name, _ in different)
    if kinds * tags <= MAX_ELEMENTS and tags < _MANY_TAGS:
        return content
    return content[: _affordable(content)]


def _few_attributes(content: bytes) -> int:
    """The first offset where looking for attributes that came before in their tag has cost too much."""
    if max(map(len, _WHOLE_TAG.findall(content)), default=0) <= _LONG_TAG:
        return len(content)
    steps = 0
    for match in _WHOLE_TAG.finditer(content):
        if match.end() - match.start() > _LONG_TAG:
            attributes = len(_ATTRIBUTE.findall(match[0]))
            steps += attributes * attributes // 2
            if steps > MAX_STEPS // 8:  # a name is compared, not a number
                return match.start()
    return len(content)


def _affordable(content: bytes) -> int:
    """The first offset where the limits are passed, tag by tag."""
    formatting: set[bytes] = set()
    unclosed: dict[bytes, int] = {}
    depth = elements = steps = 0
    for match in _TAG.finditer(content):
        end, name, attributes = match.groups()
        name = name.lower()
        if end:
            if unclosed.get(name, 0):
                unclosed[name] -= 1
                depth -= 1
            continue
        if name in _FORMATTING:
            formatting.add(name + attributes)
        if name not in _FLAT:
            unclosed[name] = unclosed.get(name, 0) + 1
            depth += 1
        elements += 1 + len(formatting)
        steps += depth
        if elements > MAX_ELEMENTS or steps > MAX_STEPS:
            return match.start()
    return len(content)
