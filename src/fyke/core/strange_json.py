"""Reads JSON that strangers wrote, without losing all of it to one value.

Python refuses a text with a number of more than some thousand digits, and makes numbers of `NaN` and `Infinity`, which
are not JSON (RFC 8259, 6). Here both are null.
"""

import json
from typing import Any

MOST_DIGITS = 4000  # of a whole number; Python's own limit is 4300


def json_of(text: str, *, strict: bool = True) -> Any:
    """Return the value of `text`. If not `strict`, strings may have line ends. Raises ValueError, RecursionError."""
    return json.loads(text, strict=strict, parse_int=_whole, parse_constant=lambda _: None)


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= MOST_DIGITS else None
