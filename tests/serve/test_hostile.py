"""What a page wrote is text, whatever it wrote: no page breaks, nothing runs, nothing is asked for."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from serve.hostile import MARK, hostile_visits
from serve.kit import client

STRANGE = [
    "/copy?url=" + "a" * 5000,
    "/copy?url=http://" + "a" * 9000,
    "/copy?url=http://bad.example/script&at=99999999999999",
    "/page?url=%FF%FE",
    "/raw?url=http://[::1",
    "/crawl/..%2f..%2fetc",
    "/crawl/hostile/host/%00",
    "/crawl/hostile/host/" + quote("<script>"),
    "/crawl/hostile/hosts?q=%FF",
    "/static/../app.py",
    "/static/%2e%2e/app.py",
    "/api/search?limit=1e9",
]
URLS = [url for url, _ in hostile_visits()]


def _harmless(text: str) -> None:
    """A page of ours holds our scripts and frames only, no handlers, and nothing that turns the direction of text."""
    for node in LexborHTMLParser(text).css("*"):
        attributes = node.attributes
        assert not any(name.startswith("on") for name in attributes), attributes
        if node.tag in ("script", "iframe", "img", "link"):
            place = attributes.get("src") or attributes.get("href") or ""
            assert place.startswith(("/static/", "/raw?")), (node.tag, place)
        assert node.tag not in ("object", "embed", "base", "style", "svg"), node.tag
        assert not (attributes.get("href") or "").lower().strip().startswith(("javascript:", "data:"))
    assert "\u202e" not in text and "\x00" not in text and "\u2066" not in text


def test_pages_about_them(hostile: Path) -> None:
    with client(hostile) as ask:
        for page in range(1, 4):
            _harmless(ask.get("/", params={"q": MARK, "site": "bad.example", "page": page}).text)
        for q in (
            "<script>alert(1)</script>",
            "\"'><img src=x onerror=1>",
            "\u202eabc",
            "%00",
            "\ud800".encode("utf-16", "surrogatepass"),
        ):
            _harmless(ask.get("/", params={"q": q}).text)
        for url in URLS:
            for path in ("/copy", "/page"):
                answer = ask.get(path, params={"url": url})
                assert answer.status_code == 200, (path, url)
                assert len(answer.content) < 100_000, (path, url)
                _harmless(answer.text)
            assert ask.get("/api/page", params={"url": url}).status_code == 200


@pytest.mark.parametrize("url", URLS)
def test_copies(hostile: Path, url: str) -> None:
    with client(hostile) as ask:
        raw = ask.get("/raw", params={"url": url})
        assert raw.status_code == 200
        assert raw.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        for name in ("set-cookie", "refresh", "link", "location"):
            assert name not in raw.headers
        kind = raw.headers["content-type"]
        assert kind in ("text/html; charset=utf-8", "text/plain; charset=utf-8")
        if kind.startswith("text/html"):
            text = raw.text
            assert not re.search(r"<(?:iframe|object|embed|base|frame|link)\b", text.partition(MARK)[0], re.IGNORECASE)
            assert 'http-equiv="refresh"' not in text.lower()
        saved = ask.get("/raw", params={"url": url, "save": "1"})
        assert re.fullmatch(r'attachment; filename="[A-Za-z0-9._-]+"', saved.headers["content-disposition"])


def test_damaged_archive(hostile: Path, tmp_path: Path) -> None:
    """A record that cannot be read costs its copy, and says so."""
    folder = tmp_path / "damaged"
    (folder / "warc").mkdir(parents=True)
    (folder / "tables").mkdir()
    place = b'"digest": "x", "offset": "5", "length": "9", "filename": "../../etc/passwd"'
    index = b'example,a)/ 20260101000000 {"url": "http://a.example/", ' + place + b"}\n"
    junk = b"example,a)/ 2026 {}\nexample,a)/ nonsense\n\xff\xfe\n"
    (folder / "warc" / "x.cdxj").write_bytes(index + junk)
    (folder / "warc" / "y.cdxj.open").write_bytes(junk + index + b'example,a)/ 20260101000000 {"url"')
    with client(folder) as ask:
        copy = ask.get("/copy?url=http://a.example/")
        assert copy.status_code == 200 and "cannot be read" in copy.text
        assert ask.get("/raw?url=http://a.example/").status_code == 404


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.sampled_from(["mime", "status", "digest", "offset", "length", "filename"]),
    st.one_of(
        st.sampled_from(["", "..", "\ud800", "a\0b", "9" * 5000, float("inf"), 10**30, 1 << 63, 10**15, [[]], None]),
        st.integers(),
        st.floats(),
        st.text(st.characters()),
    ),
)
@example("status", float("inf"))
@example("length", 10**15)
@example("length", 10**30)
@example("digest", "\ud800")
def test_an_index_that_says_anything(plums: Path, tmp_path: Path, field: str, value: object) -> None:
    """Whatever a line of an index has for a number or a name, it costs its own copy and nothing else."""
    folder, (archive, *_) = tmp_path / "strange", sorted((plums / "warc").glob("*.warc.gz"))
    (folder / "warc").mkdir(parents=True, exist_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    (folder / "warc" / archive.name).write_bytes(archive.read_bytes())
    said = {"url": "http://a.example/", "digest": "x", "offset": "0", "length": "900", "filename": archive.name}
    line = f"example,a)/ 20260101000000 {json.dumps(said | {field: value})}\n"
    deep = f'example,a)/ 20260101000000 {json.dumps(said)[:-1]}, "a": {"[" * 100_000}\n'
    (folder / "warc" / "x.cdxj").write_text(line + deep)
    with client(folder) as ask:
        for place in ("/copy", "/raw", "/page", "/diff", "/api/page"):
            assert ask.get(place, params={"url": "http://a.example/"}).status_code in (200, 404), place


def test_strange_requests(hostile: Path) -> None:
    with client(hostile) as ask:
        for path in STRANGE:
            answer = ask.get(path)
            assert answer.status_code < 500, path
            _harmless(answer.text)
            assert "Traceback" not in answer.text
