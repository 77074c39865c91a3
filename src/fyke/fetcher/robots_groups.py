"""Which lines of a robots.txt are for one crawler (RFC 9309, section 2.2.1)?

Called by `fyke.fetcher.robots_rules` with each line in order.
"""

import re
from sys import getsizeof

from fyke.fetcher.robots_lines import Field, Line, product_token

_DELAY = re.compile(r"\d{1,9}(\.\d{0,9})?|\.\d{1,9}")


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


class RobotsGroups:
    """Reads lines in order and keeps those of our groups, merged (RFC 9309, 2.2.1).

    Only Allow and Disallow end a run of User-agent lines, as in the standard. Crawl-delay, which is
    not in it, also does so for itself: files that give several agents a delay each are common.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._ruled = _Speaker()
        self._delayed = _Speaker()
        self.named = False
        self._ours: list[Line] = []
        self._everyones: list[Line] = []
        self._our_delay: float | None = None
        self._everyones_delay: float | None = None
        self.sitemaps: dict[str, None] = {}
        self.sitemap_bytes = 0  # of memory

    def read(self, line: Line) -> None:
        if line.field is Field.USER_AGENT:
            self._name(product_token(line.value))
        elif line.field is Field.SITEMAP:
            if line.value:
                self._name_sitemap(line.value.encode("latin-1").decode("utf-8", "replace"))
        elif line.field is Field.CRAWL_DELAY:
            self._delay(line.value)
        else:
            self._rule(line)

    def _name(self, token: str) -> None:
        us = token == self._agent
        self.named |= us
        for speaker in (self._ruled, self._delayed):
            speaker.name(us=us, everyone=token == "*")

    def _name_sitemap(self, url: str) -> None:
        if url not in self.sitemaps:
            self.sitemaps[url] = None
            self.sitemap_bytes += getsizeof(url)

    def _rule(self, line: Line) -> None:
        self._ruled.closed = self._delayed.closed = True
        if not line.value:  # restricts nothing
            return
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

    @property
    def lines(self) -> list[Line]:
        """The Allow and Disallow lines for us."""
        return self._ours if self.named else self._everyones

    @property
    def delay_s(self) -> float | None:
        """The Crawl-delay for us, in seconds, if there is one."""
        return self._our_delay if self.named else self._everyones_delay
