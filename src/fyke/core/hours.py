"""The hours of the day in which sites may be asked: `hours` of the settings.

`22-6` is from ten in the evening to six in the morning, by the clock of this machine; `22:30-6 Europe/Berlin` by that
of a named zone. If that clock is set forward or back, hours begin and end as it shows. Of an hour that it shows twice,
the first counts; an hour that it leaves out begins when it would have.

Invariant: no clock is read here; times are unix seconds.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Protocol, Self
from zoneinfo import ZoneInfo

DAY_MIN = 24 * 60
_HOURS = re.compile(r"(\d{1,2})(?::(\d\d))?-(\d{1,2})(?::(\d\d))?(?: ([A-Za-z][A-Za-z0-9_+/-]*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hours:
    """From `begin_min` to `end_min`, minutes since midnight; `end_min` may be on the next day."""

    begin_min: int
    end_min: int
    zone: ZoneInfo | None = None  # None: this machine's

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the hours that `text` says. Raises ValueError."""
        found = _HOURS.fullmatch(text)
        if found is None:
            raise ValueError("write hours as 22-6, or as 22:30-6 Europe/Berlin")
        hours = [int(part or 0) for part in found.groups()[:4]]
        begin_min, end_min = hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]
        if max(hours[1], hours[3]) > 59 or begin_min >= DAY_MIN or end_min > DAY_MIN:
            raise ValueError("hours of the day are 0:00 to 24:00")
        if begin_min == end_min:
            raise ValueError("the hours end when they begin; write 0-24 for the whole day")
        return cls(begin_min, end_min if end_min > begin_min else end_min + DAY_MIN, _zone(found[5]))

    def opens_at(self, at: float) -> float:
        """Return `at` if it is within the hours, or when they begin next."""
        today = datetime.fromtimestamp(at, self.zone).date()
        for days in range(-1, 3):  # a clock set forward may leave out a day's hours
            day = today + timedelta(days)
            begin, end = self._instant(day, self.begin_min), self._instant(day, self.end_min)
            if begin < end and at < end:
                return max(at, begin)
        raise AssertionError(f"no day has the hours {self}")

    def _instant(self, day: date, minutes: int) -> float:
        days, minutes = divmod(minutes, DAY_MIN)
        return datetime.combine(day + timedelta(days), time(*divmod(minutes, 60)), self.zone).timestamp()


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return None if name is None else ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(f"this machine does not know the time zone {name}; write one like Europe/Berlin") from None


def valid_hours(text: str) -> str:
    """Return `text`, which says hours or is empty. Raises ValueError."""
    if text:
        Hours.of(text)
    return text


class SiteHours(Protocol):
    """The part of a table `[[site]]` (`fyke.core.site`) about hours."""

    @property
    def match(self) -> str: ...

    @property
    def hours(self) -> str: ...

    def has_host(self, host: str) -> bool: ...


class HostHours:
    """The hours of each host: those of the last table with hours that has the host, or the `usual` ones."""

    def __init__(self, usual: str = "", tables: Sequence[SiteHours] = ()) -> None:
        self._usual = usual
        self._tables = [table for table in reversed(tables) if table.hours]
        texts = {usual, *(table.hours for table in tables)} - {""}
        self._hours = {text: Hours.of(text) for text in texts}
        self.wall_ahead_s = 0.0  # how far the wall clock is ahead of the clock that callers use

    def __repr__(self) -> str:
        return f"HostHours({', '.join(self._hours)})"

    def __bool__(self) -> bool:
        return bool(self._hours)

    @property
    def in_words(self) -> str:
        """All hours in the settings, the usual ones first; empty without hours."""
        said = [(table.match, table.hours) for table in reversed(self._tables)]
        own = [f"{hours} for {match}" for match, hours in said]
        return ", ".join([*filter(None, [self._usual]), *own])

    def text_of(self, host: str) -> str:
        """Return the hours of `host` (a name, lower case), as in the settings; empty for any hour."""
        return next((table.hours for table in self._tables if table.has_host(host)), self._usual)

    def opens_at(self, host: str, at: float) -> float:
        """Return `at` if the hours of `host` allow it, or the next time that they do."""
        text = self.text_of(host)
        return self._hours[text].opens_at(at + self.wall_ahead_s) - self.wall_ahead_s if text else at

    def is_opening(self, at: float) -> bool:
        """Return whether the hours of any host begin at `at`. The crawl waits for that, however long it takes."""
        wall = at + self.wall_ahead_s
        return any(abs(hours.opens_at(wall - 1.0) - wall) < 0.5 for hours in self._hours.values())
