"""The laws of hours: they begin and end as the clock on the wall shows, of whatever zone, also where it is set."""

import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fyke
from fyke.core.config import Config
from fyke.core.hours import HostHours, Hours

ZONES = ["", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"]
MINUTES = st.integers(0, 24 * 60 - 1)
INSTANTS = st.integers(0, 2_000_000_000).map(float)


@st.composite
def hours(draw: st.DrawFn) -> tuple[Hours, int, int]:
    begin, end, zone = draw(MINUTES), draw(MINUTES), draw(st.sampled_from(ZONES))
    assume(begin != end)
    text = f"{begin // 60}:{begin % 60:02}-{end // 60}:{end % 60:02} {zone}".strip()
    return Hours.of(text), begin, end


def shown(at: float, zone: ZoneInfo | None) -> tuple[int, object]:
    """The minute of the day on the wall, and how far that clock is set from UTC."""
    on_wall = datetime.fromtimestamp(at, zone).astimezone(zone)
    return on_wall.hour * 60 + on_wall.minute, on_wall.utcoffset()


@given(hours(), INSTANTS)
def test_they_are_on_as_the_clock_on_the_wall_shows(of: tuple[Hours, int, int], at: float) -> None:
    """On days on which no clock is set."""
    opened, begin, end = of
    minute, offset = shown(at, opened.zone)
    assume(all(shown(at + days * 86400, opened.zone)[1] == offset for days in (-2, -1, 1, 2)))
    within = begin <= minute < end if begin < end else not end <= minute < begin
    assert (opened.opens_at(at) == at) == within
    assert within or shown(opened.opens_at(at), opened.zone)[0] == begin


@given(hours(), INSTANTS, st.floats(0, 1))
def test_they_begin_next_within_two_days_and_not_sooner(of: tuple[Hours, int, int], at: float, share: float) -> None:
    opened, _, _ = of
    begins = opened.opens_at(at)
    assert at <= begins < at + 2 * 86400 + 7200, "of the day on which a clock is set forward nothing may be left"
    assert opened.opens_at(begins) == begins
    between = at + (begins - at) * share
    assert opened.opens_at(between) == max(begins, between)


@pytest.mark.parametrize(
    ("text", "at", "begins"),
    [
        ("2-3 Europe/Berlin", "2026-03-29 00:30", "2026-03-30 02:00"),  # there is no such hour on that day
        ("2:30-4 Europe/Berlin", "2026-03-29 00:30", "2026-03-29 03:30"),  # as long after midnight as on any other
        ("22-2:30 Europe/Berlin", "2026-10-25 02:15", "2026-10-25 02:15"),
        ("22-6 America/New_York", "2026-11-01 07:00", "2026-11-01 22:00"),
    ],
)
def test_a_clock_that_is_set(text: str, at: str, begins: str) -> None:
    opened = Hours.of(text)
    seen, due = (datetime.fromisoformat(one).replace(tzinfo=opened.zone).timestamp() for one in (at, begins))
    assert opened.opens_at(seen) == due


def test_without_a_zone_it_is_this_machines_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    at = datetime.fromisoformat("2026-07-01 12:00+00:00").timestamp()
    for zone in ("America/New_York", "Asia/Kathmandu"):
        with monkeypatch.context() as there:
            there.setenv("TZ", zone)
            time.tzset()
            assert Hours.of("22-6").opens_at(at) == Hours.of(f"22-6 {zone}").opens_at(at)
        time.tzset()


@pytest.mark.parametrize(
    "text", ["22", "22-22", "25-6", "22:60-6", "6-24:30", "10pm-6am", "22-6 Nowhere/Land", "22-6 ../x"]
)
def test_a_mistake_is_one_line(text: str) -> None:
    with pytest.raises(fyke.FykeError, match=r"^fyke\.Config: politeness\.hours = .* cannot be used: [^\n]*\Z"):
        Config(politeness={"hours": text})
    with pytest.raises(fyke.FykeError, match=r"^fyke\.Config: site\.0\.hours cannot be used"):
        Config(site=[{"match": "*", "hours": text}])
    with pytest.raises(fyke.FykeError, match="are for whole hosts"):
        Config(site=[{"match": "https://example.org/", "hours": "1-2"}])


def test_the_last_table_that_says_something_of_a_host_counts() -> None:
    tables = [
        {"match": "*.example.org", "hours": "1-2"},
        {"match": "a.example.org", "hours": "0-24"},
        {"match": "*", "user_agent_suffix": "x"},
    ]
    config = Config(politeness={"hours": "22-6"}, site=tables)
    found = HostHours(config.politeness.hours, config.site)
    hosts = "a.example.org", "b.example.org", "example.com"
    assert [found.text_of(host) for host in hosts] == ["0-24", "1-2", "22-6"]
    at = Hours.of("22-6").opens_at(1e9)
    assert found.opens_at("a.example.org", 1e9) == 1e9 and not HostHours()
    evening = Hours.of("12-13").opens_at(1e9)
    assert found.is_opening(found.opens_at("example.com", evening)) and not found.is_opening(evening)
    assert found.opens_at("example.com", 1e9) == at
    opens = found.opens_at("example.com", evening)
    found.wall_ahead_s = -1e8
    assert found.opens_at("example.com", evening + 1e8) == opens + 1e8 and found.is_opening(opens + 1e8)
