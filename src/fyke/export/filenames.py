"""A file name for a URL: readable, safe on any file system, and unique.

Used by the export to Markdown. Invariant: a canonical URL has two names of small ASCII letters, digits, dots and
hyphens, neither empty, hidden, reserved by any system, nor longer than `LONGEST`; they differ for different keys.
"""

import re
from urllib.parse import unquote

from fyke.core.urls import split

LONGEST = 120
SLUG_CHARS = 80

_STRANGE = re.compile(r"[^a-z0-9.]+")
_DOTS = re.compile(r"\.{2,}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")  # on Windows, also with an ending


def folder_name(host: str) -> str:
    """Return the folder for the pages of a host."""
    name = _safe(host)[:LONGEST].strip(".-") or "host"
    return f"host-{name}" if _RESERVED.match(name) else name


def page_name(url: str, key: int) -> str:
    """Return the file for the page with this URL and key: the readable part of its path and query, then the key."""
    target = unquote(split(url).target, errors="ignore").strip("/")
    slug = _safe(target)[:SLUG_CHARS].strip(".-")
    return f"{slug or 'index'}-{key:016x}.md"


def _safe(text: str) -> str:
    return _DOTS.sub(".", _STRANGE.sub("-", text.lower())).strip(".-")
