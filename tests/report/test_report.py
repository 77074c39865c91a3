"""The report: what it says is what the tables say; it stands alone, and shows hostile text as text."""

import io
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from commands import told
from crawl.runs import crawl, settings
from disks import small_disk
from fyke.archive.reading import read_table
from fyke.core.config import build, render
from fyke.lab.simweb import lively, running_web
from fyke.report.charts import binned, bytes_mark, clock_ticks
from fyke.report.page import write_report
from fyke.report.shown import shown
from fyke.report.sql import Questions
from fyke.report.survey import survey
from search.archives import Answer, Archive, html, indexed

NOW_S = 1_795_100_000.0


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web")
    with running_web(lively(pages=200, hosts=20, crawl_delay_s=0.1)) as web:
        store = {"table_rows": 150, "checkpoint_s": 1.0}
        run = crawl(folder / "crawl", settings(folder, web, store=store), *web.seeds, "--scope", "web")
        assert run.status == 0, run.errors
    return folder / "crawl"


def reported(directory: Path, out: Path) -> str:
    assert write_report(directory, out, Console(file=io.StringIO()), NOW_S) == out
    return out.read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Tags with their attributes, and the text of table rows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def stands_alone(text: str) -> Tags:
    """Nothing in the page is loaded from elsewhere or runs; returns its tags."""
    page = Tags(text)
    assert not {"script", "link", "iframe", "img", "object", "embed", "form", "a"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "action")]
        assert all((attributes.get(name) or "#").startswith("#") for name in ("href", "xlink:href"))
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    return page


def pages_of(crawled: Path) -> list[dict[str, Any]]:
    """The rows of the pages table but those of sitemaps and feeds."""
    return [row for row in read_table(crawled, "pages").to_pylist() if row["kind"] != "listing"]


def test_it_says_what_the_tables_say(crawled: Path, tmp_path: Path) -> None:
    text = reported(crawled, tmp_path / "report.html")
    rows = {row[0]: row[1:] for row in stands_alone(text).rows if row}
    pages = pages_of(crawled)
    ok = [page for page in pages if page["outcome"] == "ok"]
    html_pages = [page for page in ok if page["media_type"] in ("text/html", "application/xhtml+xml")]
    assert rows["HTML pages"][0] == f"{len(html_pages):,}"
    codes = Counter(page["status"] for page in pages if page["url"].startswith("http") and page["warc_file"])
    assert rows["200 OK"][0] == f"{codes[200]:,}"
    assert rows["200 OK"][2] == "87 %" and rows["image/gif"][2] == "17.9 %"
    assert rows["Links on an HTML page"][1] == "59"
    for title in (
        "Pages over time",
        "Media types",
        "Sizes",
        "Depth",
        "Languages",
        "Links between domains",
        "Slowest to answer",
    ):
        assert title in text
    domains = read_table(crawled, "domains").to_pylist()
    best = max(domains, key=lambda row: (row["in_degree"], row["fetched"]))
    assert any(row[1:3] == [best["domain"], str(best["in_degree"])] for row in stands_alone(text).rows)
    assert 'role="img"' not in text  # the words in a picture are read aloud
    assert text.count("<svg") == 7 and "var(--ink)" in text and "prefers-color-scheme: dark" in text


def test_sums(crawled: Path) -> None:
    pages = pages_of(crawled)
    with Questions(crawled) as questions:
        found = survey(questions)
    totals = found.totals
    ok = [page for page in pages if page["outcome"] == "ok"]
    assert (totals.visits, totals.pages) == (len(pages), len(ok))
    assert totals.links == sum(page["links"] for page in pages)
    assert totals.content_bytes == sum(page["content_bytes"] for page in ok)
    assert totals.url_bytes == pytest.approx(np.mean([len(page["url"].partition("://")[2]) for page in pages]))
    assert sum(row[1] + row[2] for row in found.sizes) == sum(row[1] for row in found.depths) == len(ok)
    assert sum(row[2] for row in found.stretches) == len(pages) == sum(row[1] for row in found.outcomes)
    assert found.hosts.hosts == len({page["host"] for page in pages})
    by_domain = Counter(page["domain"] for page in ok)
    assert found.hosts.largest == max(by_domain.values())
    worst = Counter(
        page["host"] for page in pages if page["outcome"] in ("no_such_name", "broken_off", "timed_out", "stalled")
    )
    assert not worst or found.hosts.failing[0][1] == max(worst.values())


def test_the_same_crawl_gives_the_same_report(crawled: Path, tmp_path: Path) -> None:
    assert reported(crawled, tmp_path / "a.html") == reported(crawled, tmp_path / "b.html")


def begun(folder: Path, seed: str) -> Archive:
    made = Archive(folder, table_rows=5)
    (folder / "fyke.toml").write_text(render(build({"crawl": {"seeds": [seed]}}, "test")))
    return made


