"""A crawl in one file for replay: WACZ 1.1.1, as ReplayWeb.page, pywb and browsertrix read it.

Made by `fyke.export.job`: `archive/` (the WARC files as they are), `indexes/` (ZipNum), `pages/pages.jsonl`,
`datapackage.json` with a SHA-256 of each, and the digest of that. Everything archived is in it, also failures,
duplicates and pages that ask not to be indexed, because replay needs what the browser asks for. Lost archive files are
left out, damaged ones are copied as they are, and both are reported. Invariant: a member is added whole and then
counted, so the export goes on at the next; the same crawl gives the same bytes.
"""

import json
import re
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from fyke.archive.checksum import checksum_holds
from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES
from fyke.core.urls import canonical
from fyke.core.version import VERSION
from fyke.disk.files import open_file
from fyke.export.growing import json_line, utc_text
from fyke.export.replay_index import write_index
from fyke.export.source import Source
from fyke.export.staging import Mark, Staging, writing
from fyke.export.zipping import GrowingZip, ZipMember
from fyke.search.extract import PLAIN_TYPES, TITLE_CHARS
from fyke.search.lines import one_line

WACZ_VERSION = "1.1.1"
PAGES = "pages/pages.jsonl"
CHUNK_BYTES = 1 << 20

_SHOWN = HTML_TYPES | PLAIN_TYPES
_COLUMNS = ["key", "url", "title", "fetched_at", "outcome", "media_type", "kind", "warc_file"]


class Wacz:
    """The WACZ of all that was archived."""

    unit = "bytes"
    unreadable = 0  # records are copied as they are

    def __init__(self, source: Source, staging: Staging) -> None:
        self._source = source
        self._staging = staging
        self._created = time.gmtime(source.until.at)
        self.total = sum(source.until.archive.values())

    def parts(self, mark: Mark) -> Iterator[Mark]:
        with self._zip(mark) as bundle:
            done = mark.done
            lost = mark.state.get("lost") or self._source.lost_archive()
            for name, length in list(self._source.until.archive.items())[len(bundle.members) :]:
                path = self._source.path / name
                lost += [name] if checksum_holds(path) is False else []
                bundle.add(f"archive/{path.name}", length, chunks_of(path, length))
                done += length
                yield _mark(done, bundle, lost)
            if PAGES not in {member.name for member in bundle.members}:
                for name, path in self._made():
                    bundle.add(name, path.stat().st_size, chunks_of(path, path.stat().st_size))
                yield _mark(done, bundle, lost)

    def _zip(self, mark: Mark) -> GrowingZip:
        members = [ZipMember(*member) for member in mark.state.get("members", [])]
        at = self._created
        date = (at.tm_year, at.tm_mon, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec)
        return GrowingZip(self._staging.out, members, mark.state.get("length", 0), date)

    def _made(self) -> Iterator[tuple[str, Path]]:
        """Yield names and files of the members that are made for the export."""
        for path in write_index(self._source, self._staging.scratch):
            yield f"indexes/{path.name}", path
        path = self._staging.scratch / "pages.jsonl"
        with writing(path), path.open("wb") as out:
            out.writelines(self._pages())
        yield PAGES, path

    def _pages(self) -> Iterator[bytes]:
        """Yield the lines of the page list: pages that a person may open, without requisites."""
        yield json_line({"format": "json-pages-1.0", "id": "pages", "title": "Pages", "hasText": False})
        for batch in self._source.rows("pages", _COLUMNS):
            for row in pa.Table.from_batches([batch]).to_pylist():
                wanted = row["outcome"] == Outcome.OK and row["kind"] != "requisite" and row["media_type"] in _SHOWN
                if wanted and row["warc_file"]:
                    stamp = utc_text(row["fetched_at"], "milliseconds")
                    title = one_line(row["title"], TITLE_CHARS) or row["url"]
                    yield json_line({"id": f"{row['key']:016x}", "url": row["url"], "title": title, "ts": stamp})

    def finish(self, mark: Mark) -> None:
        """Write the package's description and digest, and the end of the ZIP."""
        with self._zip(mark) as bundle:
            package = json.dumps(self._package(bundle.members), indent=2, ensure_ascii=False).encode()
            digest = {"path": "datapackage.json", "hash": f"sha256:{sha256(package).hexdigest()}"}
            bundle.add("datapackage.json", len(package), [package])
            text = json.dumps(digest, indent=2).encode()
            bundle.add("datapackage-digest.json", len(text), [text])
            bundle.finish()

    def _package(self, members: list[ZipMember]) -> dict[str, Any]:
        seeds = self._source.directory.config().crawl.seeds if self._source.directory.holds_crawl else []
        main = canonical(seeds[0]) if seeds else None
        more = f" and {len(seeds) - 1} more" if len(seeds) > 1 else ""
        return {
            "profile": "data-package",
            "wacz_version": WACZ_VERSION,
            "title": f"Crawl of {one_line(seeds[0], TITLE_CHARS)}{more}" if seeds else "Crawl",
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", self._created),
            "software": f"fyke {VERSION}",
            **({"mainPageUrl": main} if main else {}),
            "resources": [
                {
                    "name": re.sub(r"[^-a-z0-9._]", "-", member.name.rpartition("/")[2].lower()),
                    "path": member.name,
                    "hash": f"sha256:{member.sha256}",
                    "bytes": member.size,
                }
                for member in members
            ],
        }


def _mark(done: int, bundle: GrowingZip, lost: list[str]) -> Mark:
    members = [list(member) for member in bundle.members]
    return Mark(done, done, {"members": members, "length": bundle.length, "lost": lost})


def chunks_of(path: Path, length: int) -> Iterator[bytes]:
    """Yield the first `length` bytes of a file, in pieces."""
    with open_file(path) as file:
        while length:
            chunk = file.read(min(CHUNK_BYTES, length))
            if not chunk:
                return
            length -= len(chunk)
            yield chunk
