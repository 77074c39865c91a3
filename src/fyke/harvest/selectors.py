"""CSS selectors as written, taken apart into what lexbor is asked for and what `matching` finds itself.

`fields` makes them of its settings. A way is one selector of a list (`h2 > a, .more`). It has compounds (`h2`, `a`)
with combinators before them (` `, `>`, `+`, `~`). Lexbor is asked for the plain part of a compound, for which it looks
at each element once. The other parts are tests: places among siblings, and inner selectors of more than plain
compounds.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

_TOKEN = re.compile(  # a comment or string that is not closed goes to the end
    r"/\*.*?(?:\*/|\Z)|\\[0-9a-fA-F]{1,6}\s?|\\."
    r"|\"(?:\\.|[^\"\\])*+\\?(?:\"|\Z)|'(?:\\.|[^'\\])*+\\?(?:'|\Z)|[\w-]+|\s+|.",
    re.DOTALL,
)
_NTH = re.compile(r"((?:(?!of\b)[-+\w\s])*+)(?:of\b(.*))?", re.DOTALL | re.IGNORECASE)
_OF_TYPE = {"first-of-type": (False,), "last-of-type": (True,), "only-of-type": (False, True)}
_AMONG = {"is": True, "where": True, "current": True, "not": False}
_NTHS = {"nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type"}

MOST_NESTED = 16  # brackets

Token = tuple[str, int]  # and the number of brackets around it


@dataclass(frozen=True, slots=True)
class Nth:
    """`:nth-child(an+b of ...)` and the like."""

    step: int
    start: int
    last: bool  # counted from the end
    typed: bool  # among siblings of its name
    of: "Selector | None" = None

    def holds(self, place: int) -> bool:
        """Return whether the element that is number `place` is selected, the first being 1."""
        if not place or not self.step:
            return place == self.start and place > 0
        return (place - self.start) % self.step == 0 and (place - self.start) // self.step >= 0


@dataclass(frozen=True, slots=True)
class Among:
    """`:is()`, or `:not()` if `wanted` is false."""

    selector: "Selector"
    wanted: bool


@dataclass(frozen=True, slots=True)
class Has:
    """`:has()`."""

    ways: "tuple[Way, ...]"


@dataclass(frozen=True, slots=True)
class Disabled:
    """`:disabled`, or `:enabled` if `wanted` is false."""

    wanted: bool


Test = Nth | Among | Has | Disabled


@dataclass(frozen=True, slots=True)
class Compound:
    """The conditions on one element: `plain` for lexbor, `tests` here, and its `combinator` to the compound before."""

    combinator: str
    plain: str
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """Compounds in a row."""

    text: str
    compounds: tuple[Compound, ...]


class Selector:
    """The selector that `text` is. Raises ValueError if it is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ways = _ways(text)
        self.last = ",".join(way.compounds[-1].plain for way in self.ways)
        self.plain = all(len(way.compounds) == 1 and not way.compounds[0].tests for way in self.ways)

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def _ways(text: str, *, relative: bool = False) -> tuple[Way, ...]:
    """Return the ways of `text`, one for each selector of its list. `relative`: to an element, as in `:has()`."""
    ways: list[Way] = []
    way: list[Token] = []
    for token, inside in [*_tokens(text), (",", 0)]:
        if (token, inside) == (",", 0):
            ways.append(_way(way, relative))
            way = []
        else:
            way.append((token, inside))
    return tuple(ways)


def _tokens(text: str) -> Iterator[Token]:
    inside = 0
    for token in _TOKEN.findall(text):
        inside -= token in (")", "]")
        if not token.startswith("/*"):
            yield token, inside
        inside += token in ("(", "[")
        if inside > MOST_NESTED:
            raise ValueError(token)


def _way(tokens: Sequence[Token], relative: bool) -> Way:
    compounds: list[Compound] = []
    compound: list[Token] = []
    combinator = ""
    for token, inside in [*tokens, (" ", 0)]:
        ends = inside == 0 and (token.isspace() or token in (">", "+", "~"))
        if ends and compound:
            compounds.append(_compound(combinator or (" " if compounds or relative else ""), compound))
            compound, combinator = [], ""
        if not ends:
            compound.append((token, inside))
        elif not token.isspace():
            if combinator:
                raise ValueError(token)
            combinator = token
    if combinator or not compounds or (compounds[0].combinator and not relative):
        raise ValueError(combinator)
    return Way("".join(token for token, _ in tokens), tuple(compounds))


def _compound(combinator: str, tokens: Sequence[Token]) -> Compound:
    plain = ""
    tests: list[Test] = []
    at = 0
    while at < len(tokens):
        token, inside = tokens[at]
        end = at + 1
        if (token, inside) == (":", 0) and end < len(tokens):
            end = at + 2
            if end < len(tokens) and tokens[end] == ("(", 0):
                end = next((place for place in range(end, len(tokens)) if tokens[place] == (")", 0)), len(tokens)) + 1
            tests_here = _tests(tokens[at + 1][0].lower(), "".join(token for token, _ in tokens[at + 3 : end - 1]))
            tests += tests_here
            if tests_here:
                at = end
                continue
        plain += "".join(token for token, _ in tokens[at:end])
        at = end
    plain = plain or "*"
    try:
        LexborHTMLParser("<p>").css(plain)
    except SelectolaxError:
        raise ValueError(plain) from None
    return Compound(combinator, plain, tuple(tests))


def _tests(name: str, argument: str) -> list[Test]:
    """Return the tests for the pseudo-class `name`, none if lexbor is asked for it."""
    if name in _OF_TYPE:
        return [Nth(0, 1, last, True) for last in _OF_TYPE[name]]
    if name in _NTHS:
        return [_nth(name, argument)]
    if name in ("disabled", "enabled"):
        return [Disabled(name == "disabled")]
    if name == "has":
        return [Has(_ways(argument, relative=True))]
    if name not in _AMONG:
        return []
    selector = Selector(argument)
    return [] if selector.plain else [Among(selector, _AMONG[name])]


def _nth(name: str, argument: str) -> Nth:
    match = _NTH.fullmatch(argument)
    if match is None:
        raise ValueError(argument)
    said = re.sub(r"\s", "", match[1].lower())
    said = {"even": "2n", "odd": "2n+1"}.get(said, said)
    step, n, start = said.rpartition("n")
    typed = name.endswith("type")
    of = Selector(match[2]) if match[2] and not typed else None
    steps = int(step + "1" if step in ("", "+", "-") else step) if n else 0
    return Nth(steps, int(start or 0), "last" in name, typed, of)
