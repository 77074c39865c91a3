"""Text of strangers, made fit to be shown.

Used wherever the report prints a URL, a host, a media type. Invariant: one line of at most `limit` characters. A
character that cannot be seen, or turns the direction of text, is written out as its code point. HTML is escaped later,
by the writer of the HTML.
"""

import re
import unicodedata

from fyke.core.hidden import CONTROL, HIDDEN

LIMIT = 120

_HIDDEN = re.compile(rf"[{CONTROL}\t\n{HIDDEN}\u00ad\u200c\u200d\u2028\u2029\ufff0-\uffff]")


def shown(text: str, limit: int = LIMIT) -> str:
    """Return `text` with its hidden characters written as <U+202E>, cut to `limit` with an ellipsis."""
    text = text[: 4 * limit].encode("utf-8", "replace").decode()
    text = _HIDDEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", unicodedata.normalize("NFC", text))
    return text if len(text) <= limit else text[: limit - 1] + "…"
