"""Law: every regular expression of the house takes time in proportion to its input, whatever the input is.

Bytes from outside reach nearly all of them, and one that backtracks holds the whole process: the engine of `re` can
not be interrupted from a loop. So each is fed with what is worst for it, made of its own parts: the beginning of a
match, then one part of the pattern over and over, then something that fits nowhere. Four times the input may take
eight times the time, and not more. It is called the way its module calls it: what is quick to match at one place may
be slow to search for at all.
"""

import ast
import importlib
import inspect
import pkgutil
import random
import re
import time
from collections.abc import Iterator
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser
from typing import Any

import pytest

import fyke

SHORT, LONG = 1 << 11, 1 << 13
PLAINLY_LINEAR_S = 2e-7 * LONG  # quicker than this for each character: not worth measuring twice
METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split")
# What is made of settings, of a query or of our own file names, and is short; with the reason.
TRUSTED = {
    "fyke.report.drawing": "reads the drawings that matplotlib made of our figures",
}
_OPPOSITES = {sre.CATEGORY_NOT_DIGIT: "a", sre.CATEGORY_NOT_SPACE: "a", sre.CATEGORY_NOT_WORD: "-"}
_USUAL = ' a1-/<>"\\=;:.\n\t'


def expressions() -> Iterator[tuple[str, re.Pattern[Any], set[str]]]:
    """Every compiled expression that a module of the house has, and how that module calls it."""
    for info in pkgutil.walk_packages(fyke.__path__, "fyke."):
        if info.name.endswith("__main__") or info.name.startswith("fyke.lab.") or info.name in TRUSTED:
            continue
        module = importlib.import_module(info.name)
        patterns = dict(_patterns(vars(module)))
        if not patterns:
            continue
        calls: dict[str, set[str]] = {}
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
                calls.setdefault(node.value.id, set()).add(node.attr)
        for name, pattern in patterns.items():
            yield f"{info.name}.{name}", pattern, calls.get(name, {"match"} if "[" in name else {"search"})


def _patterns(names: dict[str, Any]) -> Iterator[tuple[str, re.Pattern[Any]]]:
    for name, value in names.items():
        for place, each in enumerate(value if isinstance(value, tuple) else ()):
            if isinstance(each, re.Pattern):
                yield f"{name}[{place}]", each
        if isinstance(value, re.Pattern):
            yield name, value


EVERY = {name: (pattern, methods) for name, pattern, methods in expressions()}


def _samples(node: Any) -> str:
    """A text that this part of an expression matches, or nearly; repeated parts once."""
    operator, value = node
    match operator:
        case sre.LITERAL:
            return chr(value)
        case sre.NOT_LITERAL:
            return next(character for character in "a-" if ord(character) != value)
        case sre.ANY:
            return "a"
        case sre.IN:
            return _of_class(value)
        case sre.BRANCH:
            return _written(value[1][0])
        case sre.SUBPATTERN:
            return _written(value[3])
        case sre.ATOMIC_GROUP:
            return _written(value)
        case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
            return _written(value[2]) * max(1, min(value[0], 40))
    return ""


def _of_class(items: Any) -> str:
    negated = items[0][0] is sre.NEGATE
    characters = set(map(chr, range(128)))
    within = {character for character in characters if _in_class(items, character) != negated}
    return next((each for each in "a1 -=" if each in within), min(within, default="a"))


def _in_class(items: Any, character: str) -> bool:
    for operator, value in items:
        if operator is sre.LITERAL and value == ord(character):
            return True
        if operator is sre.RANGE and value[0] <= ord(character) <= value[1]:
            return True
        if operator is sre.CATEGORY:
            sample = r"\d" if value is sre.CATEGORY_DIGIT else r"\s" if value is sre.CATEGORY_SPACE else r"\w"
            if value in _OPPOSITES:
                sample = {sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_NOT_SPACE: r"\S"}.get(value, r"\W")
            if re.fullmatch(sample, character, re.ASCII):
                return True
    return False


def _written(nodes: Any) -> str:
    return "".join(map(_samples, nodes))


