"""What a robots.txt allows one crawler: RFC 9309, section 2.2, compiled to a fast check.

`fyke.fetcher.robots` parses the file once. The fetcher asks for a verdict, which names the line that decides, for every
URL about to be fetched, in slices (`judging`). `fyke why` asks at once (`verdict`).

This is our own. protego fails 10 of the 141 cases of Google's suite that follow from the standard (unknown lines
between groups, agents with a blank, escaped non-ASCII text), cannot name the line, and costs 6 µs a check. Google's own
matcher is the judge in the tests. Where it and the standard differ, we follow the standard:

- escapes of unreserved characters mean the character (2.2.2): `/%62` is `/b`; `%2A` and `%24` in a rule mean a literal
  `*` and `$` (2.2.3), and count as one octet; characters that may not stand in a URL match their escapes: a blank
  `%20`, `|` `%7C`;
- `/robots.txt` itself is always allowed (2.2.2);
- `Allow: /dir/index.html` does not allow `/dir/`;
- long lines are not cut at 16 KiB, only the file is, at 500 KiB and the line that crosses it. If none of them names an
  agent, all is forbidden: the rules come later. An HTML page in place of the file has none.

We follow Google rather than the standard's letter in two points. Reserved characters are compared as written (the
table in 2.2.2 escapes those of a query), and misspelt or longer field names are understood.

No file and no URL holds the loop: files are read, and URLs checked, in units of well under a millisecond (see
`fyke.core.slices`; the usual ones are done in the first). Rules are tried by length, longest first, and no match
backtracks. If many rules have wildcards, one look at the three-byte pieces of the URL tells which rules can match at
all. Most files are then checked in less than a millisecond, and the worst of 500 KiB in 0.2 s.

Invariant: the same rule decides, in slices or at once.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from sys import getsizeof
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fyke.core.slices import Slices, whole
from fyke.fetcher.robots_groups import RobotsGroups
from fyke.fetcher.robots_lines import MAX_BYTES, Field, Line, lines_of

ROBOTS_PATH = "/robots.txt"

# What may be written differently in rule and URL: escapes, and characters that may not stand in a URL.
_ODD = re.compile(
    r"[^\0!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]"
    r"|%(?:2[4ADE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E|[a-f][0-9A-Fa-f]|[0-9A-F][a-f])"
)
_WILDCARD = "\0"  # in a rule; `*` is the character, and NUL is in none
_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~*$")
STRETCH = 256  # characters normalised, or looked at, in one unit
BLOCK = 1024  # rules with wildcards in one unit
FEW = 64  # as many rules with wildcards are tried one by one
PIECES = 8  # of a rule, looked for in a URL
ALWAYS = 0  # the code that every URL has
RULE_BYTES = 192  # of memory for a rule, besides its texts
SILENT = f"the first {MAX_BYTES >> 10} KiB of robots.txt name no agent, and more is not read"
_BEFORE_A_PAGE = codecs.BOM_UTF8 + b" \t\r\n"  # that a server shows for any path, and which has no rules
UNIT = 100  # steps of small things in one unit


class Verdict(NamedTuple):
    """Permission to fetch a URL or not, and the line that says so (number 0: no line speaks of it)."""

    allowed: bool
    line_number: int
    line_text: str


_UNSAID = Verdict(True, 0, "")
Key = TypeVar("Key")


class _RobotsRule(NamedTuple):
    """One Allow or Disallow line, in the normal form of both sides."""

    pattern: str  # with `_WILDCARD`s, never two in a row
    allow: bool
    number: int  # of the line
    text: str
    size: int  # octets of the pattern as written: the longest match wins
    to_end: bool  # `$`: the last part is anchored at the end
    probe: str  # the longest part: no match without it

    @property
    def plain(self) -> bool:
        return not self.to_end and _WILDCARD not in self.pattern


def _same(match: re.Match[str]) -> str:
    text = match[0]
    if len(text) == 3:
        character = chr(int(text[1:], 16))
        return character if character in _BARE else text.upper()
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))


def _normal(target: str) -> Slices[str]:
    """Return path and query in the form in which rules and URLs are compared."""
    if len(target) <= STRETCH:
        return _ODD.sub(_same, target) if _ODD.search(target) else target
    stretches = []
    at = 0
    while at < len(target):
        end = at + STRETCH
        cut = target.find("%", end - 2, end)  # an escape stays whole
        end = end if cut < 0 else cut
        stretch, changes = _ODD.subn(_same, target[at:end])
        stretches.append(stretch)
        at = end
        yield 1 + 2 * changes
    return "".join(stretches)


def _rule(line: Line) -> Slices[_RobotsRule]:
    """Return the rule of an Allow or Disallow line."""
    to_end = line.value.endswith("$")
    value = line.value[:-1] if to_end else line.value
    if not value.isascii():  # it was read as Latin-1; surrogates carry its bytes to `_same` one by one
        value = value.encode("latin-1").decode("ascii", "surrogateescape")
    pattern = yield from _normal(value.replace("*", _WILDCARD))
    size = len(pattern) + to_end
    while _WILDCARD * 2 in pattern:
        pattern = pattern.replace(_WILDCARD * 2, _WILDCARD)
    parts = pattern[:STRETCH].split(_WILDCARD)
    probe = pattern if parts == [pattern] else max(parts, key=len)
    return _RobotsRule(pattern, line.field is Field.ALLOW, line.number, line.text, size, to_end, probe)


def _matches(rule: _RobotsRule, target: str) -> bool:
    """Return whether a rule with wildcards or `$` matches. The leftmost match of each part is enough."""
    pattern = rule.pattern
    if rule.probe not in target or len(pattern) // 2 > len(target):  # no two wildcards are neighbours
        return False
    first, *parts = pattern.split(_WILDCARD)
    if not target.startswith(first):
        return False
    at = len(first)
    if not parts:
        return at == len(target)
    last = parts.pop()
    for part in parts:
        found = target.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    if rule.to_end:
        return target.endswith(last) and len(target) - len(last) >= at
    return target.find(last, at) >= 0


def _steps(rule: _RobotsRule, length: int) -> int:
    """Return about how many microseconds `_matches` takes at worst. `str.find` is linear if the product is large."""
    return (min(len(rule.probe) * length, 1 << 20) >> 11) + (min(len(rule.pattern), length) >> 4)


def _codes(text: str) -> npt.NDArray[np.uint16]:
    """Return a number for every three neighbouring bytes of `text`; unlike numbers are unlike bytes."""
    raw = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.uint32)
    threes = raw[:-2] | raw[1:-1] << 8 | raw[2:] << 16
    return ((threes * np.uint32(0x9E3779B1)) >> 16).astype(np.uint16)


class _Wild:
    """Up to `BLOCK` rules with wildcards or `$`, the strongest first, and the codes that a URL needs to match each."""

    __slots__ = ("needed", "rules")

    def __init__(self, rules: list[_RobotsRule]) -> None:
        self.rules = rules
        self.needed: npt.NDArray[np.uint16] | None = None  # codes, a column a rule
        if len(rules) > FEW:
            probes = [rule.probe if len(rule.probe) > 2 else "" for rule in rules]
            sizes = np.fromiter(map(len, probes), np.int64, len(probes))
            places = np.maximum(sizes - 2, 0) * np.arange(PIECES)[::-1, None] // PIECES  # patterns differ at the end
            codes = _codes("".join(probes) + "  ")
            codes = np.append(codes, np.uint16(ALWAYS))
            starts = np.where(sizes > 0, np.cumsum(sizes) - sizes + places, len(codes) - 1)
            self.needed = codes[starts]

    def candidates(self, present: npt.NDArray[np.bool_] | None) -> Iterator[_RobotsRule]:
        """Return the rules that may match a URL which has the codes `present`."""
        if self.needed is None or present is None:
            return iter(self.rules)
        at = np.flatnonzero(present[self.needed[0]])
        if len(at):
            at = at[present[self.needed[1:, at]].all(axis=0)]
        return (self.rules[place] for place in at.tolist())


class RobotsRules:
    """The rules of one robots.txt for one product token.

    `crawl_delay_s` is the group's Crawl-delay (None if it names none), `sitemaps` the values of all Sitemap lines as
    written, `size_bytes` about how much memory all of it takes.
    """

    __slots__ = ("_plain", "_sizes", "_wild", "closed", "crawl_delay_s", "sitemaps", "size_bytes")

    def __init__(self, *, crawl_delay_s: float | None = None, sitemaps: tuple[str, ...] = ()) -> None:
        self.crawl_delay_s = crawl_delay_s
        self.sitemaps = sitemaps
        self.size_bytes = 0
        self.closed = False  # nothing may be fetched, except robots.txt itself
        self._plain: dict[str, _RobotsRule] = {}
        self._sizes: list[int] = []  # of plain patterns, longest first; few, because the file has an end
        self._wild: list[_Wild] = []

    def _take(self, rules: Iterable[_RobotsRule]) -> Slices[None]:
        """Take `rules`, which are all."""
        wild: dict[tuple[str, int, bool], _RobotsRule] = {}
        sizes = set()
        allowing = False
        steps = 0
        for rule in rules:
            allowing |= rule.allow
            if rule.plain:
                sizes.add(rule.size)
                self.size_bytes += _keep(self._plain, rule.pattern, rule)
            else:
                self.size_bytes += _keep(wild, (rule.pattern, rule.size, rule.to_end), rule)
            steps += 2
            if steps >= UNIT:
                yield steps
                steps = 0
        yield steps
        root = self._plain.get("/")
        self.closed = root is not None and not allowing
        self._sizes = sorted(sizes, reverse=True)
        yield from self._order(wild.values())

    def _order(self, rules: Iterable[_RobotsRule]) -> Slices[None]:
        """Put `rules` into blocks, the strongest first: longest, Allow before Disallow, and as they were written."""
        by_strength: dict[tuple[int, bool], list[_RobotsRule]] = {}
        for at, rule in enumerate(rules):
            by_strength.setdefault((rule.size, rule.allow), []).append(rule)
            if not (at + 1) % BLOCK:
                yield BLOCK // 2
        strongest_first = chain.from_iterable(by_strength[strength] for strength in sorted(by_strength, reverse=True))
        while block := list(islice(strongest_first, BLOCK)):
            self._wild.append(_Wild(block))
            yield 1 + len(block) // 2

    def __repr__(self) -> str:
        return f"RobotsRules({len(self._plain)} plain, {len(self) - len(self._plain)} with wildcards)"

    def __len__(self) -> int:
        return len(self._plain) + sum(len(block.rules) for block in self._wild)

    @classmethod
    def reading(cls, body: bytes, agent: str) -> "Slices[RobotsRules]":
        """Return the rules of `body` for the product token `agent`, read in slices. Never raises, whatever the
        bytes."""
        groups = RobotsGroups[_RobotsRule](agent.lower())
        is_meant = len(body) <= MAX_BYTES or body.lstrip(_BEFORE_A_PAGE).startswith(b"<")
        steps = len(body) >> 10
        for line in lines_of(body):
            steps += 1
            if line is not None:
                rules_of = groups.read(line)
                if rules_of is not None:
                    rules_of.append((yield from _rule(line)))
                is_meant |= line.field is Field.USER_AGENT
                steps += 5 + (len(line.value) >> 8)
            if steps >= UNIT:
                yield steps
                steps = 0
        yield steps
        if not is_meant:
            return cls.disallow_all(SILENT)
        rules = cls(crawl_delay_s=groups.delay_s, sitemaps=tuple(groups.sitemaps))
        rules.size_bytes = groups.sitemap_bytes
        yield from rules._take(groups.rules)
        return rules

    @classmethod
    def parse(cls, body: bytes, agent: str) -> "RobotsRules":
        """Return the same as `reading`, at once."""
        return whole(cls.reading(body, agent))

    @classmethod
    def allow_all(cls) -> "RobotsRules":
        """Return no rules, for a robots.txt that does not exist."""
        return cls()

    @classmethod
    def disallow_all(cls, reason: str) -> "RobotsRules":
        """Return rules that forbid everything; `reason` stands in the verdict in place of a line."""
        rules = cls()
        whole(rules._take([whole(_rule(Line(0, Field.DISALLOW, "/", reason)))]))
        return rules

    def verdict(self, target: str) -> Verdict:
        """Return whether `target` (path and query of a canonical URL) may be fetched, and the line that decides."""
        return whole(self.judging(target))

    def judging(self, target: str) -> Slices[Verdict]:
        """Return the same as `verdict`, in slices."""
        if target == ROBOTS_PATH:
            return _UNSAID
        rule = yield from self._deciding((yield from _normal(target.replace(_WILDCARD, "%00"))))
        if rule is None:
            return _UNSAID
        text = rule.text.encode("latin-1", "replace").decode("utf-8", "replace").strip()
        return Verdict(rule.allow, rule.number, text)

    def _deciding(self, target: str) -> Slices[_RobotsRule | None]:
        """Return the longest rule that matches, Allow before Disallow."""
        best = self._longest_plain(target)
        size, allow = (best.size, best.allow) if best else (0, True)
        present = None
        for block in self._wild:
            if block.needed is not None and present is None:
                present = np.zeros(1 << 16, np.bool_)
                present[_codes(target)] = present[ALWAYS] = True
            for rule in block.candidates(present):
                if rule.size < size or (rule.size == size and (allow or not rule.allow)):
                    return best
                if _matches(rule, target):
                    return rule
                yield 1 + _steps(rule, len(target))
            yield 1 + (len(block.rules) >> 6)
        return best

    def _longest_plain(self, target: str) -> _RobotsRule | None:
        """Return the longest plain pattern that `target` begins with."""
        for size in self._sizes:
            rule = self._plain.get(target[:size])
            if rule is not None:
                return rule
        return None


def _keep(known: dict[Key, _RobotsRule], key: Key, rule: _RobotsRule) -> int:
    """Keep one of two rules with the same pattern: Allow before Disallow, otherwise the first. Returns about how many
    more bytes are taken."""
    kept = known.setdefault(key, rule)
    if kept is rule:
        return RULE_BYTES + sum(map(getsizeof, {rule.pattern, rule.probe, rule.text}))
    if kept.allow < rule.allow:
        known[key] = rule
    return 0
