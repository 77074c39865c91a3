"""What a person types is read as it was meant, what is written is read back, and nonsense is named."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fyke.core.errors import ConfigurationError
from fyke.quantities import (
    bits_text,
    bytes_text,
    count_mark,
    count_text,
    number,
    read_bytes,
    read_count,
    read_share,
    read_speed,
    share_text,
    speed_text,
    time_text,
)

NUMBERS = st.floats(1, 999, allow_nan=False).map(lambda value: round(value, 4))
BYTES = {"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@pytest.mark.parametrize(
    ("text", "value"),
    [("8e9", 8e9), ("8B", 8e9), ("500M", 500e6), ("3100", 3100), ("1.5e3", 1500), (".5k", 500), ("2 T", 2e12)],
)
def test_counts(text: str, value: float) -> None:
    assert read_count("--pages", text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("8GB", 8e9), ("8GiB", 8 * 2**30), ("8G", 8e9), ("21.2kB", 21.2e3), ("110", 110), ("1e9", 1e9)],
)
def test_sizes(text: str, value: float) -> None:
    assert read_bytes("--disk", text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("675MB/s", 675e6), ("675MiB/s", 675 * 2**20), ("1Gbit/s", 125e6), ("100 Mbit/s", 12.5e6)]
)
def test_speeds(text: str, value: float) -> None:
    assert read_speed("--speed", text) == value


def test_shares() -> None:
    assert [read_share("--share", text) for text in ("0.15", "1/9", "1")] == [0.15, 1 / 9, 1]


@pytest.mark.parametrize(
    "text", ["", "-1", "0", "nan", "inf", "1e999", "1e30", "8X", "8 G B", "1_000", "1,000", "٣", "e9"]
)
@pytest.mark.parametrize("reader", [read_count, read_bytes, read_speed, read_share])
def test_nonsense_is_named(reader: object, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^--it {re.escape(text)}: .*; write "):
        reader("--it", text)  # type: ignore[operator]


@pytest.mark.parametrize("text", ["99999999999999999999999", "1e30", "1e999"])
def test_what_is_too_much_is_no_nonsense(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^--pages {text}: too much; write 8e9"):
        read_count("--pages", text)


@pytest.mark.parametrize("text", ["2", "9/1", "1/0", "/3", "1/2/3", "15 %"])
def test_no_share(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a share"):
        read_share("--share", text)


@pytest.mark.parametrize("text", ["675", "675MB", "675mb/s", "1Gb/s"])
def test_a_speed_without_a_clear_unit_is_not_guessed(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a speed"):
        read_speed("--speed", text)


@given(value=NUMBERS, unit=st.sampled_from(sorted(BYTES)), space=st.sampled_from(["", " "]))
def test_number_and_unit_are_multiplied(value: float, unit: str, space: str) -> None:
    assert read_bytes("--disk", f"{value}{space}{unit}") == value * BYTES[unit]
    assert read_speed("--speed", f"{value}{space}{unit}/s") == value * BYTES[unit]


@given(value=st.floats(1, 9.9e17))
@example(999.6)
@example(999_499.0)
@example(1e6)
def test_what_is_written_is_read_back(value: float) -> None:
    """But for the digits that rounding took."""
    close = pytest.approx(value, rel=0.0051)
    assert read_bytes("--disk", bytes_text(value)) == close
    assert read_speed("--speed", speed_text(value)) == close
    assert read_speed("--network", bits_text(value)) == close
    assert read_count("--pages", count_mark(value).replace(",", "")) == close


@given(value=st.floats(1e-3, 1e14))
def test_three_digits_at_least(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


def test_words() -> None:
    assert [count_text(value) for value in (50_000, 8e9, 1.5e6, 8e12)] == [
        "50,000",
        "8 billion",
        "1.5 million",
        "8 trillion",
    ]
    assert [share_text(value) for value in (0.15, 2.471)] == ["15 %", "247 %"]
    assert [number(value) for value in (4192.44, 0.18888, 2.7083, 99.96)] == ["4,192", "0.189", "2.71", "100"]
    assert [time_text(value) for value in (12, 600, 18_000, 2.58e6, 6e12)] == [
        "12 s", "10 minutes", "5 hours", "29.9 days", "190,129 years"
    ]  # fmt: skip