def _repeats(nodes: Any, before: str) -> Iterator[tuple[str, str]]:
    """For each part that may be repeated: what a match has before it, and the part once; also what is within it."""
    for node in nodes:
        operator, value = node
        if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            if value[1] > 8:
                for branch in _branches(value[2]):
                    yield before, branch
            yield from _repeats(value[2], before)
        elif operator is sre.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, before)
        elif operator is sre.SUBPATTERN:
            yield from _repeats(value[3], before)
        elif operator is sre.ATOMIC_GROUP:
            yield from _repeats(value, before)
        before += _samples(node)


def _branches(nodes: Any) -> Iterator[str]:
    """What may stand for a repeated part: each of its alternatives."""
    nodes = list(nodes)
    while len(nodes) == 1 and nodes[0][0] in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
        nodes = list(nodes[0][1][3] if nodes[0][0] is sre.SUBPATTERN else nodes[0][1])
    if len(nodes) == 1 and nodes[0][0] is sre.BRANCH:
        yield from map(_written, nodes[0][1][1])
    else:
        yield _written(nodes)


def _literals(nodes: Any) -> Iterator[str]:
    run = ""
    for operator, value in nodes:
        if operator is sre.LITERAL:
            run += chr(value)
            continue
        if run:
            yield run
        run = ""
        if operator is sre.BRANCH:
            for branch in value[1]:
                yield from _literals(branch)
        elif operator is sre.SUBPATTERN:
            yield from _literals(value[3])
        elif operator is sre.ATOMIC_GROUP:
            yield from _literals(value)
        elif operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield from _literals(value[2])
    if run:
        yield run


def attacks(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """What is worst for `pattern`: (beginning, part that is repeated, end), without repeats."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = _parser.parse(source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    repeats = list(dict.fromkeys(_repeats(tree, "")))
    literals = list(dict.fromkeys(_literals(tree)))
    befores = list(dict.fromkeys(["", *(before for before, _ in repeats)]))
    pumps = list(dict.fromkeys([*(pump for _, pump in repeats), *literals, *_USUAL]))
    pumps += [first + second for first in literals[:4] for second in literals[:4]]
    pumps += [f"{before}{pump}"[:200] for before, pump in repeats if before]
    ends = ["", "\x01", "\n\x01", *literals[-1:]]
    found = [(before, pump, end) for before in befores for pump in pumps if pump for end in ends]
    return random.Random(1).sample(found, 1200) if len(found) > 1200 else found


def _seconds(pattern: re.Pattern[Any], methods: set[str], attack: tuple[str, str, str], size: int) -> float:
    before, pump, end = attack
    text = f"{before}{pump * (size // len(pump))}{end}"
    given: Any = text if isinstance(pattern.pattern, str) else text.encode("utf-8")
    empty: Any = given[:0]
    began = time.thread_time()
    for method in methods:
        if method == "finditer":
            for _ in pattern.finditer(given):
                pass
        elif method in ("sub", "subn"):
            pattern.sub(empty, given)
        else:
            getattr(pattern, method)(given)
    return time.thread_time() - began


def slow_with(pattern: re.Pattern[Any], methods: set[str]) -> tuple[str, str, str] | None:
    """The first input for which `pattern` takes more than its share of time."""
    for attack in attacks(pattern):
        for size in (SHORT // 64, SHORT // 8, SHORT):  # what explodes shows itself where it is small
            if _seconds(pattern, methods, attack, 4 * size) > PLAINLY_LINEAR_S * size / SHORT:
                short = min(_seconds(pattern, methods, attack, size) for _ in range(5))
                long = min(_seconds(pattern, methods, attack, 4 * size) for _ in range(5))
                if long > 8 * short + 2e-4:
                    return attack
    return None


@pytest.mark.parametrize("name", EVERY)
def test_an_expression_is_linear(name: str) -> None:
    pattern, methods = EVERY[name]
    attack = slow_with(pattern, methods)
    assert attack is None, f"{sorted(methods)} take more than linear time on {attack}"


@pytest.mark.parametrize(
    ("source", "method"),
    [
        (r"\s+\n", "sub"),
        (r"(?:\s|<!--.*?-->)*<!doctype", "match"),
        (r"a.*b.*c", "fullmatch"),
        (r"x*x*y", "match"),
    ],
)
def test_what_is_not_linear_is_found(source: str, method: str) -> None:
    assert slow_with(re.compile(source, re.DOTALL), {method}) is not None
