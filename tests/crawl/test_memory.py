"""Memory is set by the configuration, not by the crawl: the small version of `benches/flat_memory.py`."""

import gzip
from collections.abc import Callable
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from flat_memory import compare

from certificates import Certificates
from crawl.runs import crawl_apart as crawl
from crawl.runs import settings
from crawl.small_site import small_site
from web_server import web_server


def test_memory_is_flat() -> None:
    """More than twice the URLs, the same memory within a fifth, and below 400 MB."""
    (_, few, low), (_, many, high) = compare(1500, 6500)
    assert many > 2 * few
    assert high < 1.2 * low and high < 400


def long_list() -> bytes:
    return b"<urlset>%b</urlset>" % b"".join(
        b"<url><loc>http://other.example/%d/%b</loc></url>" % (number, b"x" * 1900) for number in range(30_000)
    )


def long_document() -> bytes:
    """A text of 10,000 links, of 1.2 KB each."""
    links = range(10_000)
    points = b"".join(b'<w:hyperlink r:id="i%d"/>' % number for number in links)
    leads = b"".join(
        b'<Relationship Id="i%d" Type="x/hyperlink" Target="http://o.example/%d/%b" TargetMode="External"/>'
        % (number, number, b"x" * 1200)
        for number in links
    )
    held = BytesIO()
    with ZipFile(held, "w", ZIP_DEFLATED) as parts:
        parts.writestr("[Content_Types].xml", "<Types/>")
        parts.writestr("word/document.xml", b'<w:document xmlns:w="w" xmlns:r="r">%b</w:document>' % points)
        parts.writestr("word/_rels/document.xml.rels", b"<Relationships>%b</Relationships>" % leads)
    return held.getvalue()


DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MUCH: dict[str, tuple[dict[str, str], Callable[[], bytes]]] = {
    "unfolds": (
        {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, lambda: gzip.compress(bytes(100 << 20)),
    ),
    "words": ({"Content-Type": "text/plain"}, lambda: b"so many words " * (2 << 20)),
    "lists": ({"Content-Type": "text/xml"}, lambda: b"<urlset>" + b"<url><loc>/</loc></url>" * (1 << 18)),
    "lists in gzip": ({"Content-Type": "application/gzip"}, lambda: gzip.compress(long_list())),
    "documents": ({"Content-Type": DOCX}, long_document),
    "crumbs": (
        {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, lambda: gzip.compress(b"") * 1_000_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MUCH)
def test_many_servers_that_send_much_take_the_memory_of_one(tmp_path: Path, kind: str) -> None:
    """Large bodies come from many servers at once, and are not opened at once."""
    headers, made = MUCH[kind]
    body = made()
    peaks = []
    for count in (1, 12):
        with ExitStack() as serving:
            sites = [serving.enter_context(small_site(host=f"127.0.0.{40 + number}")) for number in range(count)]
            for site in sites:
                site.answers["/"] = (200, headers, body)
            run = crawl(tmp_path / str(count), settings(tmp_path), *(site.url for site in sites))
        assert run.status == 0, run.errors
        assert run.summary["pages"] + run.summary["listings"] == count
        peaks.append(run.summary["peak_memory_bytes"])
    assert peaks[1] < {"documents": 1.3, "lists": 1.1}.get(kind, 1.2) * peaks[0], peaks


def test_large_certificates_of_many_servers_take_the_memory_of_few(tmp_path: Path) -> None:
    """OpenSSL makes 4 MB of each, for as long as there is a connection."""
    certificates = Certificates(tmp_path)
    hosts = [f"127.3.0.{number}" for number in range(1, 121)]
    tls = certificates.server(hosts, 97_000)
    with web_server(lambda *_: (200, {"Content-Type": "text/html"}, b"<p>hi"), "0.0.0.0", tls=tls) as url:
        port = url.strip("/").rpartition(":")[2]
        config = settings(tmp_path, fetch={"ca_file": certificates.ca_file, "timeout_s": 30.0, "stall_s": 20})
        run = crawl(tmp_path / "crawl", config, *(f"https://{host}:{port}/" for host in hosts))
    assert run.summary["outcomes"] == {"ok": len(hosts)}, run.errors
    assert run.summary["peak_memory_bytes"] < 320 << 20
