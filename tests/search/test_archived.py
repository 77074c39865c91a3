"""A page comes out of the archive also where its record stands for an earlier one."""

import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from fyke.archive.records import Original
from fyke.archive.warc import RecordPlace, WarcWriter
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, visit_to
from fyke.export.prose import plain
from fyke.search.archived import ArchiveReader
from fyke.search.extract import TextExtractor
from fyke.search.indexer import Indexer
from harvest.pdfs import pdf
from search.archives import Answer, archive

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Which: %d\r\n\r\n"
NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\n\r\n"
PDF = {"Content-Type": "application/pdf"}
HTML = b"<title>Fish</title><p>A fyke is a net."


def exchange(url: str, head: bytes, body: bytes, outcome: Outcome, at: float) -> Exchange:
    visit = visit_to(url)
    return Exchange(visit, outcome, at, 0.1, status=int(head[9:12]), head=head, body=Document(body))


def read(reader: ArchiveReader, url: str, place: RecordPlace) -> tuple[str, bytes, str] | None:
    row = dict(zip(("warc_file", "warc_offset", "warc_length"), place[:3], strict=True))
    page = reader.read({**row, "url": url, "outcome": "ok", "status": 200, "fetched_at": datetime.now(UTC)})
    return page and (page.title, page.content, page.exchange.header("x-which"))


@pytest.mark.parametrize("closed", [True, False])
def test_revisits_are_read_as_what_they_stand_for(tmp_path: Path, closed: bool) -> None:
    first, other = "http://a.example/", "http://b.example/"
    writer = WarcWriter(tmp_path, 1 << 30, "test")
    writer.write(exchange(first, OK % 0, b"an older version", Outcome.OK, 1e9))
    at = writer.write(exchange(first, OK % 1, HTML, Outcome.OK, 1e9 + 5))
    original = Original(first, at.date, at.digest)
    same = writer.write(exchange(other, OK % 2, HTML, Outcome.OK, 1e9 + 9), refers_to=original)
    asked = writer.write(exchange(first, NOT_MODIFIED, b"", Outcome.UNCHANGED, 1e9 + 99), refers_to=original)
    writer.close() if closed else writer.flush()
    reader = ArchiveReader(tmp_path)
    assert read(reader, other, same) == ("Fish", HTML, "2")
    assert read(reader, first, asked) == ("Fish", HTML, "1")
    assert reader.unreadable == 0
    for path in tmp_path.glob("warc/*.cdxj*"):
        path.rename(path.with_suffix(".away"))
    assert read(reader, other, same) is None
    assert reader.unreadable == 1
    reader.close()
    for path in tmp_path.glob("warc/*.away"):
        path.rename(path.with_suffix(".cdxj" if closed else ".open"))
    if not closed:
        writer.close()


def test_what_a_record_unfolds_to_is_bounded_and_what_is_wanted_of_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of archives that others made; a larger limit than today's may have let it in."""
    writer = WarcWriter(tmp_path, 1 << 30, "test")
    place = writer.write(exchange("http://a.example/", OK % 0, HTML + bytes(64 << 20), Outcome.OK, 1e9))
    writer.close()
    reader = ArchiveReader(tmp_path)
    monkeypatch.setattr(reader, "_most_bytes", 1 << 20)
    tracemalloc.start()
    found = read(reader, "http://a.example/", place)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reader.close()
    assert found and found[0] == "Fish" and len(found[1]) == 1 << 20
    assert peak < 16 << 20


def test_a_record_that_stands_for_itself_is_not_read(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path, 1 << 30, "test")
    url = "http://a.example/"
    place = writer.write(
        exchange(url, NOT_MODIFIED, b"", Outcome.UNCHANGED, 1e9), refers_to=Original(url, "2001-09-09T01:46:40Z", "x")
    )
    writer.close()
    reader = ArchiveReader(tmp_path)
    itself = SimpleNamespace(file=place.file, offset=place.offset, length=place.length, url=url)
    reader._captures = SimpleNamespace(original=lambda _: itself)
    assert read(reader, url, place) is None
    reader.close()


@pytest.mark.parametrize("start", [b"", "\N{SMILING FACE WITH SMILING EYES}".encode()], ids=["plain", "with a smile"])
def test_of_a_long_body_no_second_copy_is_in_memory(tmp_path: Path, start: bytes) -> None:
    body = start + b"words and more " * (48 << 16)
    writer = WarcWriter(tmp_path, 1 << 30, "test")
    plain_text = OK.replace(b"text/html", b"text/plain; charset=utf-8") % 0
    at = writer.write(exchange("http://a.example/", plain_text, body, Outcome.OK, 1e9))
    writer.close()
    row = dict(zip(("warc_file", "warc_offset", "warc_length"), at[:3], strict=True))
    row |= {"url": "http://a.example/", "outcome": "ok", "status": 200, "fetched_at": datetime.now(UTC)}
    extractor = TextExtractor()
    with ArchiveReader(tmp_path) as reader:
        extractor.extract(reader.read(row))  # loads the model of languages
        tracemalloc.start()
        page = reader.read(row)
        _, most_to_read = tracemalloc.get_traced_memory()
        assert page is not None and page.size_bytes == len(body)
        tracemalloc.reset_peak()
        extract, prose = extractor.extract(page), plain(page)
        _, most_to_extract = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert extract is not None and extract.text and body.decode()[:100_000] in prose
    assert most_to_read < 1.2 * len(body) and most_to_extract < len(body) / 1.5


def children() -> set[str]:
    return {child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()}


def test_who_reads_documents_ends_with_the_reading(tmp_path: Path) -> None:
    """It need not be there beside what comes after."""
    pages = [(f"http://a.example/{n}", Answer(pdf([f"words {n}"]), headers=PDF)) for n in range(3)]
    folder, before = archive(tmp_path / "crawl", pages), children()
    beside: dict[str, set[str]] = {"read": set()}
    with Indexer(folder, progress=lambda phase, *_: beside.setdefault(phase, set()).update(children() - before)) as new:
        assert new.run().documents == 3
    assert len(beside.pop("read")) == 1 and not set().union(*beside.values()) and "write" in beside
