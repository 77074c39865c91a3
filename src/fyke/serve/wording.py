"""Words of a page for numbers, times, sizes, languages, and text that somebody else wrote.

The templates use these as filters. Invariant: `clean` text has no control characters and none that turn the direction
of text, and is never longer than its limit; the templates escape it.
"""

from datetime import UTC, datetime
from urllib.parse import urlencode

from fyke.core.errors import BadUrl
from fyke.quantities import duration, size
from fyke.search.printing import clean as without_steering

MOST_CHARS = 300

LANGUAGES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovene",
    "sr": "Serbian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip


STATES = {
    "none": "archive",
    "blocked": "only blocked hosts are left",
    "bytes": "reached the limit of bytes",
    "pages": "reached the limit of pages",
    "resting": "only resting hosts are left",
    "time": "reached the limit of time",
    "unreached": "could reach nothing",
}


def clean(text: object, most: int = MOST_CHARS) -> str:
    """Return `text` of a page fit to be shown: without characters that steer or hide, and cut to `most`."""
    shown = " ".join(without_steering(str(text)[: 4 * most]).split())
    return shown if len(shown) <= most else f"{shown[: most - 1].rstrip()}…"


def number(value: object) -> str:
    """Return a count or rate with its thousands apart."""
    if isinstance(value, float) and value < 100:
        return f"{value:,.1f}"
    return f"{float(str(value)):,.0f}"


def day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def minute(at: datetime | float) -> str:
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


def iso(at: datetime | float) -> str:
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def language(code: str) -> str:
    return LANGUAGES.get(code, code)


def state(name: str) -> str:
    """Return a crawl's state in words."""
    return STATES.get(name, name)


def words(name: str) -> str:
    """Return a name of ours as words: `robots_forbade` is `robots forbade`."""
    return name.replace("_", " ")


def query_string(**values: object) -> str:
    """Return `?a=b` of the values that say something; empty if none does."""
    said = {name: value for name, value in values.items() if value not in (None, "", 0)}
    return f"?{urlencode(said)}" if said else ""


def not_a_url(text: str) -> BadUrl:
    """Return the error for `text` that was asked about and is not a URL."""
    return BadUrl(f"{text[:200]!r} is not a URL: write http://, https://, ftp:// or gopher:// and a host")


FILTERS = {
    "clean": clean, "number": number, "day": day, "minute": minute, "iso": iso, "language": language, "words": words,
    "state": state, "size": size, "duration": duration,
}  # fmt: skip
