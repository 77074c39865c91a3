"""An archive with a hole in it: what can be read is exported and indexed, and the rest is told."""

import json
from pathlib import Path

import pytest

from crawl.runs import fyke_here as fyke
from fyke.archive.reading import read_table
from search.archives import archive, html

PAGES = 12


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, set[str]]:
    """A crawl, and the URLs of two pages of it: in the record of one a byte was changed, the other ends too soon."""
    urls = [f"http://a.example/{n}" for n in range(PAGES)]
    made = archive(tmp_path / "crawl", [(url, html(f"Plum {url}", f"Plums of {url}. " * 30)) for url in urls])
    rows = read_table(made, "pages").to_pylist()
    first, last = rows[3], rows[-1]
    file = made / first["warc_file"]
    data = bytearray(file.read_bytes())
    data[first["warc_offset"] + first["warc_length"] // 2] ^= 0xFF
    del data[last["warc_offset"] + last["warc_length"] - 6 :]
    file.write_bytes(data)
    return made, {first["url"], last["url"]}


@pytest.mark.parametrize("to", ["jsonl", "parquet", "markdown"])
def test_an_export_says_what_it_lacks(damaged: tuple[Path, set[str]], to: str) -> None:
    crawl, lost = damaged
    out = crawl.parent / "told.jsonl"
    done = fyke("export", str(crawl), "--to", to, *(("--out", str(out)) if to == "jsonl" else ()))
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("fyke: 2 pages could not be read from the archive") and f"fyke check {crawl}" in line
    if to == "jsonl":
        told = {json.loads(line)["url"] for line in out.read_text().splitlines()}
        assert len(told) == PAGES - len(lost) and not told & lost


def test_an_index_says_what_it_lacks_each_time(damaged: tuple[Path, set[str]]) -> None:
    crawl, _ = damaged
    for _ in range(2):
        done = fyke("index", str(crawl))
        assert done.returncode == 1 and f"{PAGES - 2} pages can be found" in done.stdout
        assert done.stderr.startswith("fyke: 2 pages could not be read from the archive") and "again" in done.stderr


def test_an_archive_that_is_gone(damaged: tuple[Path, set[str]]) -> None:
    crawl, _ = damaged
    (crawl / "warc").rename(crawl / "elsewhere")
    done = fyke("export", str(crawl), "--to", "jsonl", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["unreadable"] == PAGES
