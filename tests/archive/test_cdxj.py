"""The index: sorted in bounded memory, and right about every record."""

from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st

from fyke.archive.cdxj import media_type_of, read_lines, sort_lines
from fyke.archive.records import Original
from fyke.archive.warc import WarcWriter
from fyke.core.document import Document


@given(lines=st.lists(st.text("abc", max_size=30).map(lambda t: t.encode() + b"\n")), memory=st.integers(1, 200))
def test_sorting_in_any_memory_is_sorting(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], memory: int
) -> None:
    folder = tmp_path_factory.mktemp("sort")
    (folder / "in").write_bytes(b"".join(lines))
    sort_lines(folder / "in", folder / "out", memory)
    assert (folder / "out").read_bytes() == b"".join(sorted(lines))
    assert sorted(path.name for path in folder.iterdir()) == ["in", "out"]


def test_each_line_leads_to_its_record(folder: Path, make_exchange) -> None:
    writer = WarcWriter(folder, 1 << 30, "test")
    first = writer.write(make_exchange("http://www.example.org/b?x=1"))
    original = Original("http://www.example.org/", first.date, first.digest)
    writer.write(make_exchange("http://www.example.org/a"), refers_to=original)
    writer.write(make_exchange("http://www.example.org/robots.txt", b"User-agent: *\n"))
    writer.write(
        make_exchange("gopher://gopher.example/1/", b"menu", head=b"", request=b""),
        media_type="application/gopher-menu",
    )
    writer.close()
    lines = list(read_lines(folder / "warc/fyke-crawl-00000.cdxj"))
    assert [line[0] for line in lines] == [
        "example,gopher)/1",
        "org,example)/a",
        "org,example)/b?x=1",
        "org,example)/robots.txt",
    ]
    assert [line[2]["mime"] for line in lines] == ["application/gopher-menu", "warc/revisit", "text/html", "text/html"]
    assert {line[1] for line in lines} == {"20261118110640"}
    for _, _, fields in lines:
        with (folder / "warc" / fields["filename"]).open("rb") as file:
            file.seek(int(fields["offset"]))
            record = next(ArchiveIterator(file, parse_http=False))
            assert record.headers["WARC-Target-URI"] == fields["url"]
            assert ("status" in fields) == (record.headers["WARC-Type"] != "resource")


def test_media_types_are_read_from_heads() -> None:
    assert media_type_of(b"HTTP/1.1 200 OK\r\ncontent-TYPE:text/html;charset=x\r\n\r\n") == "text/html"
    assert media_type_of(b"HTTP/1.1 200 OK\r\nContent-Type:\r\nX: y\r\n\r\n") == ""
    assert media_type_of(b"HTTP/1.1 200 OK\r\n\r\n") == ""


def test_a_quote_in_a_media_type_stays_json(folder: Path, make_exchange) -> None:
    writer = WarcWriter(folder, 1, "test")
    writer.write(make_exchange(head=b'HTTP/1.1 200 OK\r\nContent-Type: te"x\\t/\xe9\r\n\r\n', body=Document(b"")))
    writer.close()
    ((_, _, fields),) = read_lines(folder / "warc/fyke-crawl-00000.cdxj")
    assert fields["mime"] == 'te"x\\t/é'
