"""Bytes mean to us what they mean to a browser, in every encoding that a page may have."""

import codecs
import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.harvest.charset import charset_of
from fyke.harvest.decoders import MOST_FAULTS, install
from serve.kit import CHROMIUM, needs_browser

install()

SINGLE = [
    "ibm866", *(f"iso-8859-{number}" for number in (*range(2, 9), 10, 13, 14, 15, 16)), "iso-8859-8-i", "koi8-r",
    "koi8-u", "macintosh", "windows-874", *(f"windows-{number}" for number in range(1250, 1259)), "x-mac-cyrillic",
    "x-user-defined", "utf-16be", "utf-16le",
]  # fmt: skip
ESCAPES = [b"", b"\x1b$B", b"\x1b$@", b"\x1b(J", b"\x1b(I", b"\x1b(B"]
PAIRS = [bytes([lead, trail]) for lead in range(0x81, 0xFF) for trail in range(0x40, 0xFF)]
# Characters that differ: of Big5, two full-width ones, and four that Chromium itself gets wrong.
DIFFERING = {"big5": 6, "euc-jp": 1, "gb18030": 1}
_DECODE = """([label, all]) => JSON.stringify(all.split(" ").map(hex => new TextDecoder(label).decode(
    Uint8Array.from(hex.match(/../g), byte => parseInt(byte, 16)))))"""


def sequences(label: str) -> list[bytes]:
    """The byte sequences of one character, each with a letter behind it."""
    singles = [bytes([byte]) for byte in range(0x100)]
    if label == "iso-2022-jp":
        found = [escape + bytes([a, b]) for escape in ESCAPES for a in range(0x21, 0x7F) for b in range(0x21, 0x7F)]
    elif label in SINGLE:
        found = []
    else:
        found = [pair for pair in PAIRS if pair not in (b"\xfe\xff", b"\xff\xfe")]
    if label == "euc-jp":
        found += [b"\x8f" + pair for pair in PAIRS if min(pair) >= 0xA1]
    if label == "gb18030":
        found += [bytes([a, b, c, d]) for a in (0x81, 0x84, 0x90, 0xE3) for b in range(0x30, 0x3A)
                  for c in range(0x81, 0xFF) for d in range(0x30, 0x3A)]  # fmt: skip
    return [one + b"x" for one in singles + found]


@pytest.fixture(scope="module")
def in_chromium() -> Any:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        yield lambda label, every: json.loads(page.evaluate(_DECODE, [label, " ".join(map(bytes.hex, every))]))
        browser.close()


@needs_browser
@pytest.mark.parametrize("label", [*SINGLE, "gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr", "iso-2022-jp"])
def test_characters_are_those_of_a_browser(label: str, in_chromium: Callable[[str, list[bytes]], list[str]]) -> None:
    every = sequences(label)
    wrong = [
        (data, theirs, ours)
        for data, theirs in zip(every, in_chromium(label, every), strict=True)
        if "\ufffd" not in theirs and theirs != (ours := data.decode(charset_of(data, label), "replace"))
    ]
    assert len(wrong) <= DIFFERING.get(label, 0), wrong[:9]


@given(
    st.sampled_from(["euc-jp", "iso-2022-jp", "gbk", "big5"]),
    st.text("ab漢字①㈱〜∥−か中文€•\n", max_size=30),
    st.lists(st.integers(0, 60), max_size=5),
)
def test_in_pieces_as_in_one_go(label: str, text: str, cuts: list[int]) -> None:
    shift_jis = text.encode("cp932", "ignore")
    data = {"euc-jp": "euc_jp", "iso-2022-jp": "iso2022_jp_ext", "gbk": "gb18030", "big5": "big5hkscs"}[label]
    content = (
        text.encode(data, "ignore") + (b"\xad\xa1\xa1" if label == "euc-jp" else b"\x1b$B-!\x1b(B") + shift_jis[:1]
    )
    content += b"x" * 3
    codec = charset_of(content, label)
    decoder = codecs.getincrementaldecoder(codec)("replace")
    at = [0, *sorted(cuts), len(content)]
    found = "".join(decoder.decode(content[a:b]) for a, b in pairwise(at)) + decoder.decode(b"", True)
    assert found == content.decode(codec, "replace")


@pytest.mark.parametrize("data", [b"\xad\xa1", b"\xad\xff", b"\x80", b"\xa1\xc1", b"\x80a"])
@pytest.mark.parametrize("label", ["euc-jp", "gbk", "big5", "iso-2022-jp"])
def test_no_bytes_take_long(label: str, data: bytes) -> None:
    content = data * ((512 << 10) // len(data))
    few = content[: MOST_FAULTS * len(data) // 2]
    codec = charset_of(content, label)
    begin = time.thread_time()
    assert content.decode(codec, "replace")
    assert time.thread_time() - begin < 0.1
    assert few.decode(codec, "replace")
