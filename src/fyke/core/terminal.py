"""What may go to a terminal of all that strangers write.

Used by whatever prints: the commands (`fyke.cli.console`) and the list of search results. Invariant: what `clean`
returns cannot steer a terminal, nor hide or turn round what it says.
"""

import re

from fyke.core.hidden import CONTROL, HIDDEN

_STEERING = re.compile(rf"[{CONTROL}{HIDDEN}\u2028\u2029]")


def clean(text: str) -> str:
    """`text` with a blank for each character that steers a terminal or hides, and no lone surrogates."""
    return _STEERING.sub(" ", text).encode("utf-8", "replace").decode()
