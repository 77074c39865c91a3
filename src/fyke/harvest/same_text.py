"""Does a page say what it said? A token, a time in a script, an advertisement make other bytes, and no change.

Asked by the harvest for pages whose bytes are not those of the copy in the archive. What is compared is what a reader
comes for: title and words, without scripts, navigation, footers, asides and what calls itself an advertisement. What
never stays (Olston and Pandey, Recrawl scheduling based on information longevity, WWW 2008) is not worth a visit; were
it counted, such a page would seem to change at every visit, and take those of others.

Invariant: linear in the bytes, of which there are `MOST_TEXT_BYTES` at most of each.
"""

from collections.abc import Callable

from fyke.core.decoding import decode_body, expected_steps
from fyke.core.document import Document
from fyke.core.markup import TakesLong, has_many_tags, tree_of
from fyke.core.outcomes import Outcome
from fyke.core.pace import haste
from fyke.core.visits import HTML_TYPES, SAME_TEXT, Earlier, Exchange, Page

CopyOf = Callable[[Earlier, int], tuple[bytes, bytes] | None]  # head and body of the newest copy, if not longer

MOST_TEXT_BYTES = 256 << 10
MOST_STEPS = 50_000  # that it may take to decode a copy
_AD_NAMES = ("ad", "ads", "advert", "advertisement", "adsbygoogle", "sponsored", "banner")
BESIDE = "nav,footer,aside"
NEVER = ",".join(
    [
        "script", "style", "noscript", "template", "iframe", "svg", "[hidden]",
        *(f'[class~="{name}" i],[id="{name}" i]' for name in _AD_NAMES),
    ]
)  # fmt: skip
FRAME = f"{BESIDE},{NEVER}"


def compare(page: Page, copy_of: CopyOf | None, most_bytes: int) -> None:
    """Note at the exchange of `page` what it says beside the one before it: a page that is as it was, or away once
    more. `most_bytes` is what a copy may unfold to."""
    exchange = page.exchange
    earlier = exchange.visit.earlier
    if earlier is None:
        return
    if exchange.outcome is Outcome.OK and page.fingerprint:
        if page.fingerprint == earlier.fingerprint:
            exchange.outcome = Outcome.UNCHANGED
        elif copy_of and page.media_type in HTML_TYPES and _says_the_same(page, earlier, copy_of, most_bytes):
            exchange.detail = SAME_TEXT
    elif exchange.status in (404, 410) and earlier.missing:
        exchange.outcome = Outcome.GONE


def _says_the_same(page: Page, earlier: Earlier, copy_of: CopyOf, most_bytes: int) -> bool:
    """Whether `page` has the text of its copy in the archive, though not its bytes."""
    message = copy_of(earlier, MOST_TEXT_BYTES) if page.size_bytes <= MOST_TEXT_BYTES else None
    if message is None:
        return False
    visit = page.exchange.visit
    copy = Exchange(visit, Outcome.OK, 0.0, 0.0, status=200, head=message[0], body=Document(message[1]))
    if expected_steps(copy) > MOST_STEPS:
        return False
    return same_text(decode_body(copy, most_bytes).content, page.content)


def same_text(old: bytes, new: bytes) -> bool:
    """Whether two versions of an HTML page, as bytes of one encoding, say the same; too long ones never do, nor those
    that take long to parse."""
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
    if tree.body is None:
        return words
    everything = tree.body.text(separator=" ").split()
    for node in reversed(tree.body.css(FRAME)):  # what is within others first
        node.decompose()
    return [*words, "", *(tree.body.text(separator=" ").split() or everything)]
