"""Own marks: session ids that a server writes into every link of a page, from the page's URL or newly issued.

Two answers with the same page under two session ids differ only by these marks. This module takes them out, so that
the rest can be compared. It also takes out each mark by itself, because a tag in the URL of a page may stand in the
page's links by chance. Used to learn rewrite rules, and by the crawl to verify one.

Invariant: a mark in the address of something shown (`src=...`) stays. Linear in the content, for each of at most
`MOST_MARKS` marks.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

LEAST_CHARS = 8  # of an id: a shorter text stands in a page for other reasons
MOST_MARKS = 4  # of a URL
LEAST_LINKS = 4  # of a page: fewer prove nothing
_TOKEN = re.compile(r"[0-9A-Za-z]+")
_LONG = re.compile(rf"[0-9A-Za-z]{{{LEAST_CHARS}}}")


class OwnMark(NamedTuple):
    """An id in a URL: the value of `key`, or if that is empty a segment of the path."""

    key: str
    value: str
    place: int = -1  # of the segment


def is_id(text: str) -> bool:
    """Return whether `text` may be a generated id: long, of letters and digits, with at least one digit."""
    return len(text) >= LEAST_CHARS and text.isalnum() and text.isascii() and any(map(str.isdigit, text))


def marks_of(url: str) -> Iterator[OwnMark]:
    """Yield the ids in a canonical URL: in its path (also parameters such as ;sid=...), then in its query."""
    return _marks_in(url.split("/", 3)[3])


def _marks_in(target: str) -> Iterator[OwnMark]:
    """Yield the ids in a URL from its path on."""
    path, _, query = target.partition("?")
    for place, segment in enumerate(path.split("/")):
        name, *parameters = segment.split(";")
        if any(map(is_id, _TOKEN.findall(name))):
            yield OwnMark("", name, place)
        for pair in parameters:
            key, _, value = pair.partition("=")
            if key and is_id(value):
                yield OwnMark(key, value)
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if key and is_id(value):
            yield OwnMark(key, value)


def without_marks(content: bytes, url: str) -> list[bytes]:
    """Return `content`, the decoded body of `url`, without each mark of that URL, and last without all of them."""
    found, left = [], content
    for mark in islice(marks_of(url), MOST_MARKS):
        if mark.value.encode() in left and not _shown(left, mark.value):
            found.append(_without(content, mark))
            left = _without(left, mark)
    return [*found, left] if len(found) > 1 else found


def without_issued(links: Sequence[str], own: int) -> list[str]:
    """Return `links` of a page, of which `own` different ones lead to its site, without ids that stand in as many as
    half of those: a server gives a visitor without a session a new one each time, in links to its other hosts too."""
    several = set(links)
    least = max(LEAST_LINKS, (own + 1) // 2)
    if sum(map(bool, map(_LONG.search, several))) < least:
        return [*links]
    found = Counter(mark for link in several for mark in {(key, value) for key, value, _ in _marks_in(link)})
    issued = [OwnMark(*mark) for mark, count in found.most_common(MOST_MARKS) if count >= least]
    return [_all_out(link, issued) for link in links] if issued else [*links]


def _all_out(link: str, marks: Sequence[OwnMark]) -> str:
    content = link.encode("utf-8", "surrogatepass")
    for mark in marks:
        content = _without(content, mark)
    return content.decode("utf-8", "surrogatepass")


def _shown(content: bytes, value: str) -> bool:
    """Return whether `value` is in the address of something that `content` shows."""
    addresses = re.finditer(rb"""\ssrc(?:set)?\s{0,9}=\s{0,9}["']?([^"'<>]{0,2048})""", content, re.IGNORECASE)
    return any(value.encode() in found[1] for found in addresses)


def _without(content: bytes, mark: OwnMark) -> bytes:
    if not mark.key:
        return content.replace(f"/{mark.value}/".encode(), b"/")
    pair = f"{mark.key}={mark.value}".encode()
    for before, after in ((b"?%s&amp;", b"?"), (b"?%s&", b"?"), (b"&amp;%s", b""), (b"&%s", b""), (b"?%s", b"")):
        content = content.replace(before % pair, after)
    return content.replace(b";" + pair, b"")
