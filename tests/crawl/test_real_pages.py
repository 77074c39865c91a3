"""Real pages from a real web server: Debian's documentation of Python and PostgreSQL, behind nginx.

What should be fetched is worked out here from the files alone, by a breadth-first walk with Python's own
HTML parser and URL functions.
"""

import gzip
import re
from collections import deque
from collections.abc import Iterator
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator

from crawl.nginx import NGINX, nginx
from crawl.runs import crawl, fyke, settings
from fyke.archive.reading import read_table

DOCS = Path("/usr/share/doc")
TREES = {"python3.11": (DOCS / "python3.11/html", 500), "postgresql-15": (DOCS / "postgresql-doc-15/html", 1000)}
PAGE_RELS = {"canonical", "next", "prev", "alternate"}
REQUISITE_RELS = {"stylesheet", "icon", "manifest", "preload"}
GZIP = "gzip on; gzip_types text/css application/javascript; gzip_min_length 100;"
TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL)
CSS_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")

pytestmark = pytest.mark.skipif(not NGINX.exists(), reason="needs nginx")


class Reader(HTMLParser):
    """The links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        rels = set(given.get("rel", "").lower().split())
        link = ""
        if (tag in ("a", "area") and "nofollow" not in rels) or (tag == "link" and rels & (PAGE_RELS | REQUISITE_RELS)):
            link = given.get("href", "")
        elif tag in ("img", "script", "iframe", "frame", "embed", "source"):
            link = given.get("src", "")
        elif tag == "object":
            link = given.get("data", "")
        if link:
            self.links.append(link)


def file_of(root: Path, url: str) -> Path | None:
    path = root / unquote(urlsplit(url).path).lstrip("/")
    path = path / "index.html" if path.is_dir() else path
    return path if path.is_file() else None


@cache
def walk(root: Path) -> dict[str, Path | None]:
    """Every path that the links allow, with its file, None where there is none."""
    start = "http://docs.test/"
    found: dict[str, Path | None] = {}
    waiting = deque([start])
    while waiting:
        url = waiting.popleft()
        if url in found:
            continue
        found[url] = path = file_of(root, url)
        if path is None:
            continue
        links: list[str] = []
        if path.suffix == ".html":
            links = Reader(path.read_text(encoding="utf-8")).links
        elif path.suffix == ".css":
            links = [one or other for one, other in CSS_URL.findall(path.read_text(encoding="utf-8"))]
        for link in links:
            target = urldefrag(urljoin(url, link.strip())).url
            if target.startswith(start):
                waiting.append(target)
    return {url.removeprefix(start): path for url, path in found.items()}


URL, FIRST = "WARC-Target-URI", "WARC-Refers-To-Target-URI"


def by_warcio(into: Path) -> Iterator[tuple[str, str, bytes]]:
    """URL, content coding and decoded body of every response, and of every copy of one."""
    bodies: dict[str, bytes] = {}
    for path in sorted((into / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                if record.rec_type in ("response", "revisit"):
                    coding, url = record.http_headers.get_header("Content-Encoding") or "", record.rec_headers[URL]
                    first = record.rec_headers.get_header(FIRST)
                    bodies[url] = bodies[first] if first else record.content_stream().read()
                    yield url, coding, bodies[url]


def by_fastwarc(into: Path) -> Iterator[tuple[str, str, bytes]]:
    """The same."""
    bodies: dict[str, bytes] = {}
    kinds = WarcRecordType.response | WarcRecordType.revisit
    for path in sorted((into / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in FastIterator(file, record_types=kinds, auto_decode="transfer"):
                coding, url = record.http_headers.get("Content-Encoding") or "", record.headers[URL]
                first = record.headers.get(FIRST)
                bodies[url] = bodies[first] if first else record.reader.read()
                yield url, coding, gzip.decompress(bodies[url]) if coding == "gzip" else bodies[url]


@pytest.mark.parametrize(("tree", "options"), [("python3.11", ""), ("postgresql-15", ""), ("postgresql-15", GZIP)])
def test_real_pages(tmp_path: Path, tree: str, options: str) -> None:
    root, least = TREES[tree]
    if not root.is_dir():
        pytest.skip(f"needs the Debian package with {root}")
    into = tmp_path / "crawl"
    with nginx(root.resolve(), options) as start:
        run = crawl(into, settings(tmp_path), start, "--requisites")
        assert run.status == 0, run.errors
    expected = {start + path: file for path, file in walk(root).items()}
    table = read_table(into, "pages").to_pylist()
    rows = {row["url"]: row for row in table}
    assert len(rows) == len(table) > least
    assert rows.keys() == expected.keys()
    assert {url for url, row in rows.items() if row["outcome"] != "ok"} == {u for u, at in expected.items() if not at}
    files = {url: path.read_bytes() for url, path in expected.items() if path is not None}
    assert_understood(rows, files)
    for reading in (by_warcio, by_fastwarc):
        assert_archived(reading(into), files, gzipped=bool(options))
    done = fyke("check", str(into))
    assert done.returncode == 0, done.stdout


def assert_understood(rows: dict[str, dict], files: dict[str, bytes]) -> None:
    """Titles, media types and character sets are those of the files."""
    types = {"css": "text/css", "js": "application/javascript", "png": "image/png", "svg": "image/svg+xml"}
    for url, data in files.items():
        row = rows[url]
        path = urlsplit(url).path
        if path.endswith((".html", "/")):
            assert row["media_type"] == "text/html", url
            if row["duplicate"]:  # a copy of a page in the same folder is not parsed again
                continue
            assert row["charset"] == "utf-8", url
            text = data.decode("utf-8")
            title = TITLE.search(text)
            assert row["title"] == " ".join(unescape(title[1] if title else "").split()), url
            assert "\ufffd" not in row["title"] or "\ufffd" in text
        elif (suffix := path.rpartition(".")[2]) in types:
            assert row["media_type"] == types[suffix], url
        assert row["content_bytes"] == len(data), url


def assert_archived(records: Iterator[tuple[str, str, bytes]], files: dict[str, bytes], *, gzipped: bool) -> None:
    """Each file is in the archive once, byte for byte; what was sent compressed is still so."""
    met = set()
    compressed = 0
    for url, coding, body in records:
        if url in files:
            assert url not in met and body == files[url], url
            met.add(url)
            compressed += coding == "gzip"
    assert met == files.keys()
    assert (compressed > 1000) == gzipped
