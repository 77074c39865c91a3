"""When a page was changed, as sitemaps and feeds have it.

Called for each entry of a list. Sitemaps, Atom, JSON Feed and Dublin Core write dates as W3C and RFC 3339 have them,
RSS as RFC 822 does. A day without an hour means its begin. A visit on that day may have been before the change or after
it, and a signal that no visit ends would be false from then on. People also write days with the English name of the
month; `day_named` reads these, for search too. A day in numbers alone that does not begin with the year is not read:
nobody knows which is the month.

`credible` gives the dates that are worth passing on. They are not believed for that: what a host's dates have proved
decides (`fyke.frontier.revisit.signals`).

Invariant: never raises, whatever the text; the work is bounded.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MOST_CHARS = 40
MOST_OF_ENTRY = 100  # links: one page in as many languages
FEW = 3  # entries that may well have changed on one day, or at once
DAY_S = 86400.0
SKEW_S = 60.0  # between clocks

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})(?!\d)"
_DAY_FIRST = re.compile(
    rf"(?<![\w/.:–—-]){_DAY}[\s-]{{1,2}}(?:of\s)?{_MONTH}[\s,-]{{1,2}}{_YEAR}", re.IGNORECASE | re.ASCII
)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s{_DAY},?\s{_YEAR}", re.IGNORECASE | re.ASCII)


class DatedEntries:
    """The entries of one list, as their elements come: links and a date for each, in any order."""

    def __init__(self) -> None:
        self._dated: dict[str, float] = {}
        self._links: list[str] = []
        self._date = ""

    def link(self, href: str) -> None:
        """Add `href` to the links of the entry, unless it is empty."""
        if href and len(self._links) < MOST_OF_ENTRY:
            self._links.append(href)

    def date(self, text: str) -> None:
        """Note when the entry changed; the last of several dates counts."""
        self._date = text or self._date

    def end(self) -> None:
        """End the entry, because the list ends or the next one begins."""
        at = time_of(self._date) if self._links and self._date else 0.0
        if at:
            self._dated |= dict.fromkeys(self._links, at)
        self._links.clear()
        self._date = ""

    def dated(self) -> dict[str, float]:
        """Return when pages changed (unix seconds), for those that the list dates."""
        self.end()
        return self._dated


def time_of(text: str) -> float:
    """Return the time that `text` names, unix seconds; 0 if it names none, or only a month."""
    text = text[: MOST_CHARS + 1].strip()
    if not 10 <= len(text) <= MOST_CHARS:
        return 0.0
    try:
        found = datetime.fromisoformat(text) if text[:4].isdigit() else time_written(text)
        stamp = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    return max(0.0, stamp)


def time_written(text: str) -> datetime:
    """Return the time that `text`, an HTTP date or a day with the name of its month, means. Raises ValueError and
    others if it means none."""
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return day_named(text)


def day_named(text: str) -> datetime:
    """Return the first day in `text`, such as "3 April 2021" or "Apr. 3rd, 2021". Raises ValueError if there is
    none."""
    text = " ".join(text.split())
    found = [match for way in (_DAY_FIRST, _MONTH_FIRST) if (match := way.search(text))]
    if not found:
        raise ValueError("no day")
    first = min(found, key=re.Match.start)
    return datetime(int(first["year"]), 1 + _MONTHS.index(first["month"][:3].lower()), int(first["day"]), tzinfo=UTC)


def credible(dated: Mapping[str, float], since: float, now: float) -> dict[str, float]:
    """Return the `dated` entries (by href, unix seconds) that may tell of a change that the list did not tell when it
    was read at `since`. They have a day of grace, because lists are made from time to time, and days differ around the
    world.

    A date shared by all entries is that of the list. A date in the future does not count yet.
    """
    if len(dated) > FEW and len(set(dated.values())) == 1:
        return {}
    return {href: at for href, at in dated.items() if since - DAY_S < at <= now + SKEW_S}
