"""When was a page written? By what it says, what its server says, otherwise when it was fetched.

Called once a page while indexing. A date that is nonsense (before the web, after the fetch) is passed over. Invariant:
always a time, in unix seconds; nothing raises.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

EARLIEST_S = 631_152_000  # 1990: before it there were no pages
SLACK_S = 86_400  # clocks and time zones differ

META_NAMES = (
    "article:modified_time", "og:updated_time", "dcterms.modified", "last-modified", "article:published_time",
    "dcterms.created", "dcterms.date", "dc.date", "datepublished", "pubdate", "date",
)  # fmt: skip
_LEADING_DATE = re.compile(r"\s*(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?\s*(Z|[+-]\d{2}:?\d{2})?)?")


def date_of(told: Iterable[str], fetched_at_s: float) -> int:
    """Return the first usable of the dates `told`, in order of trust, otherwise `fetched_at_s`; whole unix seconds."""
    for text in told:
        seconds = parsed(text)
        if seconds is not None and EARLIEST_S <= seconds <= fetched_at_s + SLACK_S:
            return round(seconds)
    return round(fetched_at_s)


def parsed(text: str) -> float | None:
    """Return `text`, an ISO 8601 date or time or an HTTP date, as unix seconds, in UTC without a zone. None if it is no
    date."""
    match = _LEADING_DATE.match(text)
    try:
        if match:
            day, time, zone = match.groups()
            when = datetime.fromisoformat(f"{day}T{time or '00:00'}{zone or ''}")
        else:
            when = parsedate_to_datetime(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