def test_a_crawl_that_has_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    folder.mkdir()
    (folder / "fyke.toml").write_text(render(build({"crawl": {"seeds": ["http://a.example/"]}}, "test")))
    text = reported(folder, tmp_path / "x.html")
    assert "Nothing was fetched yet" in text and "<svg" not in text
    stands_alone(text)


def test_a_crawl_that_has_not_ended(tmp_path: Path) -> None:
    """With rows in journals, and no tables of hosts and domains."""
    made = begun(tmp_path / "crawl", "http://a.example/")
    for number in range(7):
        made.visit(f"http://a.example/{number}", html("A page", "Words of a page. " * 20))
    made.failure("http://b.example/")
    made.flush()
    text = reported(made.folder, tmp_path / "x.html")
    made.close()
    rows = {row[0]: row[1:] for row in stands_alone(text).rows if row}
    assert rows["HTML pages"][0] == "7" and "when the crawl stops" in text


def test_domains_unlike_the_others(tmp_path: Path) -> None:
    """A farm of twelve among fifty that link to the first of them."""
    made = begun(tmp_path / "crawl", "http://a.example/")
    honest, farm = (
        [f"http://{kind}{number}.example/" for number in range(size)] for kind, size in (("h", 50), ("f", 12))
    )
    for number, url in enumerate(honest):
        few = [honest[number * step % 49] for step in (1, 2, 3, 5, 7)]
        made.visit(url, html("Honest", f"Words of {number}. " * 9, dict.fromkeys(few, "a link")))
    for number, url in enumerate(farm):
        made.visit(url, html("Farm", f"Words of {number}. " * 9, dict.fromkeys(farm, "a link")))
    made.close()
    indexed(made.folder)
    text = reported(made.folder, tmp_path / "x.html")
    rows = {row[0]: row[1:] for row in stands_alone(text).rows if row and "others link to those" in row[-1]}
    assert set(rows) == {f"f{number}.example" for number in range(12)}
    assert rows["f0.example"][:2] == ["11", "1"] and "Domains unlike the others" in text


HOSTILE = "<script>alert(1)</script>\u202egpj.exe\x00\x1b[2J$\\frac{1}{0}$</svg>"


def test_hostile_text(tmp_path: Path) -> None:
    without_nul = HOSTILE.replace("\x00", "")  # neither settings nor a head may hold one
    made = begun(tmp_path / "crawl", f"http://a.example/{without_nul}")
    for number, kind in enumerate((without_nul, "$x_$/$y^$", "text/html;</style><script>x</script>")):
        made.visit(f"http://xn--{number}a.example/<script>", Answer("x", headers={"Content-Type": kind}))
    rows = made._pages._waiting  # what a server sends is checked before it comes here; as if it were not
    made._pages._waiting = [(*row[:13], HOSTILE, *row[14:]) for row in rows]
    made.close()
    text = reported(made.folder, tmp_path / "x.html")
    stands_alone(text)
    assert "<script" not in text and "\u202e" not in text and "\x00" not in text and "\x1b" not in text
    assert "&lt;U+202E&gt;" in text and "alert(1)" in text


def test_what_is_shown() -> None:
    assert shown("a\u202eb\tc\ud800") == "a<U+202E>b<U+0009>c?"
    assert shown("x" * 200, 10) == "x" * 9 + "…"


def test_marks_are_few_and_round() -> None:
    degree = np.arange(1, 200_001, dtype=np.float64)
    x, y = binned(degree, np.ones(200_000))
    assert len(x) < 60 and np.all(np.diff(x) > 0) and np.allclose(y[:-1], 1, rtol=0.1)
    for span_s in (3, 50, 3000, 86_400, 20 * 86_400, 900 * 86_400):
        ticks = clock_ticks(NOW_S, NOW_S + span_s)
        assert 1 <= len(ticks) <= 6 and len({text for _, text in ticks}) == len(ticks)
    assert [bytes_mark(power) for power in (0, 9, 10, 25)] == ["1 B", "512 B", "1 kB", "32 MB"]


# -- mistakes ----------------------------------------------------------------------------------------


def test_wrong_usage(crawled: Path, tmp_path: Path) -> None:
    for out, words in (
        (tmp_path / "none" / "x.html", "make it"),
        (tmp_path, "is a folder"),
        (tmp_path / "x.pdf", ".html"),
    ):
        told(2, ["report", str(crawled), "--out", str(out)], [words])
    told(3, ["report", str(tmp_path)], ["holds no crawl"])
    assert not list(tmp_path.iterdir())


def test_a_full_disk(crawled: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "16k") as disk:
        (disk / "x.html").write_text("before")
        told(4, ["report", str(crawled), "--out", str(disk / "x.html")], ["x.html", "free some"])
        assert (disk / "x.html").read_text() == "before" and len(list(disk.iterdir())) == 1
