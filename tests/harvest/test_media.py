"""What kind of thing an answer is."""

from collections.abc import Callable
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest

from fyke.core.visits import Exchange
from fyke.harvest.media import FTP_LISTING, GOPHER_MENU, describe

Answer = Callable[..., Exchange]


def zipped(files: dict[str, str], method: int = ZIP_DEFLATED) -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w", method) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("text/html", ("text/html", "")),
        ("Text/HTML; Charset=UTF-8", ("text/html", "utf-8")),
        ('text/html;charset="koi8-r"; x=y', ("text/html", "koi8-r")),
        ("text/html; x=y;charset = 'utf-8'", ("text/html", "utf-8")),
        ("image/png", ("image/png", "")),
        ("application/octet-stream", ("application/octet-stream", "")),
        ("; charset=utf-8", ("text/plain", "utf-8")),
        ("nonsense", ("text/plain", "")),
        ("*/*", ("text/plain", "")),
        ("text/x y", ("text/plain", "")),
        (f"text/{'x' * 128}; charset=utf-8", ("text/plain", "utf-8")),
        (f"text/html;{' ' * 1024}charset=utf-8", ("text/html", "")),
        ("", ("text/plain", "")),
    ],
)
def test_what_the_server_says(answer: Answer, field: str, expected: tuple[str, str]) -> None:
    assert describe(answer(media_type=field), b"just words") == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["text/plain", "text/html"], ("text/html", "")),
        (["text/html", "image/png"], ("image/png", "")),
        (["text/html; charset=koi8-r", "text/html"], ("text/html", "koi8-r")),
        (["text/html; charset=koi8-r", "text/html; charset=utf-8"], ("text/html", "utf-8")),
        (["text/plain; charset=koi8-r", "text/html"], ("text/html", "")),
        (["text/html", "", "nonsense", "*/*"], ("text/html", "")),
        (["", "nonsense"], ("text/plain", "")),
    ],
)
def test_of_several_types_the_last_counts_as_in_browsers(
    answer: Answer, fields: list[str], expected: tuple[str, str]
) -> None:
    """A server says what it takes all files for, and the program behind it what this one is."""
    assert describe(answer(media_type="\r\nContent-Type: ".join(fields)), b"just words") == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "text/plain"),
        (b" \n <!DOCTYPE HTML><p>", "text/html"),
        (b"\xef\xbb\xbf<html>", "text/html"),
        (b"<!-- x -->", "text/html"),
        (b"<a href=x>", "text/html"),
        (b"<abbr>", "text/plain"),
        (b"<?xml version='1.0'?>", "text/xml"),
        (b"%PDF-1.7", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n...", "image/png"),
        (b"GIF89a", "image/gif"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF....WEBPVP8 ", "image/webp"),
        (b"RIFF....WAVEfmt ", "audio/wave"),
        (b"\x00\x00\x00\x18ftypmp42", "video/mp4"),
        (b"\x1f\x8b\x08\x00", "application/x-gzip"),
        (b"PK\x03\x04", "application/zip"),
        (b"words \x00 and", "application/octet-stream"),
        (b"\xfe\xff\x00a", "text/plain"),
        ("só".encode(), "text/plain"),
    ],
)
def test_what_the_bytes_say(answer: Answer, content: bytes, expected: str) -> None:
    assert describe(answer(media_type=""), content)[0] == expected
    assert describe(answer(media_type="unknown/unknown"), content)[0] == expected


ODT, DOCX = "application/vnd.oasis.opendocument.text", "application/vnd.openxmlformats-officedocument"
ZIPPED_ODT = zipped({"mimetype": ODT, "content.xml": "x"}, ZIP_STORED)
DOCUMENTS = {
    "application/pdf": b"%PDF-1.7",
    "application/epub+zip": zipped({"mimetype": "application/epub+zip", "a.xhtml": "x"}, ZIP_STORED),
    ODT: ZIPPED_ODT,
    f"{DOCX}.wordprocessingml.document": zipped({"[Content_Types].xml": "x", "word/document.xml": "x" * 9999}),
    f"{DOCX}.spreadsheetml.sheet": zipped({"[Content_Types].xml": "x", "xl/workbook.xml": "x"}),
    f"{DOCX}.presentationml.presentation": zipped({"[Content_Types].xml": "x", "ppt/presentation.xml": "x"}),
}


