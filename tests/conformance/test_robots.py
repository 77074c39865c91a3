"""Google's suite for its robots.txt parser: what it says of RFC 9309 holds here too."""

import base64
import json
from typing import Any

from conformance.oracles import ORACLES, judge
from fyke.core.urls import canonical, split
from fyke.fetcher.robots_lines import Field, lines_of, product_token
from fyke.fetcher.robots_rules import RobotsRules

Case = dict[str, Any]

_ESCAPED = "RFC 9309, 2.2.2: a rule and a URL are compared with both escaped; Google's caller escapes the URL before"
_CUT = "Google cuts lines at 16 KiB; the standard knows no such limit"
POLICY = {
    "ID_Encoding 3": _ESCAPED,
    "ID_Encoding 5": _ESCAPED,
    "ID_Encoding 6": "RFC 9309, 2.2.2: an escaped unreserved character is that character",
    "GoogleOnly_IndexHTMLisDirectory 1": "to the standard index.html is a file like any other",
    "GoogleOnly_LineTooLong 2": _CUT,
    "GoogleOnly_LineTooLong 4": _CUT,
    "GoogleOnly_LineTooLong 5": _CUT,
    "TestGetPathParamsQuery 15": "rules are asked of URLs, and a path alone is none",
}


def cases() -> dict[str, Case]:
    """By name: the test's, and the number of the assertion in it."""
    found: dict[str, Case] = {}
    for line in (ORACLES / "robots-google" / "cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        number = sum(name.rpartition(" ")[0] == case["test"] for name in found) + 1
        found[f"{case['test']} {number}"] = case
    return found


def body(case: Case) -> bytes:
    return base64.b64decode(case["robots_b64"]) if "robots_b64" in case else case["robots_txt"].encode()


def target(url: str) -> str:
    known = canonical(url) or canonical(f"http://{url}")
    return split(known).target if known else "/"


def found(case: Case) -> object:
    """What we say where the suite says `expect`."""
    match case["kind"]:
        case "allowed":
            return RobotsRules.parse(body(case), case["user_agent"]).verdict(target(case["url"])).allowed
        case "path":
            return target(case["url"])
        case "agent":
            return bool(case["user_agent"]) and product_token(case["user_agent"]) == case["user_agent"].lower()
        case "escape":
            rule = RobotsRules.parse(f"user-agent: x\ndisallow: {case['pattern']}\n".encode(), "x")
            return "another" if rule.verdict(case["expect"]).allowed else case["expect"]
    lines = [line for line in lines_of(body(case)) if line is not None]
    match case["field"]:
        case "valid_directives":
            return sum(line.field in (Field.USER_AGENT, Field.ALLOW, Field.DISALLOW) for line in lines)
        case "unknown_directives":
            said = [line for line in body(case).splitlines() if line.strip()]
            return len(said) - len(lines)
        case "last_line_seen":
            return lines[-1].number
        case "sitemap":
            return RobotsRules.parse(body(case), "foo").sitemaps[0]
    raise AssertionError(case)


def test_googles_suite() -> None:
    problems = {
        name: "" if (ours := found(case)) == case["expect"] else f"{ours} where {case['expect']} is expected: {case}"
        for name, case in cases().items()
    }
    judge(problems, POLICY)
