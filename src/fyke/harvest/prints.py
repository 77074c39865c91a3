"""Numbers by which pages count as the same when rewrite rules are learned and verified.

A token in a script, a hidden field, an advertisement, a menu change the bytes of the same page at every request. So an
HTML page has the number of its title and words as `same_text` reads them, what it shows (`src`, `alt`), where it leads
(`href`), and data in it. A page with few words, or not of HTML, has the number of its bytes. Links to the site to which
most lead, if several do, count from their path on, so that a copy which names itself in them has the same number. They
count without a session id that is issued to every visitor without one.

Links of menus beside a page are kept apart (`Print.frame`), with `iframe` sources on its own host and hidden links. The
other pages of a site tell a list in a `nav` from a menu.

Invariant: pages of the same bytes have the same numbers; linear in the bytes.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import NamedTuple
from urllib.parse import unquote

import xxhash

from fyke.core.markup import TakesLong, has_many_tags, tree_of
from fyke.core.own_marks import LEAST_LINKS, is_id, without_issued, without_marks
from fyke.core.pace import haste
from fyke.core.pages import HTML_TYPES
from fyke.core.urls import main_name
from fyke.harvest.same_text import BESIDE, MOST_TEXT_BYTES, NEVER

LEAST_WORDS = 20
MOST_FRAME = 512  # links that count
LEAST_TOKEN = 12  # characters of a value in them that may be a session's
_BESIDE = ",".join(f"{name} [href]" for name in BESIDE.split(","))
_UNSEEN = "iframe[src],[hidden] [href],noscript [href]"
_NOT_READ = f"noscript,{NEVER}"  # counters in `<noscript>` change at each visit
_DATA = 'script[type$="json"]'
_SHOWN = ("src", "srcset", "data", "poster", "alt")
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//([^/?#]*)", re.IGNORECASE)
_PAIR = re.compile(r"[?&;][^=&;#?]*=([^&;#]*)")


Place = tuple[str, str, str]  # of a number in a text: two words before it (<) or after it (>), "0" for a number


class Print(NamedTuple):
    """A page's number, the links beside it, and its words."""

    number: int
    frame: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()


def prints_of(content: bytes, media_type: str, url: str) -> list[int]:
    """Return numbers for the decoded body of `url`, and for it without the marks of that URL (`core/own_marks`).

    The first is the page's own. Two pages are alike if they have a number in common.
    """
    return [each.number for each in whole_prints(content, media_type, url)]


def whole_prints(content: bytes, media_type: str, url: str, without: Container[Place] = frozenset()) -> list[Print]:
    """Return the same as `prints_of`, with the links beside the page and its words. Numbers at the places `without` are
    left out."""
    return [_print(each, media_type, url, without) for each in (content, *without_marks(content, url))]


def leave_out(words: list[str], without: Container[Place]) -> None:
    """Write 0 for the numbers of `words` that are at the places `without`."""
    for at, place in numbers_among(words):
        if place in without:
            words[at] = "0"


def numbers_among(words: Sequence[str]) -> Iterator[tuple[int, Place]]:
    """Yield the words with digits, by their position, with each of their places, which name a word: what stands on one
    side may be of another part of the page."""
    plain = ["", "", *("0" if any(map(str.isdigit, word)) else word for word in words), "", ""]
    for at, word in enumerate(plain[2:-2]):
        if word == "0":
            for place in (("<", plain[at], plain[at + 1]), (">", plain[at + 3], plain[at + 4])):
                if not {"", "0"} >= {*place[1:]}:
                    yield at, place


def number_of(content: bytes, media_type: str) -> int:
    """Return the xxh3-64 of what a page says and shows, or of its bytes if it takes long to parse."""
    return _print(content, media_type, "").number


def _print(content: bytes, media_type: str, url: str, without: Container[Place] = frozenset()) -> Print:
    if media_type in HTML_TYPES and len(content) <= MOST_TEXT_BYTES and not has_many_tags(content):
        with suppress(TakesLong), haste():
            return _read(content, url, without)
    return Print(xxhash.xxh3_64_intdigest(content))


def _read(content: bytes, url: str, without: Container[Place]) -> Print:
    """Return the print of an HTML page. Its number is of the words, in order, then what is shown and linked; of the
    bytes if words are few."""
    tree = tree_of(content)
    if tree.body is None:
        return Print(xxhash.xxh3_64_intdigest(content))
    title = tree.css_first("title")
    data = [node.text() for node in tree.css(_DATA)]
    unseen = [node.attributes.get("src" if node.tag == "iframe" else "href") or "" for node in tree.body.css(_UNSEEN)]
    for node in reversed(tree.body.css(_NOT_READ)):  # inner nodes first
        node.decompose()
    led = _led(filter(None, (node.attributes.get("href") for node in tree.body.css("[href]"))))
    links = (node.attributes.get("href") for node in tree.body.css(_BESIDE))
    inner = (link for link in unseen if _is_within(link, url))
    frame = islice((led.get(link, link) for link in chain(inner, links) if link), MOST_FRAME)
    for node in reversed(tree.body.css(BESIDE)):
        node.decompose()
    words = tree.body.text(separator=" ").split()
    if without:
        leave_out(words, without)
    said = [title.text() if title is not None else "", *words]
    whole = content
    if len(words) >= LEAST_WORDS:
        nodes = tree.body.css("[src],[srcset],[data],[poster],[href]")
        shown = [value for node in nodes for name in _SHOWN if (value := node.attributes.get(name))]
        leading = [led.get(link, link) for node in nodes if (link := node.attributes.get("href"))]
        whole = "\0".join([*said, *data, *shown, *leading]).encode("utf-8", "surrogatepass")
    return Print(xxhash.xxh3_64_intdigest(whole), _leading(frame, url), tuple(said))


def _is_within(link: str, url: str) -> bool:
    """Return whether `link` on the page `url` leads to its own host. Advertisements lead elsewhere."""
    elsewhere = _HOST.match(link.strip())
    return elsewhere is None or elsewhere[1].lower() == url.partition("//")[2].partition("/")[0]


def _led(links: Iterable[str]) -> Mapping[str, str]:
    """Return the part that counts of each of the `links`: from its path on if it has no host, or that of the site to
    which most lead."""
    own: dict[str, str] = {}
    of_site: dict[str, dict[str, str]] = {}
    links = dict.fromkeys(links)
    for link in links:
        host = _HOST.match(link)
        if host is None:
            own[link] = link
        else:
            of_site.setdefault(main_name(host[1].lower()), {})[link] = link[host.end() :] or "/"
    most = max(of_site.values(), key=len, default={})
    if len(most) >= LEAST_LINKS:
        own |= most
    leading = [own.get(link, link) for link in links]
    return dict(zip(links, without_issued(leading, len({*own.values()})), strict=True))


def _leading(links: Iterable[str], url: str) -> frozenset[str]:
    """Return `links` beside the page `url` without values that hold a token or name the page to come back to. Links to
    the page itself are left out."""
    target = "/" + url.split("/", 3)[3] if url else ""
    own = {url, target, "?" + target.partition("?")[2]}
    plain = (link.partition("#")[0] for link in links)
    return frozenset(_PAIR.sub(lambda pair: _kept(pair, own), link) for link in plain if link and link not in own)


def _kept(pair: re.Match[str], own: Container[str]) -> str:
    value = pair[1]
    is_token = len(value) >= LEAST_TOKEN and is_id(value) and not value.isdigit()
    return "" if is_token or unquote(value) in own else pair[0]
