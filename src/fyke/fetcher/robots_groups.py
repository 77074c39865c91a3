"""Which lines of a robots.txt are for one crawler (RFC 9309, section 2.2.1)?

`fyke.fetcher.robots_rules` passes each line in order.
"""

import re
import unicodedata
from sys import getsizeof
from typing import Generic, TypeVar

from fyke.fetcher.robots_lines import Field, Line, product_token

_DELAY_CHARS = 64  # read of a Crawl-delay
_MOST_DELAY_S = 1e9  # longer ones are cut to it
_DELAY = re.compile(
    r"(?P<minus>[-\u2010-\u2015\u2212]\s*)?(?P<number>[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?P<power>e\+?[0-9]+)?"
    r"(?:\s*(?:(?P<m>m(?:in(?:ute)?s?)?)|(?P<h>h(?:(?:ou)?rs?)?))\b)?",
    re.IGNORECASE | re.ASCII,
)

Rule = TypeVar("Rule")


class _Speaker:
    """The agents that a line belongs to: those named since the last line that named none."""

    __slots__ = ("closed", "everyone", "us")

    def __init__(self) -> None:
        self.us = self.everyone = self.closed = False

    def name(self, *, us: bool, everyone: bool) -> None:
        if self.closed:
            self.us = self.everyone = self.closed = False
        self.us |= us
        self.everyone |= everyone


class RobotsGroups(Generic[Rule]):
    """Reads lines in order, and tells which rules are of our groups, merged (RFC 9309, 2.2.1). The caller keeps each
    rule where `read` says.

    Only Allow and Disallow end a run of User-agent lines, as in the standard. Crawl-delay, which is not in it, also
    ends the run for itself: files that give several agents a delay each are common.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._ruled = _Speaker()
        self._delayed = _Speaker()
        self.named = False
        self._ours: list[Rule] = []
        self._everyones: list[Rule] = []
        self._our_delay: float | None = None
        self._everyones_delay: float | None = None
        self.sitemaps: dict[str, None] = {}
        self.sitemap_bytes = 0  # of memory

    def read(self, line: Line) -> list[Rule] | None:
        """Take a line. If it makes a rule that may be for us, return the list that the rule belongs to."""
        if line.field is Field.USER_AGENT:
            self._name(product_token(line.value))
        elif line.field is Field.SITEMAP:
            if line.value:
                self._name_sitemap(line.value.encode("latin-1").decode("utf-8", "replace"))
        elif line.field is Field.CRAWL_DELAY:
            self._delay(line.value)
        else:
            return self._rules_of(line)
        return None

    def _name(self, token: str) -> None:
        us = token == self._agent
        if us and not self.named:
            self.named = True
            self._everyones = []
        for speaker in (self._ruled, self._delayed):
            speaker.name(us=us, everyone=token == "*")

    def _name_sitemap(self, url: str) -> None:
        if url not in self.sitemaps:
            self.sitemaps[url] = None
            self.sitemap_bytes += getsizeof(url)

    def _rules_of(self, line: Line) -> list[Rule] | None:
        self._ruled.closed = self._delayed.closed = True
        if not line.value:  # restricts nothing
            return None
        if self._ruled.us:
            return self._ours
        return self._everyones if self._ruled.everyone and not self.named else None

    def _delay(self, value: str) -> None:
        """Take a Crawl-delay. The longest of several for one agent counts."""
        self._delayed.closed = True
        delay = _seconds(value)
        if delay is None:
            return
        if self._delayed.us:
            self._our_delay = max(delay, self._our_delay or 0.0)
        elif self._delayed.everyone:
            self._everyones_delay = max(delay, self._everyones_delay or 0.0)

    @property
    def rules(self) -> list[Rule]:
        """The rules for us, in order."""
        return self._ours if self.named else self._everyones

    @property
    def delay_s(self) -> float | None:
        """The Crawl-delay for us, in seconds, if there is one."""
        return self._our_delay if self.named else self._everyones_delay


def _seconds(value: str) -> float | None:
    """Return the seconds of a Crawl-delay, by the first number in it, in any notation; None if there is none, or one
    below zero. Text that is no unit of more than a second leaves the number as it is."""
    text = value[:_DELAY_CHARS].encode("latin-1").decode("utf-8", "replace")
    match = _DELAY.search(text if text.isascii() else "".join(map(_in_ascii, text)))
    if match is None or match["minus"]:
        return None
    number = float(match["number"].replace(",", ".") + (match["power"] or ""))
    return min(number * (60 if match["m"] else 3600 if match["h"] else 1), _MOST_DELAY_S)


def _in_ascii(character: str) -> str:
    """Return digits of any script, and fractions, as digits, any blank as a space, and other characters as they are."""
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if 0 < (fraction := unicodedata.numeric(character, 0.0)) < 1:
        return f"{fraction:.9f}".lstrip("0")
    return " " if character.isspace() else {"\u066b": "."}.get(character, character)
