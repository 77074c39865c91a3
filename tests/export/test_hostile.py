"""What strangers write stays text: in file names, front matter, Markdown, cells and lines."""

import csv
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.crawls import exported, lines
from fyke.core.urls import canonical, key_of, split
from fyke.export.notes import LONGEST, folder_name, page_name
from search.archives import Answer, Archive

PAGES = {
    "http://a.example/..%2f..%2f..%2fetc/passwd": "path",
    "http://a.example/%2e%2e/%2e%2e/x": "dots",
    "http://a.example/CON": "reserved",
    "http://a.example/con": "reserved too",
    "http://aux.example/": "reserved host",
    "http://a.example/x%00y%0az": "control",
    f"http://a.example/{'long/' * 300}": "long",
    "http://a.example/?q=%E2%80%AEfdp.exe": "direction",
    "http://[::1]/": "address",
    "http://xn--bcher-kva.example/b%C3%BCcher": "letters",
}
TITLES = [
    "=HYPERLINK(\"http://evil.example\")", "\uff20SUM(A1)", "\u200b\u2060\xad+1", "-2", "---\nurl: evil",
    '"},{"url": "evil', "a\u202eb\x00c\x1b[2J",
    "</script><script>alert(1)</script>", "\ufeff\uff1d1 tab\there", "'; drop table pages; --",
]  # fmt: skip
BODY = (
    "<main><h1># Not <em>two</em></h1><p>Text &lt;script&gt;alert(1)&lt;/script&gt; and [a](javascript:alert(1)) and "
    "`code` and *stars* and snake_case words, more and more of them, until there is enough of it to be a main part.</p>"
    "<p>1. not a list</p><p>- nor this</p><p>&gt; nor a quote</p><pre>``` a fence ```</pre>"
    "<p>\u202eturned\u202c and \x07rung and enough words that nothing else is taken for its content.</p></main>"
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Archive(tmp_path_factory.mktemp("hostile"))
    for (url, words), title in zip(PAGES.items(), TITLES, strict=True):
        escaped = title.replace("&", "&amp;").replace("<", "&lt;")
        found = canonical(url)
        assert found
        made.visit(found, Answer(f"<title>{escaped}</title><p>{words}</p>{BODY}"))
    made.close()
    return made.folder


def test_file_names(hostile: Path, tmp_path: Path) -> None:
    folder = exported(hostile, "markdown", tmp_path / "markdown")
    paths = list(folder.rglob("*.md"))
    assert len(paths) == len(PAGES)
    assert all(path.resolve().is_relative_to(folder.resolve()) for path in paths)
    assert len({str(path.relative_to(folder)).lower() for path in paths}) == len(PAGES)
    for path in paths:
        front = path.read_text(encoding="utf-8").split("---\n")[1]
        assert [line.split(":")[0] for line in front.splitlines()] == [
            "url",
            "title",
            "language",
            "fetched_at",
            "digest",
        ]


def test_markdown_is_only_text(hostile: Path, tmp_path: Path) -> None:
    folder = exported(hostile, "markdown", tmp_path / "markdown")
    text = next(folder.rglob("con-*.md")).read_text(encoding="utf-8")
    body = text.split("---\n", 2)[2]
    assert not re.search(r"(?<!\\)<script", body) and not re.search(r"(?<!\\)\[a\]\(", body)
    for line in ("# \\# Not two", "1\\. not a list", "\\- nor this", "\\> nor a quote", "snake_case"):
        assert line in body, body
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e]", text)


def test_lines_and_cells(hostile: Path, tmp_path: Path) -> None:
    path = exported(hostile, "jsonl", tmp_path / "x.jsonl")
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(PAGES) == len(list(lines(path)))
    assert all("\x1b" not in json.dumps(entry, ensure_ascii=False) for entry in lines(path))
    table = exported(hostile, "csv", tmp_path / "x.csv")
    with table.open(newline="", encoding="utf-8") as file:
        titles = [row["title"] for row in csv.DictReader(file)]
    seen = [re.sub("^[\u200b\u2060\xad\ufeff]+", "", title) for title in titles]
    assert len(titles) == len(PAGES) and not any(title[:1] in tuple("=@+-\uff1d\uff20\uff0b\uff0d") for title in seen)
    assert sum(title.startswith("'") for title in titles) == 7, "the last is one by itself"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of pages whose URLs and titles begin a formula behind what may separate cells."""
    folder = tmp_path_factory.mktemp("table")
    made = Archive(folder / "crawl")
    starts = (f"{quote}{unseen}{sign}" for quote in ("", '"', '""') for unseen in ("", "\u200b\xad") for sign in SIGNS)
    for number, start in enumerate(starts):
        formula = f"{start}cmd|' /C calc'!A0"
        url = canonical(f"http://a.example/{number};{start}1;")
        assert url
        made.visit(url, Answer(f"<title>x;{formula};;{formula};\t{formula}</title><p>{BODY}</p>"))
    made.close()
    return exported(made.folder, "csv", folder / "x.csv")


SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_no_cell_is_a_formula_whatever_separates_cells(table: Path, separator: str) -> None:
    """A spreadsheet may take semicolons for separators, even if the file has commas."""
    with table.open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file, delimiter=separator) for cell in row]
    text = [cell for cell in cells if not re.fullmatch(r"-?[\d.]+", cell)]
    assert len(cells) > 48 and not [cell for cell in text if re.match(f"[\u200b\xad]*[{re.escape(SIGNS)}]", cell)]


def test_no_cell_has_a_control_character(tmp_path: Path) -> None:
    """Neither those of ASCII nor those of eight bits, which some terminals obey as well."""
    made = Archive(tmp_path / "crawl")
    for code in (*range(1, 32), *range(127, 160)):
        made.visit(f"http://a.example/{code}", Answer(f"<title>a{chr(code)}b</title><p>{code}</p>{BODY}"))
    made.close()
    text = exported(made.folder, "csv", tmp_path / "x.csv").read_text(encoding="utf-8")
    assert text.count("\n") == 65 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


@given(st.text(max_size=300), st.text(alphabet="abc.-[]:0123_", max_size=30))
def test_names_of_any_url(path: str, host: str) -> None:
    url = canonical(f"http://{host or 'x'}/{path}") or canonical(f"http://x.example/{path}")
    if url is None:
        return
    names = [folder_name(split(url).host), page_name(url, key_of(url))]
    for name in names:
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*[a-z0-9]|[a-z0-9]", name) and ".." not in name
        assert len(name) <= LONGEST and not re.match(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", name)
