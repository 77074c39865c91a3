"""Pages as Markdown files: the main content, below a front matter with its source.

Made by `fyke.export.job`, for corpora of language models and for reading. Files are `<host>/<path>-<key>.md`.
Invariants: the front matter is YAML whose values are JSON, so no title can end it early; a part that is done again
writes the same files with the same bytes. A canonical URL has two names of small ASCII letters, digits, dots and
hyphens, neither empty, hidden, reserved by any system, nor longer than `LONGEST`; they differ for different keys.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from fyke.core.urls import split
from fyke.disk.files import sync_all, sync_file
from fyke.export import page_text, selection
from fyke.export.growing import utc_text
from fyke.export.prose import markdown
from fyke.export.source import Source
from fyke.export.staging import Mark, Staging, writing
from fyke.export.textual import chosen_rows
from fyke.search.archived import COLUMNS

PART_ROWS = 1_000
LONGEST = 120
SLUG_CHARS = 80

_COLUMNS = [*COLUMNS, "key", "digest"]
_STRANGE = re.compile(r"[^a-z0-9.]+")
_DOTS = re.compile(r"\.{2,}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")  # on Windows, also with an ending


class Notes:
    """A file for each page that `rule` takes."""

    unit = "pages"

    def __init__(self, source: Source, staging: Staging, rule: selection.Selection) -> None:
        self._source = source
        self._staging = staging
        self._rule = rule
        self.unreadable = 0
        self.total = source.until.pages

    def parts(self, mark: Mark) -> Iterator[Mark]:
        with writing(self._staging.out):
            self._staging.out.mkdir(exist_ok=True)
        chosen = selection.select(self._source, self._rule, self._staging.scratch)
        entries = mark.entries
        with page_text.Reading(self._source, markdown, with_noindex=self._rule.with_noindex) as read:
            for part in self._source.parts("pages", _COLUMNS, mark, PART_ROWS):
                with writing(self._staging.out):
                    entries += sum(self._note(row, read.content_of(row)) for row in chosen_rows(part, chosen))
                    sync_all(self._staging.out)
                self.unreadable = read.unreadable
                yield Mark(part.end, entries)

    def _note(self, row: dict[str, Any], content: page_text.MainContent | None) -> bool:
        """Write the file of a page; return False if the page has no text."""
        if content is None:
            return False
        folder = self._staging.out / folder_name(split(row["url"]).host)
        folder.mkdir(exist_ok=True)
        path = folder / page_name(row["url"], row["key"])
        path.write_text(f"{_front_matter(row, content)}\n{content.text}\n", encoding="utf-8", newline="\n")
        return True

    def finish(self, mark: Mark) -> None:
        """Sync the folder of the files."""
        with writing(self._staging.out):
            sync_file(self._staging.out)


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


def _front_matter(row: dict[str, Any], content: page_text.MainContent) -> str:
    facts = {
        "url": row["url"],
        "title": content.title,
        "language": content.language,
        "fetched_at": utc_text(row["fetched_at"]),
        "digest": row["digest"],
    }
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
    return "\n".join(["---", *lines, "---", ""])
