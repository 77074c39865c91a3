"""Text of strangers, made fit to be shown.

Used wherever the report prints a URL, a host, a media type. Invariant: one line of at most `limit` characters; what
cannot be seen, or turns the direction of what follows, is written out as its code point. HTML is escaped later, by
whoever writes HTML.
"""

import re
import unicodedata

LIMIT = 120

_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u115f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff]"
)


def shown(text: str, limit: int = LIMIT) -> str:
    """`text` with its hidden characters written as <U+202E>, cut to `limit` with an ellipsis."""
    text = text[: 4 * limit].encode("utf-8", "replace").decode()
    text = _HIDDEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", unicodedata.normalize("NFC", text))
    return text if len(text) <= limit else text[: limit - 1] + "…"
