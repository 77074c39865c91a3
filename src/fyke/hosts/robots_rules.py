"""What a robots.txt allows one crawler: RFC 9309, section 2.2, compiled to a fast check.

`fyke.hosts.robots` parses the file once; the loop calls `allows` for every URL about to be fetched,
`fyke why` calls `verdict`, which also names the line that decided.

Written here although protego exists, because protego fails 10 of the 141 cases of Google's suite
that follow from the standard (unknown lines between groups, agents with a blank, escaped non-ASCII
text), cannot name the line, and costs 6 µs a check. Google's own matcher is the judge in the tests.
Where it and the standard differ, this follows the standard:

- escapes of unreserved characters mean the character (2.2.2): `/%62` is `/b`; `%2A` and `%24` in a
  rule mean a literal `*` and `$` (2.2.3), and count as one octet; characters that may not stand in a
  URL match their escapes: a blank `%20`, `|` `%7C`;
- `/robots.txt` itself is always allowed (2.2.2);
- `Allow: /dir/index.html` does not allow `/dir/`;
- long lines are not cut at 16 KiB, only the file is, at 500 KiB and the line that crosses it.

Where it follows Google rather than the standard's letter: reserved characters are compared as written
(the table in 2.2.2 escapes those of a query), and misspelt or longer field names are understood.

Invariant: a check takes time linear in the URL's length, for each rule, whatever the rule.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from fyke.hosts.robots_lines import Field, Line, lines_of, product_token

ROBOTS_PATH = "/robots.txt"

# What is not written the same on both sides of a comparison: escapes, and what may not stand in a URL.
_ODD = re.compile(r"%[0-9A-Fa-f]{2}|[^!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]")
_MAY_BE_ODD = re.compile(
    r"[^!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]"
    r"|%(?:2[4ADE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E|[a-f][0-9A-Fa-f]|[0-9A-F][a-f])"
)
_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~*$")
_DELAY = re.compile(r"\d{1,9}(\.\d{0,9})?|\.\d{1,9}")


class Verdict(NamedTuple):
    """Whether a URL may be fetched, and the line that says so (number 0: no line speaks of it)."""

    allowed: bool
    line_number: int
    line_text: str


class _Rule(NamedTuple):
    """One Allow or Disallow line, in the normal form of both sides."""

    pattern: str
    allow: bool
    line: Line
    size: int  # octets of the pattern: the longest match wins
    parts: tuple[str, ...]  # literals between wildcards; the first is anchored at the beginning
    to_end: bool  # `$`: the last part is anchored at the end
    probe: str  # the longest part: no match without it

    def precedence(self) -> tuple[int, bool]:
        """Greater wins; of two equal, the line that came first."""
        return self.size, self.allow


def _same(match: re.Match[str]) -> str:
    text = match[0]
    if len(text) == 3:
        character = chr(int(text[1:], 16))
        return character if character in _BARE else text.upper()
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))


def normal(target: str) -> str:
    """Path and query in the form in which rules and URLs are compared."""
    return _ODD.sub(_same, target) if _MAY_BE_ODD.search(target) else target


def _rule(line: Line) -> _Rule | None:
    """The rule of an Allow or Disallow line; None when it is empty, which restricts nothing."""
    if not line.value:
        return None
    to_end = line.value.endswith("$")
    # Bytes beyond ASCII were read as Latin-1; surrogates carry them to `_same` one by one.
    value = (line.value[:-1] if to_end else line.value).encode("latin-1").decode("ascii", "surrogateescape")
    parts = tuple(normal(part) for part in value.split("*"))
    size = sum(map(len, parts)) + len(parts) - 1 + to_end
    return _Rule("*".join(parts), line.field is Field.ALLOW, line, size, parts, to_end, max(parts, key=len))


def _matches(rule: _Rule, target: str) -> bool:
    """Whether a rule with wildcards or `$` matches: leftmost match of each part is enough."""
    parts = rule.parts
    if not target.startswith(parts[0]):
        return False
    at = len(parts[0])
    if len(parts) == 1:
        return not rule.to_end or at == len(target)
    for part in parts[1:-1]:
        found = target.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    if rule.to_end:
        return target.endswith(parts[-1]) and len(target) - len(parts[-1]) >= at
    return target.find(parts[-1], at) >= 0


class RobotsRules:
    """The rules of one robots.txt for one product token.

    `crawl_delay_s` is the group's Crawl-delay (None when it names none), `sitemaps` the values of
    all Sitemap lines as written, `specific` whether a group names the token itself.
    """

    __slots__ = ("_parents", "_plain", "_prefixes", "_wild", "crawl_delay_s", "sitemaps", "specific")

    def __init__(
        self,
        lines: Iterable[Line] = (),
        *,
        crawl_delay_s: float | None = None,
        sitemaps: tuple[str, ...] = (),
        specific: bool = False,
    ) -> None:
        self.crawl_delay_s = crawl_delay_s
        self.sitemaps = sitemaps
        self.specific = specific
        rules = [rule for line in lines if (rule := _rule(line))]
        plain: dict[str, _Rule] = {}
        for rule in rules:
            if len(rule.parts) == 1 and not rule.to_end:
                known = plain.setdefault(rule.pattern, rule)
                if rule.allow and not known.allow:
                    plain[rule.pattern] = rule
        self._prefixes = sorted(plain)
        self._plain = [plain[prefix] for prefix in self._prefixes]
        self._parents = _parents(self._prefixes)
        wild = [rule for rule in rules if len(rule.parts) > 1 or rule.to_end]
        self._wild = sorted(wild, key=_Rule.precedence, reverse=True)

    def __repr__(self) -> str:
        return f"RobotsRules({len(self._plain)} plain, {len(self._wild)} with wildcards)"

    def __len__(self) -> int:
        return len(self._plain) + len(self._wild)

    @classmethod
    def parse(cls, body: bytes, agent: str) -> "RobotsRules":
        """The rules of `body` for the product token `agent`. Never raises, whatever the bytes."""
        groups = _Groups(agent.lower())
        for line in lines_of(body):
            groups.read(line)
        return groups.rules()

    @classmethod
    def allow_all(cls) -> "RobotsRules":
        """No rules: a robots.txt that does not exist."""
        return cls()

    @classmethod
    def disallow_all(cls, reason: str) -> "RobotsRules":
        """Nothing may be fetched; `reason` stands in the verdict where a line would."""
        return cls([Line(0, Field.DISALLOW, "/", reason)])

    @property
    def closed(self) -> bool:
        """Whether nothing may be fetched, whatever its path (but robots.txt itself)."""
        root = self._plain[0] if self._prefixes[:1] == ["/"] else None
        allowing = any(rule.allow for rule in (*self._plain, *self._wild))
        return root is not None and not root.allow and not allowing

    def allows(self, target: str) -> bool:
        """Whether `target` (path and query of a canonical URL) may be fetched."""
        if not self._plain and not self._wild:
            return True
        rule = self._deciding(normal(target))
        return rule is None or rule.allow or target == ROBOTS_PATH

    def verdict(self, target: str) -> Verdict:
        """As `allows`, with the line that decides."""
        if target == ROBOTS_PATH:
            return Verdict(True, 0, "")
        rule = self._deciding(normal(target))
        if rule is None:
            return Verdict(True, 0, "")
        text = rule.line.text.encode("latin-1", "replace").decode("utf-8", "replace").strip()
        return Verdict(rule.allow, rule.line.number, text)

    def _deciding(self, target: str) -> _Rule | None:
        """The longest rule that matches, Allow before Disallow."""
        best = self._longest_plain(target)
        size, allow = (best.size, best.allow) if best else (0, True)
        for rule in self._wild:
            if rule.size < size or (rule.size == size and allow):
                break
            if rule.probe in target and _matches(rule, target) and (rule.size > size or rule.allow):
                return rule
        return best

    def _longest_plain(self, target: str) -> _Rule | None:
        """The longest plain pattern that `target` begins with.

        In sorted order all strings between a prefix of `target` and `target` begin with that prefix:
        so the answer is the last pattern not after `target`, or one that this pattern begins with.
        """
        at = bisect_right(self._prefixes, target) - 1
        while at >= 0 and not target.startswith(self._prefixes[at]):
            at = self._parents[at]
        return self._plain[at] if at >= 0 else None


def _parents(prefixes: list[str]) -> list[int]:
    """For each of the sorted `prefixes` the place of the longest other one it begins with, or -1."""
    parents: list[int] = []
    for at, prefix in enumerate(prefixes):
        parent = at - 1
        while parent >= 0 and not prefix.startswith(prefixes[parent]):
            parent = parents[parent]
        parents.append(parent)
    return parents


class _Speaker:
    """Whose group a line belongs to: the agents named since the last line that was not one."""

    __slots__ = ("closed", "everyone", "us")

    def __init__(self) -> None:
        self.us = self.everyone = self.closed = False

    def name(self, *, us: bool, everyone: bool) -> None:
        if self.closed:
            self.us = self.everyone = self.closed = False
        self.us |= us
        self.everyone |= everyone


class _Groups:
    """Reads lines in order and keeps those of our groups, merged (RFC 9309, 2.2.1).

    Only Allow and Disallow end a run of User-agent lines, as in the standard. Crawl-delay, which is
    not in it, also does so for itself: files that give several agents a delay each are common.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._ruled = _Speaker()
        self._delayed = _Speaker()
        self._named = False
        self._ours: list[Line] = []
        self._everyones: list[Line] = []
        self._our_delay: float | None = None
        self._everyones_delay: float | None = None
        self._sitemaps: dict[str, None] = {}

    def read(self, line: Line) -> None:
        if line.field is Field.USER_AGENT:
            self._name(product_token(line.value))
        elif line.field is Field.SITEMAP:
            if line.value:
                self._sitemaps[line.value.encode("latin-1").decode("utf-8", "replace")] = None
        elif line.field is Field.CRAWL_DELAY:
            self._delay(line.value)
        else:
            self._rule(line)

    def _name(self, token: str) -> None:
        us = token == self._agent
        self._named |= us
        for speaker in (self._ruled, self._delayed):
            speaker.name(us=us, everyone=token == "*")

    def _rule(self, line: Line) -> None:
        self._ruled.closed = self._delayed.closed = True
        if self._ruled.us:
            self._ours.append(line)
        elif self._ruled.everyone:
            self._everyones.append(line)

    def _delay(self, value: str) -> None:
        """Of several delays for one agent the longest counts."""
        self._delayed.closed = True
        match = _DELAY.match(value)
        if match is None:
            return
        delay = float(match[0])
        if self._delayed.us:
            self._our_delay = max(delay, self._our_delay or 0.0)
        elif self._delayed.everyone:
            self._everyones_delay = max(delay, self._everyones_delay or 0.0)

    def rules(self) -> RobotsRules:
        return RobotsRules(
            self._ours if self._named else self._everyones,
            crawl_delay_s=self._our_delay if self._named else self._everyones_delay,
            sitemaps=tuple(self._sitemaps),
            specific=self._named,
        )
