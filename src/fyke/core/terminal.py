"""Makes text of strangers safe to print on a terminal.

Used by the commands (`fyke.cli.console`) and the list of search results. Invariant: text that `clean` returns cannot
steer a terminal, and neither hides nor turns round a part of itself.
"""

import re

from fyke.core.hidden import CONTROL, HIDDEN

_STEERING = re.compile(rf"[{CONTROL}{HIDDEN}\u2028\u2029]")


def clean(text: str) -> str:
    """Return `text` with a blank for each character that steers a terminal or hides, and without lone surrogates."""
    return _STEERING.sub(" ", text).encode("utf-8", "replace").decode()
