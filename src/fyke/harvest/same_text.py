"""Does a page say what it said? A token, a time in a script, an advertisement change bytes, but are no change.

Asked by the harvest for pages that have a copy in the archive. A page with the bytes of its copy says the same if its
head means the same: a media type, a charset or a robots directive may be new. Of a page with other bytes it compares
also title and words, which a reader comes for, without scripts, navigation, footers, asides and elements named as
advertisements. Content that never stays (Olston and Pandey, Recrawl scheduling based on information longevity, WWW
2008) is not worth a visit. If it counted, such a page would seem to change at every visit, and take the visits of
others.

Invariant: linear in the bytes, at most `MOST_TEXT_BYTES` of each version.
"""

from collections.abc import Callable
from dataclasses import replace

from fyke.core.decoding import decode_body, expected_steps
from fyke.core.document import Document
from fyke.core.markup import TakesLong, has_many_tags, tree_of
from fyke.core.outcomes import Outcome
from fyke.core.pace import haste
from fyke.core.pages import HTML, HTML_TYPES, Page
from fyke.core.visits import SAME_TEXT, Earlier, Exchange
from fyke.core.xhtml import written_out
from fyke.harvest.charset import codec_of
from fyke.harvest.headers import said_of_links
from fyke.harvest.media import said_of_kind

CopyOf = Callable[[Earlier, int], tuple[bytes, bytes] | None]  # head and body of the newest copy, if no longer

MOST_TEXT_BYTES = 256 << 10
MOST_STEPS = 50_000  # to decode a copy
_AD_NAMES = ("ad", "ads", "advert", "advertisement", "adsbygoogle", "sponsored", "banner")
_ROBOTS = "x-robots-tag"
BESIDE = "nav,footer,aside"
NEVER = ",".join(
    [
        "script",
        "style",
        "template",
        "iframe",
        "svg",
        "[hidden]",
        *(f'[class~="{name}" i],[id="{name}" i]' for name in _AD_NAMES),
    ]
)
FRAME = f"{BESIDE},{NEVER}"


def compare(page: Page, copy_of: CopyOf | None, most_bytes: int) -> None:
    """Compare `page` with its earlier visit, and note at its exchange if it is as it was, says the same, or is missing
    again. A copy may unfold to `most_bytes`."""
    exchange = page.exchange
    earlier = exchange.visit.earlier
    if earlier is None:
        return
    if exchange.outcome is Outcome.OK and (page.fingerprint or earlier.place):  # an empty page has fingerprint 0
        if page.fingerprint == earlier.fingerprint:
            _compare_heads(page, earlier)
        elif copy_of and page.media_type in HTML_TYPES and _says_the_same(page, earlier, copy_of, most_bytes):
            exchange.detail = SAME_TEXT
    elif exchange.status in (404, 410) and earlier.missing:
        exchange.outcome = Outcome.GONE


def _compare_heads(page: Page, earlier: Earlier) -> None:
    """Note how a page is that has the bytes of its copy. It is read again if its head says something else."""
    exchange = page.exchange
    copy = replace(exchange, head=earlier.head or exchange.head)
    if not _means_the_same(copy, page):
        return
    if said_of_links(copy) == said_of_links(exchange):
        exchange.outcome = Outcome.UNCHANGED
    else:
        exchange.detail = SAME_TEXT


def _means_the_same(copy: Exchange, page: Page) -> bool:
    """Return whether the head of `page` asks the same of robots as that of its copy, and names the same media type and
    charset."""
    return copy.headers(_ROBOTS) == page.exchange.headers(_ROBOTS) and _kind(copy) == _kind(page.exchange)


def _kind(exchange: Exchange) -> tuple[str, str | None]:
    media_type, label = said_of_kind(exchange)
    return media_type, codec_of(label)


def _says_the_same(page: Page, earlier: Earlier, copy_of: CopyOf, most_bytes: int) -> bool:
    """Return whether `page` has the text of its copy in the archive, though not its bytes."""
    message = copy_of(earlier, MOST_TEXT_BYTES) if page.size_bytes <= MOST_TEXT_BYTES else None
    if message is None:
        return False
    visit = page.exchange.visit
    copy = Exchange(visit, Outcome.OK, 0.0, 0.0, status=200, head=message[0], body=Document(message[1]))
    if expected_steps(copy) > MOST_STEPS or not _means_the_same(copy, page):
        return False
    versions = decode_body(copy, most_bytes).content, page.content
    return same_text(*(versions if page.media_type == HTML else map(written_out, versions)))


def same_text(old: bytes, new: bytes) -> bool:
    """Return whether two versions of an HTML page, as bytes of one encoding, say the same. Versions too long, or slow
    to parse, never do."""
    if max(len(old), len(new)) > MOST_TEXT_BYTES or has_many_tags(old) or has_many_tags(new):
        return False
    try:
        with haste():
            return _words(old) == _words(new)
    except TakesLong:
        return False


def _words(content: bytes) -> list[str]:
    tree = tree_of(content)
    title = tree.css_first("title")
    words = title.text().split() if title is not None else []
    words += [node.attributes.get("content") or "" for node in tree.css("meta[name=robots i]")]
    if tree.body is None:
        return words
    everything = tree.body.text(separator=" ").split()
    for node in reversed(tree.body.css(FRAME)):  # inner nodes first
        node.decompose()
    return [*words, "", *(tree.body.text(separator=" ").split() or everything)]
