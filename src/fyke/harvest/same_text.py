"""Does a page say what it said? A token, a time in a script, an advertisement make other bytes, and no change.

Asked by the harvest for pages whose bytes are not those of the copy in the archive. What is compared is what a reader
comes for: title and words, without scripts, navigation, footers, asides and what calls itself an advertisement. What
never stays (Olston and Pandey, Recrawl scheduling based on information longevity, WWW 2008) is not worth a visit; were
it counted, such a page would seem to change at every visit, and take those of others.

Invariant: linear in the bytes, of which there are `MOST_TEXT_BYTES` at most of each.
"""

from selectolax.lexbor import LexborHTMLParser

from fyke.core.markup import bounded

MOST_TEXT_BYTES = 256 << 10
_AD_NAMES = ("ad", "ads", "advert", "advertisement", "adsbygoogle", "sponsored", "banner")
FRAME = ",".join(
    [
        "script", "style", "noscript", "template", "iframe", "svg", "nav", "footer", "aside", "[hidden]",
        *(f'[class~="{name}" i],[id="{name}" i]' for name in _AD_NAMES),
    ]
)  # fmt: skip


def same_text(old: bytes, new: bytes) -> bool:
    """Whether two versions of an HTML page, as bytes of one encoding, say the same; too long ones never do."""
    if max(len(old), len(new)) > MOST_TEXT_BYTES:
        return False
    return _words(old) == _words(new)


def _words(content: bytes) -> list[str]:
    tree = LexborHTMLParser(bounded(content))
    title = tree.css_first("title")
    words = title.text().split() if title is not None else []
    if tree.body is None:
        return words
    everything = tree.body.text(separator=" ").split()
    for node in reversed(tree.body.css(FRAME)):  # what is within others first
        node.decompose()
    return [*words, "", *(tree.body.text(separator=" ").split() or everything)]