@pytest.mark.parametrize(("kind", "content"), DOCUMENTS.items())
@pytest.mark.parametrize(
    "said",
    [
        *("application/octet-stream", "Application/X-Download", "binary/octet-stream", "application/zip", "*/*"),
        *("application/msword", "application/vnd.ms-excel", "application/vnd.ms-word.document.macroEnabled.12"),
        *(DOCX, f"{DOCX}.presentationml.slideshow", "application/x-pdf", "application/x-epub+zip"),
    ],
)
def test_documents_called_files_or_by_names_of_their_kin(answer: Answer, said: str, kind: str, content: bytes) -> None:
    assert describe(answer(media_type=said), content)[0] == kind


@pytest.mark.parametrize("number", ["", "2", "22"])
def test_parts_of_documents_may_have_numbers(answer: Answer, number: str) -> None:
    content = zipped({"[Content_Types].xml": "x", f"word/document{number}.xml": "x"})
    assert describe(answer(media_type="application/zip"), content)[0] == f"{DOCX}.wordprocessingml.document"


def test_files_that_are_no_documents_stay_what_servers_call_them(answer: Answer) -> None:
    for said in (
        "application/octet-stream",
        "application/zip",
        "application/msword",
        f"{DOCX}.presentationml.template",
    ):
        for content in (
            b"",
            b"<html><a href=x>",
            b"PK\x03\x04",
            zipped({"word/document.xml": "x"}),
            b"\x89PNG\r\n\x1a\n",
        ):
            assert describe(answer(media_type=said), content)[0] == said


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"%PDF-1.7\n1 0 obj", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (ZIPPED_ODT, ODT),
        (b"GIF89a is a format", "text/html"),
        (b"BM words", "text/html"),
        ("<p>words".encode("utf-16-le"), "text/html"),
    ],
)
def test_files_called_html(answer: Answer, content: bytes, expected: str) -> None:
    assert describe(answer(media_type="text/html; charset=utf-8"), content)[0] == expected


def test_servers_that_call_everything_text(answer: Answer) -> None:
    assert describe(answer(media_type="text/plain"), b"\x00\x01")[0] == "application/octet-stream"
    assert describe(answer(media_type="text/plain; charset=UTF-8"), b"<html>")[0] == "text/plain"
    assert describe(answer(media_type="text/plain; charset=utf-8"), b"\x00\x01")[0] == "text/plain"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"<rss version='2.0'>", "application/rss+xml"),
        (b"<?xml version='1.0'?>\n<!-- c --><feed xmlns='x'>", "application/atom+xml"),
        (b"<?xml version='1.0'?><rdf:RDF xmlns='x'>", "application/rss+xml"),
        (b"<?xml version='1.0'?><!DOCTYPE html><html>", "text/html"),
        (b"<feedback>", "text/html"),
    ],
)
def test_feeds_called_html(answer: Answer, content: bytes, expected: str) -> None:
    assert describe(answer(media_type="text/html"), content)[0] == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ftp://h/pub/", FTP_LISTING),
        ("ftp://h/pub/a.html", "text/html"),
        ("ftp://h/pub/a.txt", "text/plain"),
        ("ftp://h/sitemap.xml.gz", "application/gzip"),
        ("ftp://h/a.tar.bz2", "application/octet-stream"),
        ("ftp://h/README", "application/octet-stream"),
        ("gopher://h/", GOPHER_MENU),
        ("gopher://h/1/menu", GOPHER_MENU),
        ("gopher://h/7/search", GOPHER_MENU),
        ("gopher://h/0/text", "text/plain"),
        ("gopher://h/h/page", "text/html"),
        ("gopher://h/g/x", "image/gif"),
        ("gopher://h/I/x.png", "image/png"),
        ("gopher://h/9/x", "application/octet-stream"),
    ],
)
def test_protocols_without_headers(answer: Answer, url: str, expected: str) -> None:
    assert describe(answer(url), b"<html>") == (expected, "")
