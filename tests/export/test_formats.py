"""Each format, read back by tools that know nothing of Fyke."""

import csv
import gzip
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections import Counter, defaultdict
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from urllib.parse import urljoin

import duckdb
import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from export.crawls import exported, lines
from fyke.archive.reading import read_table
from fyke.search.language import LanguageGuesser
from search.archives import Answer, archive, html

HOMES = ["http://a.example/", "http://a.example/a", "http://b.example/a", "http://b.example/long/way?x=1"]


def test_parquet(crawl_of_the_web: Path, tmp_path: Path) -> None:
    """A row for every visit, in order; text and language for pages that have one, of copies once."""
    folder = exported(crawl_of_the_web, "parquet", tmp_path / "pages")
    single = exported(crawl_of_the_web, "parquet", tmp_path / "pages.parquet")
    pages = read_table(crawl_of_the_web, "pages").to_pylist()
    query = "select url, outcome, warc_offset, text, language, fingerprint, media_type from '{}'"
    rows = duckdb.sql(query.format(f"{folder}/*.parquet")).fetchall()
    assert rows == duckdb.sql(query.format(single)).fetchall()
    assert [row[:3] for row in rows] == [(page["url"], page["outcome"], page["warc_offset"]) for page in pages]
    with_text = [row for row in rows if row[3]]
    assert len({row[5] for row in with_text}) == len(with_text) > 120
    assert {row[1] for row in with_text} == {"ok"}
    assert Counter(row[4] for row in with_text).most_common(1)[0][0] == "en"
    readable = {row[5] for row in rows if row[1] == "ok" and row[6] in ("text/html", "text/plain")}
    assert len(with_text) >= len(readable) - 3  # but for pages without words


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.jsonl.gz"])
def test_json_lines(crawl_of_the_web: Path, tmp_path: Path, name: str) -> None:
    path = exported(crawl_of_the_web, "jsonl", tmp_path / name)
    if name.endswith(".gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path = path.with_suffix("")
    entries = list(lines(path))
    pages = {page["url"]: page for page in read_table(crawl_of_the_web, "pages").to_pylist() if page["outcome"] == "ok"}
    assert len({entry["url"] for entry in entries}) == len({entry["fingerprint"] for entry in entries}) == len(entries)
    for entry in entries:
        page = pages[str(entry["url"])]
        assert entry["text"] and not page["noindex"] and entry["digest"] == page["digest"]
    assert any("\n\n" in str(entry["text"]) for entry in entries[:20])


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.jsonl.gz"])
def test_of_long_texts_a_few_are_in_memory(tmp_path: Path, name: str) -> None:
    head = {"Content-Type": "text/plain; charset=utf-8"}
    text = "some words of it " * 60_000
    visits = [(f"http://h.example/{number}", Answer(f"{number} {text}", headers=head)) for number in range(40)]
    folder = archive(tmp_path / "crawl", visits)
    LanguageGuesser().guess(text)  # loads its model
    tracemalloc.start()
    path = exported(folder, "jsonl", tmp_path / name)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 24 * len(text)
    written = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    entries = [json.loads(line) for line in written.splitlines()]
    assert [entry["text"][:9] for entry in entries] == [f"{number} {text}"[:9] for number in range(40)]


@settings(max_examples=25, deadline=None)
@given(
    visits=st.lists(st.tuples(st.sampled_from(HOMES), st.integers(0, 2)), min_size=1, max_size=14),
    named=st.tuples(*3 * [st.sampled_from(["", "/a", *HOMES, "http://elsewhere.example/"])]),
)
def test_of_exact_copies_the_one_that_they_name_is_exported_else_the_first(
    visits: list[tuple[str, int]], named: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever was there before: what counts is the newest visit to each page."""
    folder = tmp_path_factory.mktemp("copies")
    links = [f'<link rel="canonical" href="{address}">' if address else "" for address in named]
    archive(folder / "crawl", [(url, html(f"Body {n}", f"Words of body {n}.", head=links[n])) for url, n in visits])
    found = [
        (entry["title"], entry["url"]) for entry in lines(exported(folder / "crawl", "jsonl", folder / "out.jsonl"))
    ]
    newest = {url: (at, number) for at, (url, number) in enumerate(visits)}
    there: dict[int, list[str]] = defaultdict(list)
    for url, (_, number) in sorted(newest.items(), key=lambda item: item[1]):
        there[number].append(url)
    first = {number: next(url for url, n in visits if n == number) for number in there}
    expected = set()
    for number, urls in there.items():
        wanted = urljoin(first[number], named[number]) if named[number] else ""
        expected.add((f"Body {number}", wanted if wanted in urls else urls[0]))
    assert set(found) == expected and len(found) == len(expected)


def test_all_brings_copies_and_noindex(crawl_of_the_web: Path, tmp_path: Path) -> None:
    few = list(lines(exported(crawl_of_the_web, "jsonl", tmp_path / "few.jsonl")))
    all_ = list(lines(exported(crawl_of_the_web, "jsonl", tmp_path / "all.jsonl", everything=True)))
    assert {entry["url"] for entry in few} < {entry["url"] for entry in all_}
    assert any(entry["noindex"] for entry in all_)
    added = {str(entry["fingerprint"]) for entry in all_ if not entry["noindex"]}
    assert added == {str(entry["fingerprint"]) for entry in few}


def test_markdown(crawl_of_the_web: Path, tmp_path: Path) -> None:
    folder = exported(crawl_of_the_web, "markdown", tmp_path / "markdown")
    entries = {str(entry["url"]) for entry in lines(exported(crawl_of_the_web, "jsonl", tmp_path / "pages.jsonl"))}
    urls = set()
    for path in folder.rglob("*.md"):
        start, front, body = path.read_text().split("---\n", 2)
        facts = {name: json.loads(value) for name, value in (line.split(": ", 1) for line in front.splitlines())}
        assert not start and body.strip() and set(facts) == {"url", "title", "language", "fetched_at", "digest"}
        urls.add(facts["url"])
    assert urls == entries


def test_csv(crawl_of_the_web: Path, tmp_path: Path) -> None:
    path = exported(crawl_of_the_web, "csv", tmp_path / "pages.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    pages = read_table(crawl_of_the_web, "pages").to_pylist()
    assert [(row["url"], row["outcome"], int(row["key"])) for row in rows] == [
        (page["url"], page["outcome"], page["key"]) for page in pages
    ]
    assert duckdb.sql(f"select count(*) from '{path}'").fetchall() == [(len(pages),)]


@pytest.mark.parametrize("name", ["links", "links.parquet", "links.tsv", "links.tsv.gz"])
def test_links(crawl_of_the_web: Path, tmp_path: Path, name: str) -> None:
    path = exported(crawl_of_the_web, "links", tmp_path / name)
    where = (
        f"read_csv('{path}', delim='\t', quote='')"
        if ".tsv" in name
        else f"'{path}{'/*.parquet' if path.is_dir() else ''}'"
    )
    rows = duckdb.sql(f"select source, target, kind from {where}").fetchall()
    urls = {page["key"]: page["url"] for page in read_table(crawl_of_the_web, "pages").to_pylist()}
    kinds = ["page", "requisite", "nofollow", "redirect"]
    links = read_table(crawl_of_the_web, "links").to_pylist()
    assert rows == [(urls[link["source"]], link["target_url"], kinds[link["kind"]]) for link in links]


def test_wacz(crawl_of_the_web: Path, tmp_path: Path) -> None:
    path = exported(crawl_of_the_web, "wacz", tmp_path / "crawl.wacz")
    judge = subprocess.run(
        [sys.executable, "-m", "wacz", "validate", "-f", str(path)], capture_output=True, text=True, check=False
    )
    assert judge.returncode == 0 and "is valid" in judge.stdout, judge.stdout + judge.stderr
    with zipfile.ZipFile(path) as bundle:
        assert bundle.testzip() is None
        package = json.loads(bundle.read("datapackage.json"))
        assert {item["path"] for item in package["resources"]} == {
            name for name in bundle.namelist() if not name.startswith("datapackage")
        }
        for item in package["resources"]:
            assert item["hash"] == f"sha256:{sha256(bundle.read(item['path'])).hexdigest()}"
        archive = {
            item["path"]: bundle.read(item["path"]) for item in package["resources"] if "archive/" in item["path"]
        }
        index, beginnings = bundle.read("indexes/index.cdx.gz"), bundle.read("indexes/index.idx").splitlines()
        shown = [json.loads(line) for line in bundle.read("pages/pages.jsonl").splitlines()]
    assert archive == {f"archive/{file.name}": file.read_bytes() for file in (crawl_of_the_web / "warc").glob("*.gz")}
    indexed(index, beginnings, archive)
    assert shown[0]["format"] == "json-pages-1.0" and len(shown) > 120
    captured = {json.loads(line.split(b" ", 2)[2])["url"] for line in gzip.decompress(index).splitlines()}
    assert {page["url"] for page in shown[1:]} <= captured
    read = [
        len(list(iterate(BytesIO(data)))) for data in archive.values() for iterate in (ArchiveIterator, WarcioIterator)
    ]
    assert read[::2] == read[1::2] and min(read) > 1


def indexed(index: bytes, beginnings: list[bytes], archive: dict[str, bytes]) -> None:
    """The index is sorted, its blocks are where they are said to be, and every line leads to its record."""
    all_lines = gzip.decompress(index).splitlines()
    assert all_lines == sorted(all_lines)
    blocks = [json.loads(line.split(b" ", 2)[2]) for line in beginnings[1:]]
    found = [
        line
        for at in blocks
        for line in gzip.decompress(index[at["offset"] : at["offset"] + at["length"]]).splitlines()
    ]
    assert found == all_lines
    responses = 0
    for line in all_lines[::17]:
        place = json.loads(line.split(b" ", 2)[2])
        begin = int(place["offset"])
        member = archive[f"archive/{place['filename']}"][begin : begin + int(place["length"])]
        (record,) = ArchiveIterator(BytesIO(member))
        assert record.headers["WARC-Target-URI"] == place["url"]
        responses += 1
    assert responses
