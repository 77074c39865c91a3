"""Office documents and books are read like PDF files: what they say, in order, within limits."""

import io
import zipfile
from collections.abc import Iterator
from html.entities import html5
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.runs import archived, crawl, fyke
from crawl.runs import settings as crawl_settings
from crawl.small_site import small_site
from fyke.harvest import office_worker
from fyke.harvest.documents import DOCUMENT_TYPES, MOST_FAULTS, Documents
from fyke.harvest.office_worker import FAULTS, MOST_CHARS, WORK_S, read_office
from harvest.pdfs import pdf
from harvest.test_documents import page_of

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
LINK = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink"
CORE = '<p:coreProperties xmlns:p="p" xmlns:dc="dc"><dc:title>On plums</dc:title></p:coreProperties>'
ODF = 'xmlns:t="urn:t" xmlns:x="http://www.w3.org/1999/xlink" xmlns:o="urn:o"'


def packed(parts: dict[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, text)
    return data.getvalue()


def relations(*targets: str) -> str:
    rows = "".join(f'<Relationship Id="r" Type="{LINK}" Target="{one}" TargetMode="External"/>' for one in targets)
    return f'<Relationships xmlns="{RELATIONS}">{rows}<Relationship Type="x/image" Target="i.png"/></Relationships>'


def docx(body: str, *targets: str) -> bytes:
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "docProps/core.xml": CORE,
            "word/_rels/document.xml.rels": relations(*targets),
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        }
    )


def paragraph(*runs: str) -> str:
    return (
        f"<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>{''.join(f'<w:r><w:t>{run}</w:t></w:r>' for run in runs)}</w:p>"
    )


BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<c><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></c>',
    "OPS/book.opf": '<package xmlns:dc="dc"><metadata><dc:title>On plums</dc:title></metadata><manifest>'
    '<item id="a" href="one%20.xhtml"/><item id="b" href="two.xhtml"/></manifest>'
    '<spine><itemref idref="b"/><itemref idref="a"/></spine></package>',
    "OPS/one .xhtml": "<html><head><title>no</title></head><body><p>Last</p><script>no</script></body></html>",
    "OPS/two.xhtml": '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "x.dtd"><html><body><h1>First</h1>'
    '<p>of&nbsp;all <a href="http://a.example/1">x</a><a href="one%20.xhtml">y</a></p></body></html>',
}
SHEET = {
    "[Content_Types].xml": "<Types/>", "docProps/core.xml": CORE,
    "xl/sharedStrings.xml": "<sst><si><t>plum</t></si><si><r><t>st</t></r><r><t>one</t></r>"
    "<rPh><t>no</t></rPh></si></sst>",
    "xl/worksheets/sheet2.xml": "<worksheet><row><c t='inlineStr'><is><t>second</t></is></c></row></worksheet>",
    "xl/worksheets/sheet1.xml": "<worksheet><row><c t='s'><v>1</v></c><c><f>1+1</f><v>2.5</v></c><c t='s'><v>7</v></c>"
    "</row><row><c t='s'><v>0</v></c></row></worksheet>",
}  # fmt: skip
KINDS: dict[str, tuple[bytes, str, list[str]]] = {
    "docx": (
        docx(paragraph("A ", "plum") + "<w:p><w:r><w:tab/><w:t>is</w:t><w:br/><w:t>fruit</w:t></w:r></w:p>"
             + "<w:p><w:del><w:r><w:delText>no</w:delText></w:r></w:del></w:p>", "http://a.example/1", "b.html"),
        "A plum\n\tis\nfruit", ["http://a.example/1", "b.html"],
    ),
    "pptx": (
        packed({
            "[Content_Types].xml": "<Types/>", "docProps/core.xml": CORE,
            "ppt/slides/slide10.xml": f"<s {A}><a:p><a:r><a:t>last</a:t></a:r></a:p></s>",
            "ppt/slides/slide2.xml": f"<s {A}><a:p><a:r><a:t>first</a:t></a:r></a:p></s>",
            "ppt/slides/_rels/slide2.xml.rels": relations("http://a.example/1"),
        }),
        "first\nlast", ["http://a.example/1"],
    ),
    "xlsx": (packed(dict(SHEET)), "stone\t2.5\nplum\nsecond", []),
    "odt": (
        packed({
            "mimetype": "application/vnd.oasis.opendocument.text",
            "meta.xml": "<m xmlns:dc='dc'><dc:title>On plums</dc:title></m>",
            "content.xml": f"<o:c {ODF}><t:tracked-changes><t:p>no</t:p></t:tracked-changes><t:h>Head</t:h>"
            "<t:p>a<t:s/>b<t:tab/>c<t:line-break/><t:a x:href='http://a.example/1'>link</t:a>"
            "<t:a x:href='#no'>.</t:a></t:p></o:c>",
        }),
        "Head\na b\tc\nlink.", ["http://a.example/1"],
    ),
    "epub": (packed(dict(BOOK)), "First\nof all xy\nLast", ["http://a.example/1"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def documents() -> Iterator[Documents]:
    reader = Documents()
    yield reader
    reader.close()


@pytest.mark.parametrize("kind", KINDS)
def test_title_text_and_links(kind: str, documents: Documents) -> None:
    content, text, links = KINDS[kind]
    page = page_of(content)
    documents.process(page)
    assert (page.title, page.text, page.links.pages) == ("On plums", text, links), page.findings


@pytest.mark.parametrize("number", ["", "2", "22"])
def test_parts_may_have_numbers(number: str, documents: Documents) -> None:
    """Some servers of Microsoft number the text of a document, in copies that they send."""
    text = f"<w:document {W}><w:body>{paragraph('A plum')}</w:body></w:document>"
    content = packed({"[Content_Types].xml": "<Types/>", f"word/document{number}.xml": text})
    page = page_of(content)
    documents.process(page)
    assert page.text == "A plum"


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)


@given(st.lists(TEXTS, max_size=20))
def test_all_that_paragraphs_say_is_there_in_order(texts: list[str]) -> None:
    escaped = [text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for text in texts]
    assert read_office(docx("".join(map(paragraph, escaped))))["text"] == "\n".join(texts)


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), at=st.floats(0, 1), damage=st.binary(min_size=1, max_size=9))
def test_whatever_the_bytes_nothing_else_is_raised(kind: str, at: float, damage: bytes) -> None:
    whole = KINDS[kind][0]
    place = int(at * len(whole))
    try:
        said: dict[str, Any] = read_office(whole[:place] + damage + whole[place + len(damage) :])
    except (*FAULTS, ValueError):
        return
    assert isinstance(said["text"], str)


