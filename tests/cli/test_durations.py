"""Durations as they are typed: none of waiting is one, none of crawling is not."""

import pytest

from fyke.core.errors import ConfigurationError
from fyke.quantities import read_duration


def test_what_is_a_duration() -> None:
    typed = ("90", "90s", "1.5m", "2h", "1d")
    assert [read_duration("--for", text) for text in typed] == [90, 90, 90, 7200, 86400]
    assert read_duration("--wait", "0s", or_none=True) == read_duration("--wait", "0", or_none=True) == 0


@pytest.mark.parametrize("text", ["0", "0s", "-1s", "nan", "inf", "soon", "", "s", "1_000", "١٢s", " 9", "1 w"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a duration"):
        read_duration("--for", text)


@pytest.mark.parametrize("text", ["1e300d", "1e19"])
def test_what_is_too_much(text: str) -> None:
    with pytest.raises(ConfigurationError, match="too much; write 90s, 10m or 2h"):
        read_duration("--for", text)
