"""The hours of the day in which sites may be asked: `hours` of the settings.

`22-6` is from ten in the evening to six in the morning, by the clock of this machine; `22:30-6 Europe/Berlin` by that
of a named zone. Where a clock is set forward or back, hours begin and end as it shows; of an hour that it shows twice
the first counts, one that it leaves out begins when it would have.

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
    """From `begin_min` to `end_min`, minutes since midnight, which may be those of the next day."""

    begin_min: int
    end_min: int
    zone: ZoneInfo | None = None  # None: this machine's

    @classmethod
    def of(cls, text: str) -> Self:
        """The hours that `text` says. Raises ValueError."""
        found = _HOURS.fullmatch(text)
        if found is None:
            raise ValueError("hours are such as 22-6, or 22:30-6 Europe/Berlin")
        hours = [int(part or 0) for part in found.groups()[:4]]
        begin_min, end_min = hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]
        if max(hours[1], hours[3]) > 59 or begin_min >= DAY_MIN or end_min > DAY_MIN:
            raise ValueError("a day has the hours 0:00 to 24:00")
        if begin_min == end_min:
            raise ValueError("they end when they begin; 0-24 is the whole day")
        return cls(begin_min, end_min if end_min > begin_min else end_min + DAY_MIN, _zone(found[5]))

    def opens_at(self, at: float) -> float:
        """`at`, if that is within the hours; else when they begin next."""
        today = datetime.fromtimestamp(at, self.zone).date()
        for days in range(-1, 3):  # where clocks are set forward, nothing may be left of a day's hours
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
        raise ValueError(f"this machine knows no time zone {name}; it is such as Europe/Berlin") from None


def valid_hours(text: str) -> str:
    """`text`, which says hours or is empty. Raises ValueError."""
    if text:
        Hours.of(text)
    return text


class SiteHours(Protocol):
    """What a table `[[site]]` says of hours (`fyke.core.site`)."""

    @property
    def match(self) -> str: ...

    @property
    def hours(self) -> str: ...

    def has_host(self, host: str) -> bool: ...


class HostHours:
    """When each host may be asked: as the last table says that says something of it, else as is `usual`."""

    def __init__(self, usual: str = "", tables: Sequence[SiteHours] = ()) -> None:
        self._usual = usual
        self._tables = [table for table in reversed(tables) if table.hours]
        texts = {usual, *(table.hours for table in tables)} - {""}
        self._hours = {text: Hours.of(text) for text in texts}
        self.set_s = 0.0  # how far the wall clock is ahead of the clock that callers use

    def __repr__(self) -> str:
        return f"HostHours({', '.join(self._hours)})"

    def __bool__(self) -> bool:
        return bool(self._hours)

    @property
    def in_words(self) -> str:
        """What the settings say, the usual hours first; empty where they say nothing."""
        said = [(table.match, table.hours) for table in reversed(self._tables)]
        own = [f"{hours} for {match}" for match, hours in said]
        return ", ".join([*filter(None, [self._usual]), *own])

    def text_of(self, host: str) -> str:
        """The hours of `host` (a name, lower case), as they are in the settings; empty for any."""
        return next((table.hours for table in self._tables if table.has_host(host)), self._usual)

    def opens_at(self, host: str, at: float) -> float:
        """`at`, if `host` may be asked then, as far as hours go; else when it may next."""
        text = self.text_of(host)
        return self._hours[text].opens_at(at + self.set_s) - self.set_s if text else at

    def begin_at(self, at: float) -> bool:
        """Whether the hours of any host begin at `at`: who waits for that was asked to."""
        wall = at + self.set_s
        return any(abs(hours.opens_at(wall - 1.0) - wall) < 0.5 for hours in self._hours.values())