def test_a_cell_without_its_string_costs_itself_alone(documents: Documents) -> None:
    """Python reads no number of five thousand digits."""
    cells = f"<c t='s'><v>{'9' * 5000}</v></c><c t='s'><v>0</v></c>"
    page = page_of(packed({**SHEET, "xl/worksheets/sheet1.xml": f"<worksheet><row>{cells}</row></worksheet>"}))
    documents.process(page)
    assert page.text == "\tplum\nsecond" and not page.exchange.detail


@pytest.mark.parametrize(
    "doctype", ["", "<!DOCTYPE html>", '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "x.dtd">']
)
def test_characters_of_a_book_may_have_names(doctype: str) -> None:
    """Those of HTML, whether the book says so or not; others are blanks."""
    names = [name for name in html5 if name.endswith(";")]
    lines = "".join(f"<p>a&{name}b</p>" for name in names)
    chapter = f"{doctype}<html><body>{lines}<p>a&nobody;b</p></body></html>"
    told = read_office(packed({**BOOK, "OPS/two.xhtml": chapter, "OPS/one .xhtml": "<html/>"}))["text"]
    assert told == "\n".join(f"a{html5[name]}b" for name in names).replace("\xa0", " ") + "\na b"


@pytest.mark.parametrize("root", ["", "OPS/", "OPS/deep/"])
@pytest.mark.parametrize("folder", ["", "OPS/", "Text/", "OPS/Text/"])
@pytest.mark.parametrize("before", ["", "./", "x/../"])
def test_chapters_are_found_wherever_they_are(root: str, folder: str, before: str) -> None:
    """Their names are relative URLs, also with dots, and a part of a chapter is named behind it."""
    up = before + "../" * root.count("/") + folder
    items = f'<item id="a" href="{up}one%20.xhtml"/><item id="b" href="{up}two.xhtml#first"/>'
    order = '<itemref idref="b"/><itemref idref="a"/>'
    book = {
        "META-INF/container.xml": f'<c><rootfile full-path="{root}book.opf"/></c>',
        f"{root}book.opf": f"<package><manifest>{items}</manifest><spine>{order}</spine></package>",
        f"{folder}one .xhtml": BOOK["OPS/one .xhtml"],
        f"{folder}two.xhtml": BOOK["OPS/two.xhtml"],
    }
    assert read_office(packed(book))["text"] == KINDS["epub"][1]


def damaged(number: int) -> bytes:
    """A document whose packed text is none."""
    whole = bytearray(docx(paragraph(*"plums"), f"/{number}"))
    begin = whole.index(b"word/document.xml") + len("word/document.xml")
    whole[begin : begin + 4] = b"\xff" * 4
    return bytes(whole)


def test_damaged_documents_cost_their_own_text(documents: Documents) -> None:
    """However many, the others of their domain are read by the same process, and it is said which were not."""
    whole = page_of(KINDS["docx"][0])
    documents.process(page_of(KINDS["docx"][0]))
    process = documents._process
    for number in range(2 * MOST_FAULTS):
        page = page_of(damaged(number))
        documents.process(page)
        assert page.text == "" and "decompress" in page.findings["Documents"]["fault"]
        assert page.exchange.detail == f"not read as a document: {page.findings['Documents']['fault']}"
    documents.process(whole)
    assert whole.text and whole.exchange.detail == "" and documents._process is process


