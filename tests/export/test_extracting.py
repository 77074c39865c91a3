"""Tables of what pages say: while crawling, out of the archive, in Python; the same rows, each once."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fyke
from crawl.runs import crawl, crawl_killed, settings
from crawl.runs import fyke as command
from crawl.small_site import SmallSite, small_site
from fyke.export.extracting import ArchivedPages, ExtractedFiles
from search.archives import Archive, html

TABLE = """
[[extract]]
table = "numbers"
match = "/p[0-9]+$"
fields.number = {{ select = "title", type = "integer" }}
fields.links = {{ select = "a::attr(href)", type = "url", many = true }}
fields.first = "{first}"
"""


@pytest.fixture
def site():
    with small_site(pages=120) as running:
        yield running


def asked(folder: Path, first: str = "a", **sections: dict[str, object]) -> Path:
    path = settings(folder, **sections)  # type: ignore[arg-type]
    path.write_text(path.read_text() + TABLE.format(first=first))
    return path


def rows(*paths: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(map(repr, row.values())) for path in paths for row in pq.read_table(path).to_pylist())


def test_killed_and_resumed_every_page_has_its_row_once(site: SmallSite, tmp_path: Path) -> None:
    """And the archive gives the same table again."""
    store, into = {"checkpoint_s": 0.2, "table_rows": 20}, tmp_path / "there"
    slow = asked(tmp_path, store=store, politeness={"host_delay_s": 0.05})
    site.answers["/p118"] = site.answers["/p119"] = site.answer("/p117")  # an exact copy is no page of its own
    for after_s in (1.2, 1.6, 2.0):
        assert crawl_killed(into, slow, after_s, site.url)
    assert crawl(into, asked(tmp_path, store=store), site.url).status == 0
    found = rows(*(into / "tables").glob("numbers-*.parquet"))
    urls, copies = [row[0] for row in found], {repr(f"{site.url}p{number}") for number in (117, 118, 119)}
    assert len({*urls} & copies) == 1 and len(urls) == len({*urls})
    assert {*urls} | copies == {repr(f"{site.url}p{number}") for number in range(1, 120)}
    assert command("check", str(into)).returncode == 0
    done = command("extract", str(into))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{into}/extracted/numbers.parquet: 117 rows\n"
    assert rows(into / "extracted" / "numbers.parquet") == found


def test_a_selector_is_changed_and_nothing_is_fetched(site: SmallSite, tmp_path: Path) -> None:
    into = tmp_path / "there"
    assert crawl(into, settings(tmp_path), site.url, "--pages", "10").status == 0
    before = site.asked.total()
    for first, expected in (("a", "3"), ("a:last-of-type", "4")):
        done = command("extract", str(into), "--config", str(asked(tmp_path, first)), "--to", "jsonl", "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["unreadable"] == 0
        lines = [json.loads(line) for line in (into / "extracted" / "numbers.jsonl").read_text().splitlines()]
        (one,) = [line for line in lines if line["url"] == f"{site.url}p1"]
        assert one == {
            "url": f"{site.url}p1",
            "number": 1,
            "links": [f"{site.url}p3", f"{site.url}p4"],
            "first": expected,
        }
    assert site.asked.total() == before


def test_in_python(site: SmallSite, tmp_path: Path) -> None:
    class Numbered(fyke.Item, match="/p[0-9]+$"):
        number: int = fyke.field("title")
        links: list[str] = fyke.field("a::attr(href)", url=True)
        missing: float | None = fyke.field("h6")

    config = fyke.Config(politeness={"host_delay_s": 0, "address_delay_s": 0, "delay_factor": 0})
    with fyke.Crawl(site.url, into=tmp_path / "there", config=config, pages=20) as crawl:
        live = {item.url: item for page in crawl for item in Numbered.of(page)}
    again = {item.url: item for item in fyke.extract(tmp_path / "there", Numbered)}
    assert len(again) == 19 and {url: vars(item) for url, item in again.items()} == {
        url: vars(item) for url, item in live.items()
    }
    one = again[f"{site.url}p2"]
    assert (one.number, one.links, one.missing) == (2, [f"{site.url}p5", f"{site.url}p6"], None)
    assert repr(one).startswith("Numbered(url=")

    class More(Numbered, match="/p2$"):
        first: str = fyke.field("a")

        def __init__(self, given: int) -> None:
            raise AssertionError("a page gives nothing")

    (more,) = fyke.extract(tmp_path / "there", More)
    assert {name: value for name, value in vars(more).items() if name != "first"} == vars(one)
    assert isinstance(more.first, str)
    with pytest.raises(fyke.FykeError, match="is not a CSS selector"):
        type("Wrong", (fyke.Item,), {"a": fyke.field(">>")})
    with pytest.raises(fyke.FykeError, match="make it str, float, int"):
        type("Wrong", (fyke.Item,), {"a": fyke.field("p"), "__annotations__": {"a": dict}})


def test_mistakes(site: SmallSite, tmp_path: Path) -> None:
    def told(status: int, *arguments: str, words: str) -> None:
        done = command("extract", *arguments)
        assert done.returncode == status and not done.stdout
        (line,) = done.stderr.splitlines()
        assert line.startswith("fyke: ") and words in line, line

    into, config = tmp_path / "there", asked(tmp_path)
    told(3, str(into), words="holds no crawl")
    assert crawl(into, settings(tmp_path), site.url, "--pages", "3").status == 0
    told(2, str(into), words="[[extract]]")
    told(2, str(into), "--config", str(config), "--to", "csv", words="parquet, jsonl")
    told(2, str(into), "--config", str(asked(tmp_path, ">>")), words="is not a CSS selector")
    told(2, str(into), "--config", str(tmp_path / "none.toml"), words="No such file")
    asked(tmp_path)
    (tmp_path / "file").write_text("")
    told(3, str(into), "--config", str(config), "--out", str(tmp_path / "file"), words="--out")
    run = crawl(into, config, site.url, "--pages", "9")
    assert run.status == 3 and "fyke extract" in run.errors and run.errors.count("\n") == 1


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_one_of_two_at_once_is_refused(kind: str, site: SmallSite, tmp_path: Path) -> None:
    """And the table of the other is whole; when it has ended, the same command makes its own."""
    assert crawl(tmp_path / "there", settings(tmp_path), site.url).status == 0
    here = ["extract", str(tmp_path / "there"), "--to", kind, "--config", str(asked(tmp_path))]
    with ExtractedFiles(tmp_path / "there" / "extracted", kind) as target:
        _, writer = target.table("numbers", pa.schema([("url", pa.string())]))
        writer.write([("http://a.example/",)] * 9)
        refused = command(*here)
        writer.write([("http://a.example/",)] * 9)
        writer.close()
    assert refused.returncode == 3 and "is being written by another fyke extract: wait for it" in refused.stderr
    made = tmp_path / "there" / "extracted" / f"numbers.{kind}"
    assert (len(made.read_text().splitlines()) if kind == "jsonl" else pq.read_table(made).num_rows) == 18
    assert "119 rows" in command(*here).stdout


def test_a_page_that_is_again_as_it_was_is_no_copy(tmp_path: Path) -> None:
    """It has the row of its last visit; only another page with its bytes has none."""
    made = Archive(tmp_path / "crawl")
    for number, (name, word, again) in enumerate(
        [("page", "plum", False), ("copy", "plum", True), ("page", "pear", False), ("page", "plum", True)]
    ):
        made.visit(f"http://a.example/{name}", html(word), duplicate=again)
        made.flush()
        titles = [(page.url.rpartition("/")[2], page.title) for page in ArchivedPages(made.folder) if page]
        assert titles == [("page", "pear" if number == 2 else "plum")]
    made.close()
