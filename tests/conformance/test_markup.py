"""Web platform tests of attributes that hold addresses: refreshes and candidates of pictures."""

import json
from typing import Any

from conformance.oracles import ORACLES, judge
from fyke.core.urls import canonical
from fyke.harvest.headers import refresh_target
from fyke.harvest.requisites import srcset

PAGE = "http://web-platform.test/refresh.sub.html"

SRCSET_POLICY = dict.fromkeys(
    [
        "'data:,a 1x 1x (, data:,b'",
        *(f"'data:,a {descriptors}'" for descriptors in ("1w 1w", "1w 1x", "1x 1w", "1h 1h", "1h 1x", "1h 1w 1x")),
        *(f"'data:,a {descriptors}'" for descriptors in ("1x 1w 1h", "1h", "1h foo", "foo 1h", "0w", "1w")),
        *(f"'data:,a {descriptors}'" for descriptors in ("1x -0x", "1x 1.5e1x", "1x 1.0x", "1w 0h")),
    ],
    "an address is an address, whatever its descriptors say; a browser shows none there",
)


def rows(name: str) -> Any:
    return json.loads((ORACLES / "html-wpt" / name).read_text())


def test_refreshes() -> None:
    problems = {}
    for row in rows("meta-refresh.json"):
        found = refresh_target(row["input"])
        ours = canonical(found, PAGE) if found else PAGE
        theirs = canonical(row["expected"][1], PAGE) if row["expected"] else PAGE
        problems[repr(row["input"])] = "" if ours == theirs else f"{found!r} where {row['expected']} is expected"
    judge(problems)


def test_candidates() -> None:
    problems = {}
    for row in rows("srcset.json"):
        found = list(srcset(row["srcset"]))
        right = row["selected"] in found if row["selected"] else not found
        problems[repr(row["srcset"])] = "" if right else f"{found} where {row['selected']!r} is expected"
    judge(problems, SRCSET_POLICY)