def bomb(name: str) -> bytes:
    base: dict[str, str | bytes] = {"[Content_Types].xml": "<Types/>"}
    if name == "text":
        body = paragraph("x" * 1000) * 20_000
        return packed({**base, "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>"})
    if name == "nothing":
        return packed({**base, "word/document.xml": b"<a>" + b" " * (100 << 20) + b"</a>"})
    if name == "parts":
        part = b"<s>" + b"<a/>" * 400_000 + b"</s>"
        return packed({**base, **{f"ppt/slides/slide{n}.xml": part for n in range(99)}})
    if name == "depth":
        return packed({**base, "word/document.xml": b"<a>" * 5_000_000})
    if name == "entities":
        entities = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10 if n else 'x' * 100}'>" for n in range(9))
        return packed({**base, "word/document.xml": f"<!DOCTYPE d [{entities}]><d>&e8;</d>"})
    if name == "names":
        return packed({**base, **{f"word/_rels/{n}.rels": "" for n in range(200_000)}})
    if name == "absent":
        files = "".join(f'<item id="{n}" href="{n}"/><itemref idref="{n}"/>' for n in range(5_000))
        parts: dict[str, str | bytes] = {str(n): "" for n in range(50_000)}
        return packed({**BOOK, "OPS/book.opf": f"<p>{files}</p>", **parts})
    cell = '<c t="s"><v>0</v></c>'
    many: dict[str, str | bytes] = {**SHEET, "xl/sharedStrings.xml": f"<sst><si><t>{'x' * 9_000_000}</t></si></sst>"}
    return packed({**many, "xl/worksheets/sheet1.xml": f"<w>{cell * 100_000}</w>"})


@pytest.mark.parametrize("name", ["text", "nothing", "parts", "depth", "entities", "names", "absent", "strings"])
def test_a_bomb_costs_no_more_than_the_limits(name: str, documents: Documents) -> None:
    """It is read as far as they go, and what comes after it is read by the same process."""
    before, after = page_of(KINDS["docx"][0]), page_of(pdf(["words"]))
    documents.process(before)
    process = documents._process
    page = page_of(bomb(name))
    documents.process(page)
    assert len(page.text) <= MOST_CHARS
    assert page.cut or name in ("entities", "absent") or page.findings["Documents"].get("fault"), name
    assert not before.cut
    assert "could not be read" not in page.findings["Documents"].get("fault", ""), page.findings
    documents.process(after)
    assert after.text == "words" and documents._process is process


def test_parts_without_a_word_count_in_time_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    document = packed({"[Content_Types].xml": "", **{f"word/_rels/{n}.rels": "" for n in range(100)}})
    now = count(step=WORK_S / 10)
    monkeypatch.setattr(office_worker.time, "process_time", lambda: next(now))
    opened = []
    read = zipfile.ZipFile.open
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *of, **how: opened.append(of) or read(*of, **how))
    read_office(document)
    assert 0 < len(opened) <= 10


@pytest.mark.parametrize("chunks", range(12))
def test_a_limit_within_a_list_of_links_keeps_those_before(chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a list that is read in part, links are those that stand in what was read."""
    targets = [f"http://other.example/{number}" for number in range(9_000)]
    document = docx("", *targets)
    with zipfile.ZipFile(io.BytesIO(document)) as parts:
        listed = parts.read("word/_rels/document.xml.rels")
    read_bytes = chunks * office_worker.CHUNK_BYTES
    monkeypatch.setattr(office_worker, "UNFOLDED_BYTES", len(CORE) + read_bytes)
    said = read_office(document)
    assert said["links"] == targets[: listed[:read_bytes].count(b'TargetMode="External"/>')]
    assert said["cut"] and len(listed) > 11 * office_worker.CHUNK_BYTES


def test_crawled_indexed_exported(tmp_path: Path) -> None:
    into = tmp_path / "there"
    with small_site(pages=2) as site:
        body = "".join(
            paragraph("Plums (Prunus) are a fruit with a stone, and there is more to say of them.") for _ in "12345"
        )
        site.answers["/"] = 200, {"Content-Type": "text/html"}, b"<a href=/plums.docx>d</a><a href=/plums.epub>e</a>"
        site.answers["/plums.docx"] = 200, {"Content-Type": DOCUMENT_TYPES[2]}, docx(body, f"{site.url}p1")
        site.answers["/plums.epub"] = 200, {"Content-Type": "application/epub+zip"}, b"PK\x03\x04 and no more"
        run = crawl(into, crawl_settings(tmp_path), site.url)
        assert run.status == 0
        assert sorted(archived(into)) == sorted(f"{site.url}{name}" for name in ("", "p1", "plums.docx", "plums.epub"))
        url = f"{site.url}plums.docx"
    why = fyke("why", str(into), f"{site.url}plums.epub").stdout
    assert "not read as a document: File is not a zip file" in why
    assert fyke("index", str(into)).returncode == 0
    found = fyke("search", str(into), "prunus", "--json")
    assert found.returncode == 0 and url in found.stdout and "On plums" in found.stdout
    done = fyke("export", str(into), "--to", "jsonl", "--out", str(tmp_path / "pages.jsonl"))
    assert done.returncode == 0 and "fruit with a stone" in (tmp_path / "pages.jsonl").read_text()
