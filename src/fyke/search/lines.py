"""Text of pages in lines, without characters that are not shown.

Used for all that search holds of a page, and by exports. Invariant: the result has no control characters and none that
turn the direction of a text, and is no longer than its limit. The work is bounded by the limit, not by the text.
"""

import re

from fyke.core.hidden import HIDDEN

# Control characters except blanks, soft hyphens, and Sphinx's sign for a link to a heading.
_NOT_SHOWN = re.compile(rf"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad{HIDDEN}¶]")


def needed(limit: int) -> int:
    """Return how many characters of a text are read for a result of at most `limit`: a page may hold megabytes of
    blanks."""
    return 4 * limit + 1000


def one_line(text: str, limit: int) -> str:
    """Return `text` with white space collapsed and invisible characters taken out, at most `limit` characters."""
    text = text[: needed(limit)]
    return " ".join(_NOT_SHOWN.sub("", text).split())[:limit].rstrip().encode("utf-8", "ignore").decode()


def by_lines(text: str, limit: int) -> str:
    """Return `text` without invisible characters, its lines as `one_line` has them, at most `limit` characters."""
    lines = (" ".join(line.split()) for line in _NOT_SHOWN.sub("", text[: needed(limit)]).splitlines())
    return "\n".join(filter(None, lines))[:limit].rstrip().encode("utf-8", "ignore").decode()
