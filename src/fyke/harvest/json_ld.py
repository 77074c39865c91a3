"""JSON-LD: what a page says of itself in its scripts.

Fields of `[[extract]]` read it (`fyke.harvest.fields`), and the dates of pages for search. Invariant: never raises,
whatever a page holds, and the work is bounded. A script that is no JSON, or too long, is passed over.
"""

import re
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborNode

from fyke.core.strange_json import json_of

MOST_OBJECTS = 10_000  # in a page
MOST_JSON_CHARS = 2 << 20  # of a script: empty objects take twenty times as much

_BEFORE_JSON = re.compile(r"[\s/*]*+(?:<!--|<!\[CDATA\[)?[\s/*]*+")  # that hide a script from old browsers
_BEHIND_JSON = " \t\r\n\f/*;"


def json_ld(root: LexborNode, naming: str = "") -> Iterator[dict[str, Any]]:
    """Yield the objects by which the page describes itself: those of each script, in lists and in @graph too.

    Only scripts with the text `naming` are read.
    """
    found = 0
    for script in root.css('script[type="application/ld+json"]'):
        text = script.text()
        if len(text) > MOST_JSON_CHARS or naming not in text:
            continue
        try:
            waiting = [json_of(_bare(text), strict=False)]  # a line may end within a string
        except (ValueError, RecursionError):
            continue
        while waiting and found < MOST_OBJECTS:
            found += 1
            one = waiting.pop()
            if isinstance(one, list):
                waiting += reversed(one[:MOST_OBJECTS])
            elif isinstance(one, dict):
                yield one
                waiting.append(one.get("@graph"))


def types_of(one: dict[str, Any]) -> set[str]:
    """Return the names of the types of `one`. They may be written as addresses, such as
    `https://schema.org/Product`."""
    return {re.split("[/#:]", each)[-1] for each in as_list(one.get("@type")) if isinstance(each, str)}


def as_list(value: Any) -> list[Any]:
    """Return `value` if it is a list, otherwise a list with it alone."""
    return value if isinstance(value, list) else [value]


def _bare(text: str) -> str:
    """Return JSON without the comment or CDATA section around it."""
    text = text[_BEFORE_JSON.match(text).end() :].rstrip(_BEHIND_JSON)  # type: ignore[union-attr]
    for end in ("-->", "]]>"):
        text = text.removesuffix(end).rstrip(_BEHIND_JSON)
    return text
