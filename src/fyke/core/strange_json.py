"""JSON that strangers wrote: as Python reads it, but for what costs all that stands beside it.

Python refuses numbers of more than some thousand digits, with all of the text that they stand in, and makes numbers of
`NaN` and `Infinity`, which no standard of JSON has (RFC 8259, 6). Here both are null.
"""

import json
from typing import Any

MOST_DIGITS = 4000  # of a whole number; Python's own limit is 4300


def json_of(text: str, *, strict: bool = True) -> Any:
    """The value of `text`; not `strict`, line ends may stand within its strings. Raises ValueError, RecursionError."""
    return json.loads(text, strict=strict, parse_int=_whole, parse_constant=lambda _: None)


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= MOST_DIGITS else None
