"""Durations as they are typed: none of waiting is one, none of crawling is not."""

import pytest

from fyke.cli.crawling import seconds
from fyke.core.errors import ConfigurationError


def test_what_is_a_duration() -> None:
    assert [seconds(text, "--for") for text in ("90", "90s", "1.5m", "2h", "1d", None)] == [
        90,
        90,
        90,
        7200,
        86400,
        None,
    ]
    assert seconds("0s", "--wait", or_none=True) == seconds("0", "--wait", or_none=True) == 0


@pytest.mark.parametrize("text", ["0", "0s", "-1s", "nan", "inf", "soon", "", "s", "1_000", "١٢s", " 9"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a duration"):
        seconds(text, "--for")
