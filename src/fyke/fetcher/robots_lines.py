"""The field and value of one line of a robots.txt (RFC 9309, section 2.2).

Called by `fyke.fetcher.robots_rules` only. It is as tolerant as Google's parser: of a forgotten colon, the usual
misspellings, any line ends, a byte order mark. Anything after a NUL is ignored. Differs: blanks beyond ASCII,
and characters that nobody sees, are blanks around a field and its value, because rules are copied out of pages. A byte
order mark in the midst of a file is none of them, as in Google's suite.

Invariant: line numbers are those a text editor shows, whatever the line ends.
"""

import codecs
import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

MAX_BYTES = 516 << 10  # RFC 9309, 2.5: at least 500 KiB; the rest is room for the line that crosses it
MOST_TEXT_CHARS = 200  # kept of a line, to be shown: each visit that it forbids has a copy
_MARKED_BYTES = 64  # among which UTF-16 has a zero, because letters of robots.txt have one
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",  # begins like UTF-16's
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# By which of the first four bytes are zero if the first letters are ASCII (RFC 4627, section 3).
_BY_ZEROS: dict[tuple[bool, ...], str] = {
    (False, True, False, True): "utf-16-le",
    (True, False, True, False): "utf-16-be",
    (False, True, True, True): "utf-32-le",
    (True, True, True, False): "utf-32-be",
}

_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_BLANK = " \t\v\f"
# What is seen as a blank, or not at all: its bytes in UTF-8. No other character begins or ends as one of these does.
_UNSEEN: tuple[tuple[str, ...], ...] = (
    (f"[{_BLANK}]",),
    ("\xc2", "[\xa0\xad]"),
    ("\xe2", "\x80", "[\x80-\x8f\xa8-\xaf]"),
    ("\xe2", "\x81", "[\xa0-\xaf]"),
    ("\xe3", "\x80", "\x80"),
)
_BEFORE = re.compile(rf"\A(?:\xa0|{'|'.join(map(''.join, _UNSEEN))})++")  # A0: a blank in Latin-1, and begins no UTF-8
_BEHIND = re.compile(rf"\A(?:{'|'.join(''.join(reversed(parts)) for parts in _UNSEEN)})++")  # of the line reversed
_FORGOTTEN_COLON = re.compile(r"([^ \t]++)[ \t]++([^ \t]++)")
_TOKEN = re.compile(r"[A-Za-z_-]*")


class Field(Enum):
    """The fields that mean something to a crawler."""

    USER_AGENT = 0
    ALLOW = 1
    DISALLOW = 2
    SITEMAP = 3
    CRAWL_DELAY = 4


class Line(NamedTuple):
    """One line with a field we know; `text` is the beginning of the line as written (Latin-1)."""

    number: int
    field: Field
    value: str
    text: str


# Beginnings, as in Google's parser: `Disallowed:` and `useragent:` are what they look like.
_BEGINNINGS = (
    (Field.USER_AGENT, ("user-agent", "useragent", "user agent")),
    (Field.ALLOW, ("allow",)),
    (Field.DISALLOW, ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")),
    (Field.SITEMAP, ("sitemap", "site-map")),
    (Field.CRAWL_DELAY, ("crawl-delay", "crawldelay", "crawl delay")),
)
_MORE_MARKS = re.compile(r"\A(?:\xef\xbb\xbf)+(?=\xef\xbb\xbf)")  # before the last; files with one each were joined
_EXACT = {name: field for field, names in _BEGINNINGS for name in names}


def lines_of(body: bytes) -> Iterator[Line | None]:
    """Yield the lines of `body` in order; None for those that say nothing. Never raises, whatever the bytes."""
    text = _bytes_of(body[:MAX_BYTES]).decode("latin-1")
    text = _MORE_MARKS.sub("", text, count=1)
    for mark in "\xef\xbb\xbf":  # whole or in part, at the beginning only
        if not text.startswith(mark):
            break
        text = text[1:]
    if len(body) > MAX_BYTES:  # drop a line that was cut in the middle: its meaning is unknown
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    for number, match in enumerate(_LINE.finditer(text), 1):
        line = match[1]
        if not line or line[0] == "#":
            yield None
            continue
        key, value = _take_apart(line)
        field = _EXACT.get(key) or _field_of(key)
        yield None if field is None else Line(number, field, value, line[:MOST_TEXT_CHARS])


def _bytes_of(body: bytes) -> bytes:
    """Return `body` in UTF-8 if it is UTF-16 or UTF-32, as some editors save, otherwise as it is. A byte order mark
    tells, if the zeros it implies are there, so that a mark that lies loses no rules. Without one the zeros of the
    first letters tell."""
    for mark, coding in _MARKS.items():
        if body.startswith(mark) and b"\0" in body[len(mark) : _MARKED_BYTES]:
            return body[len(mark) :].decode(coding, "replace").encode("utf-8", "replace")
    guessed = _BY_ZEROS.get(tuple(byte == 0 for byte in body[:4]))
    return body.decode(guessed, "replace").encode("utf-8", "replace") if guessed else body


def _take_apart(line: str) -> tuple[str, str]:
    """Return the key (lower case) and value of a line; two empty strings if it has no separator."""
    said = line.partition("#")[0].partition("\0")[0]
    key, colon, value = said.partition(":")
    if colon:
        return _stripped(key).lower(), _stripped(value)
    match = _FORGOTTEN_COLON.fullmatch(said.strip(_BLANK))
    return (match[1].lower(), match[2]) if match else ("", "")


def _stripped(text: str) -> str:
    """Return `text` without blanks and unseen characters around it."""
    if text.isascii():
        return text.strip(_BLANK)
    text = _BEFORE.sub("", text)
    return _BEHIND.sub("", text[::-1])[::-1]


def _field_of(key: str) -> Field | None:
    for field, beginnings in _BEGINNINGS:
        if key.startswith(beginnings):
            return field
    return None


def product_token(value: str) -> str:
    """Return the product token that a User-agent value begins with, in lower case; `*` for everyone.

    `FooBot/2.1 (news)` names `foobot`, and so does `FooBot Images`.
    """
    if value.startswith("*") and (len(value) == 1 or value[1] in _BLANK):
        return "*"
    match = _TOKEN.match(value)
    return match[0].lower() if match else ""
