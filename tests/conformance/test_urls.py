"""The URL Standard's own tests: every address is what browsers make of it, in our canonical form, or none.

The set also has tests of setters, which a crawler has no use for, and of the length of names, which is for DNS.
"""

import json
import re
from typing import Any

from conformance.oracles import ORACLES, judge
from fyke.core.urls import SCHEMES, canonical, split
from fyke.harvest.charset import codec_of
from fyke.harvest.queries import with_queries_encoded

Case = dict[str, Any]

_UNRESERVED = re.compile(r"%(2[DE]|3\d|[46][1-9A-F]|[57][0-9A]|5F|7E)")

_SURROGATES = "a lone surrogate is no text: no page that was decoded holds one"
POLICY = {
    "'gopher://foo:70/' on None": "browsers forgot gopher and its port; a default port is not written",
    r"'http://example.com/\ud800\U000107fe\udfff\ufdd0\ufdcf\ufdef\ufdf0\ufffe\uffff?\ud800\U000107fe\udfff\ufdd0\ufdcf\ufdef\ufdf0"
    r"\ufffe\uffff' on None": _SURROGATES,
}
_TOO_LONG = ".".join(["0123456789" * 5] * 4 + [("0123456789" * 5)[:49]])
HOSTS_POLICY = {
    "''": "the case is of names alone; as an address, https:///x is https://x/",
    f"'{_TOO_LONG}.xn--zca'": "no name in the DNS is longer than 255 bytes",
    rf"'{_TOO_LONG}.\xdf'": "no name in the DNS is longer than 255 bytes",
}


def rows(name: str) -> list[Any]:
    return [row for row in json.loads((ORACLES / "url-wpt" / name).read_text()) if isinstance(row, dict)]


def tidy(target: str) -> str:
    """Escapes in capitals, of unreserved characters none (RFC 3986, 6.2.2)."""
    upper = re.sub(r"%[0-9a-fA-F]{2}", lambda match: match[0].upper(), target)
    return _UNRESERVED.sub(lambda match: chr(int(match[1], 16)), upper)


def expected(case: Case) -> str | None:
    """The canonical form of what the case says: no fragment, no credentials, an empty path as `/`."""
    if case.get("failure") or case["protocol"][:-1] not in SCHEMES or not case["host"]:
        return None
    search = "" if case["search"] == "?" else case["search"]
    return f"{case['protocol']}//{case['host']}{tidy((case['pathname'] or '/') + search)}"


def test_addresses() -> None:
    problems = {}
    for name in (
        "urltestdata.json",
        "urltestdata-javascript-only.json",
        "ada_extra_urltestdata.json",
        "ada_long_urltestdata.json",
    ):
        for case in rows(name):
            ours, theirs = canonical(case["input"], case.get("base")), expected(case)
            if ours is not None and split(ours).scheme not in SCHEMES:
                ours = None  # to browsers the host of other schemes is opaque, to us a name
            key = f"{case['input']!a} on {case.get('base')!a}"
            problems[key] = "" if ours == theirs else f"{ours!a} where {theirs!a} is expected"
    judge(problems, POLICY)


def test_names_of_hosts() -> None:
    problems = {}
    for name in ("IdnaTestV2.json", "IdnaTestV2-removed.json", "toascii.json"):
        for case in rows(name):
            url = canonical(f"https://{case['input']}/x")
            ours = url.removeprefix("https://").partition("/")[0] if url else None  # parts have no dots at its end
            problems[f"{case['input']!a}"] = (
                "" if ours == case["output"] else f"{ours!a} where {case['output']!a} is expected"
            )
    judge(problems, HOSTS_POLICY)


def test_queries_in_the_encoding_of_the_page() -> None:
    problems = {}
    for case in rows("percent-encoding.json"):
        for label, output in case["output"].items():
            codec = codec_of(label)
            assert codec is not None
            (href,) = with_queries_encoded([f"?{case['input']}"], "http://h/", codec)
            ours, theirs = canonical(href, "http://h/"), tidy(f"http://h/?{output}")
            problems[f"{case['input']!a} in {label}"] = "" if ours == theirs else f"{ours} where {theirs} is expected"
    judge(
        problems, {"'\\x0eA' in iso-2022-jp": "links of ASCII characters are left alone, whatever the page's encoding"}
    )
