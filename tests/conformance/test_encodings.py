"""html5lib's tests of sniffing, and the recorded calls of w3lib's: pages have the characters browsers see."""

import base64
import codecs
import json
from typing import Any

from conformance.oracles import ORACLES, judge
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, visit_to
from fyke.harvest.charset import charset_of, codec_of
from fyke.harvest.decoders import install
from fyke.harvest.media import label_of

install()

_SCRIPT = "scripts are not run"
HTML5LIB_POLICY = {"encoding/scripted/tests1.dat 1": _SCRIPT}
_UTF_32 = "no browser reads UTF-32"
W3LIB_POLICY = {
    "read_bom 3": _UTF_32,
    "read_bom 4": _UTF_32,
    "resolve_encoding 36": "latin-1 is no label of the Encoding Standard; latin1 is",
    "html_to_unicode 60": _UTF_32,
    "html_to_unicode 61": _UTF_32,
    "html_to_unicode 62": _UTF_32,
    "html_to_unicode 63": _UTF_32,
    "html_to_unicode 64": "to the Encoding Standard utf-16 without a byte order mark is little-endian",
    "html_to_unicode 65": _UTF_32,
}


def test_html5lib() -> None:
    problems = {}
    folder = ORACLES / "html5lib"
    for file in sorted([*folder.rglob("*.dat"), *folder.rglob("chardet/*.txt")]):
        for number, block in enumerate(file.read_bytes().split(b"#data\n")[1:], 1):
            data, _, label = block.rpartition(b"\n#encoding\n")
            ours, theirs = charset_of(data, html=True), codec_of(label.strip().decode())
            # A page of ASCII that declares nothing is UTF-8 to us, with the same characters.
            same = ours == theirs or (ours == "utf-8" and theirs == "windows-1252" and data.isascii())
            same |= ours == "utf-8-sig" and theirs == "utf-8"
            name = f"{file.relative_to(folder)} {number}"
            problems[name] = "" if same else f"{ours} where {theirs} is expected: {data[:200]!r}"
    judge(problems, HTML5LIB_POLICY)


def given(argument: Any) -> Any:
    return base64.b64decode(argument["b64"]) if isinstance(argument, dict) else argument


def same_codec(ours: str | None, theirs: str | None) -> bool:
    if ours is None or theirs is None:
        return ours == theirs
    return codecs.lookup(ours.removeprefix("x-whatwg-")).name == codecs.lookup(theirs).name


def problem(case: dict[str, Any]) -> str:
    """What is wrong with our answer to a recorded call."""
    result = case["result"]
    arguments = [given(argument) for argument in case["args"]]
    match case["f"]:
        case "resolve_encoding":
            ours = codec_of(arguments[0])
            return "" if same_codec(ours, result) else f"{ours}"
        case "http_content_type_encoding":
            ours = codec_of(label(arguments[0]))
            return "" if same_codec(ours, result) else f"{ours}"
        case "html_body_declared_encoding":
            body = arguments[0].encode() if isinstance(arguments[0], str) else arguments[0]
            ours = charset_of(body, html=True)
            return "" if same_codec(ours, result or "utf-8") else f"{ours}"
        case "read_bom":
            ours = charset_of(arguments[0])
            marked = {"utf-16-be": "utf-16", "utf-16-le": "utf-16", "utf-8": "utf-8-sig", None: "utf-8"}
            return "" if ours == marked.get(result[0], result[0]) else f"{ours}"
        case "html_to_unicode":
            header, body = arguments
            text = body.decode(charset_of(body, label(header or ""), html=True), "replace")
            return "" if text == result[1] else f"{text!r}"
    raise AssertionError(case)


def label(header: str) -> str:
    head = f"HTTP/1.1 200 OK\r\n{header}\r\n\r\n".encode()
    return label_of(Exchange(visit_to("http://h/"), Outcome.OK, 0.0, 0.0, head=head))


def test_w3lib() -> None:
    problems = {}
    for number, line in enumerate((ORACLES / "charset" / "w3lib.jsonl").read_text().splitlines(), 1):
        case = json.loads(line)
        wrong = problem(case)
        args = [given(a) for a in case["args"]]
        problems[f"{case['f']} {number}"] = (
            f"{wrong} where {case['result']} is expected: {args!r:.300}" if wrong else ""
        )
    judge(problems, W3LIB_POLICY)
