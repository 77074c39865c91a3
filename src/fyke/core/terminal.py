"""What may go to a terminal of all that strangers write.

Used by whatever prints: the commands (`fyke.cli.console`) and the list of search results. Invariant: what `clean`
returns cannot steer a terminal, nor hide or turn round what it says.
"""

import re

# Those that join letters or keep them apart (U+200C, U+200D) are part of words, and stay; so do line ends and tabs.
_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"  # the last are letters that nobody sees
)


def clean(text: str) -> str:
    """`text` with a blank for each character that steers a terminal or hides, and no lone surrogates."""
    return _STEERING.sub(" ", text).encode("utf-8", "replace").decode()
