"""From pages to what people see of near-duplicates: the table, search, the report, exports."""

import io
import json
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from crawl.runs import fyke_here as fyke
from fyke.archive.check import check_archive
from fyke.archive.reading import read_table
from fyke.core.config import build, render
from fyke.core.outcomes import Outcome
from fyke.core.urls import key_of
from fyke.search.answering import MOST_LIKE_IT
from fyke.search.indexer import IndexLimits
from fyke.search.printing import show
from fyke.search.searcher import Searcher
from search.archives import Answer, Archive, archive, contents, html, indexed, searched, urls
from search.webs import WORDS

DICE = Random(4)
TEXT = DICE.choices(WORDS, k=300)
OTHER = DICE.choices(WORDS, k=300)


def edited(words: list[str], *places: int) -> str:
    return " ".join("changed" if place in places else word for place, word in enumerate(words))


def near(folder: Path) -> dict[str, tuple[str, float]]:
    """The table: of each URL the one that it is near, and how far."""
    names = {row["key"]: row["url"] for row in read_table(folder, "pages", ["key", "url"]).to_pylist()}
    rows = read_table(folder, "near").to_pylist()
    return {names[row["key"]]: (names[row["near_of"]], row["distance"]) for row in rows}


VISITS = [
    ("http://a.example/first", html("First", edited(TEXT))),
    ("http://a.example/lone", html("Lone", edited(OTHER))),
    ("http://b.example/same", html("The same", edited(TEXT), head="<style>p {}</style>")),
    ("http://a.example/near", html("Near", edited(TEXT, 100))),
    ("http://b.example/short", html("Short", "river lantern")),
    ("http://c.example/short", html("Short", "river lantern")),
]


def test_the_table(tmp_path: Path) -> None:
    """Equal texts are at no distance, whatever is around them; what is short or unlike is not there."""
    archive(tmp_path, VISITS)
    indexed(tmp_path)
    found = near(tmp_path)
    assert found.keys() == {"http://b.example/same", "http://a.example/near"}
    assert {first for first, _ in found.values()} == {"http://a.example/first"}
    # The titles are headings too, and so a line of the main text: one shingle, or a few, differ.
    assert all(0 <= distance < 0.16 for _, distance in found.values())
    assert not list(check_archive(tmp_path))


def test_equal_texts_are_at_no_distance(tmp_path: Path) -> None:
    heads = ["", "<style>p {}</style>", "<!-- 7 -->", "<meta name=x content=y>"]
    archive(tmp_path, [(f"http://{n}.example/", html("One", edited(TEXT), head=head)) for n, head in enumerate(heads)])
    indexed(tmp_path)
    assert near(tmp_path) == {f"http://{n}.example/": ("http://0.example/", 0.0) for n in (1, 2, 3)}


def test_search_lists_one_and_can_list_all(tmp_path: Path) -> None:
    folder = archive(tmp_path, VISITS)
    with searched(folder) as searcher:
        query = f"{TEXT[0]} {TEXT[1]}"
        results = searcher.search(query, limit=50)
        alike = {"http://a.example/first", "http://b.example/same", "http://a.example/near"}
        (hit,) = [hit for hit in results.hits if hit.url in alike]
        assert hit.more_like_it == 2
        assert {hit.url, *hit.like_it} == alike and len(hit.like_it) == 2
        assert not [one for one in results.hits if one.like_it and one.url not in alike]
        assert not [one for one in searcher.search(f"near:{hit.url}").hits if one.like_it], "all are listed"
        assert [one.more_like_it for one in results.hits if one.url not in alike] == [0] * (len(results.hits) - 1)
        for url in alike:
            assert set(urls(searcher, f"near:{url} {query}")) == set(urls(searcher, f"near:{url}")) == alike
        assert urls(searcher, "near:http://a.example/lone") == ["http://a.example/lone"]
        assert urls(searcher, "near:http://nowhere.example/") == []
        told = io.StringIO()
        show(results, Console(file=told, width=100))
        assert f"and 2 like it: near:{hit.url}" in told.getvalue()
        assert all(f"  {url}\n" in told.getvalue() for url in hit.like_it)


def test_a_few_of_many_copies_are_named(tmp_path: Path) -> None:
    """Those that match the question, the better ones first."""
    visits = [(f"http://{n}.example/", html(f"Copy {n}", edited(TEXT, n))) for n in range(12)]
    with searched(archive(tmp_path, visits)) as searcher:
        (hit,) = searcher.search(TEXT[0]).hits
        others = [one for one in searcher.search(f"near:{hit.url} {TEXT[0]}", limit=20).hits if one.url != hit.url]
        best = {one.url for one in others if one.score >= others[MOST_LIKE_IT - 1].score}
        assert hit.more_like_it == len(others) > len(best) > 0
        assert len(set(hit.like_it)) == MOST_LIKE_IT and set(hit.like_it) <= best


LAYOUTS = [
    "http://a.example/{}/docs/{}.html",
    "http://a.example/docs/{:.2}/{}.html",
    "http://{:.2}.a.example/docs/{}.html",
    "http://a.example/docs/{1}.html?lang={0:.2}",
]
UNTRANSLATED = ("ru-RU", "de-DE", "zh-TW")


@settings(max_examples=25, deadline=None)
@given(
    layout=st.sampled_from(LAYOUTS),
    first=st.sampled_from(["/", "en-US"]),
    said=st.sampled_from(["", "en", "own"]),
    equal=st.booleans(),
    linked=st.sampled_from(UNTRANSLATED),
    dice=st.randoms(use_true_random=False),
)
def test_an_original_stands_for_copies_in_folders_of_other_languages(
    layout: str, first: str, said: str, equal: bool, linked: str, dice: Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever else ranks them, in whatever order they came, and whatever language they say they are in."""

    def url(language: str, number: int) -> str:
        return f"http://a.example/{number}.html" if language == "/" else layout.format(language, number)

    def page(language: str, number: int) -> tuple[str, Answer]:
        words = Random(number)
        text = " ".join(
            "The {} and the {} are kept where nobody has seen a {} or a {}.".format(*words.choices(WORDS, k=4))
            for _ in range(15)
        )
        answer = html(f"Topic {number}", text)
        declared = language[:2].strip("/") if said == "own" else said
        begin = f'<html lang="{declared}">{"" if equal else f"<!-- {language} -->"}'
        return url(language, number), Answer(str(answer.body).replace("<html>", begin))

    pages = [page(language, number) for language in (first, *UNTRANSLATED) for number in range(3)]
    dice.shuffle(pages)
    links = {url(linked, number): "More" for number in range(3)}
    pages += [(f"http://{n}.example/", html(f"List {n}", "", links)) for n in range(5)]
    pages += [(f"{url(first, 3 + n)}", html(f"Other {n}", edited(Random(n).choices(WORDS, k=60)))) for n in range(40)]
    folder = archive(tmp_path_factory.mktemp("languages") / "crawl", pages)
    indexed(folder, IndexLimits())
    with Searcher([folder]) as searcher:
        for number in range(3):
            (hit,) = searcher.search(f'"Topic {number}" nobody').hits
            copies = {url(language, number) for language in UNTRANSLATED}
            assert hit.url == url(first, number)
            assert set(hit.like_it) == (copies if not equal or said == "own" else set())


@settings(max_examples=10, deadline=None)
@given(
    queries=st.lists(
        st.sampled_from(["?ref=home", "?utm_source=x&utm_medium=y", "?output=print", ";sid=12ab", "?"]),
        min_size=1,
        unique=True,
    ),
    linked=st.integers(0),
    dice=st.randoms(use_true_random=False),
)
def test_the_plain_address_stands_for_those_with_a_query(
    queries: list[str], linked: int, dice: Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whichever of them most pages link to, and whichever came first."""
    plain = [f"http://a.example/{number}.html" for number in range(3)]
    pages = [
        (url + query, html(f"Topic {number}", edited(Random(number).choices(WORDS, k=300), 7 * place)))
        for number, url in enumerate(plain)
        for place, query in enumerate(["", *queries])
    ]
    dice.shuffle(pages)
    links = {url + queries[linked % len(queries)]: f"Topic {number}" for number, url in enumerate(plain)}
    pages += [(f"http://{n}.example/", html(f"List {n}", "", links)) for n in range(5)]
    folder = archive(tmp_path_factory.mktemp("queries") / "crawl", pages)
    indexed(folder, IndexLimits())
    with Searcher([folder]) as searcher:
        for number, url in enumerate(plain):
            first, *_ = searcher.search(f"Topic {number}").hits
            assert first.url == url and set(first.like_it) == {url + query for query in queries}


def test_copies_under_other_menus_are_near(tmp_path: Path) -> None:
    """Though nothing tells menus from texts: of all pages in an index that is made in one go, and in one that is made
    after each page of all but the first ones of a host."""

    def shown(site: str, number: int, *places: int) -> tuple[str, Answer]:
        dice = Random(site)
        menu = "".join(f"<p>{' '.join(dice.choices(WORDS, k=6))}</p>" for _ in range(9))
        words = Random(number).choices(WORDS, k=90)
        return f"http://{site}.example/{number}", Answer(f"<body>{menu}<p>{edited(words, *places)}</p>{menu}</body>")

    others = [shown(site, number) for number in range(4) for site in ("a", "b")]  # of these the first have their menus
    copies = [shown("a", 10), shown("b", 10, 40), shown("a", 11), shown("b", 11), shown("b", 12)]
    made = Archive(tmp_path / "steps")
    for url, answer in others + copies:
        made.visit(url, answer)
        made.flush()
        indexed(tmp_path / "steps")
    made.close()
    whole = archive(tmp_path / "whole", others + copies)
    indexed(whole, IndexLimits())
    found, steps = ({url: first for url, (first, _) in near(of).items()} for of in (whole, tmp_path / "steps"))
    assert found == {f"http://b.example/{number}": f"http://a.example/{number}" for number in (0, 1, 2, 3, 10, 11)}
    assert steps == {url: found[url] for url in found if not url.endswith(("/0", "/1"))}


def test_what_grows_keeps_its_answers(tmp_path: Path) -> None:
    """As if it had been indexed in one go; a page that others are near to stays the first, whatever it says later."""
    made = Archive(tmp_path / "steps")
    visits = [
        *VISITS,
        ("http://a.example/first", html("First", edited(OTHER, 7))),
        ("http://d.example/", html("Late", edited(TEXT, 200))),
        ("http://a.example/near", html("Near", "something else altogether " * 20)),
        ("http://e.example/", html("Like the lone one", edited(OTHER, 8))),
    ]
    for url, answer in visits:
        made.visit(url, answer)
        made.flush()
        indexed(tmp_path / "steps")
    made.close()
    whole = archive(tmp_path / "whole", visits)
    indexed(whole, IndexLimits())
    assert near(tmp_path / "steps") == near(whole)
    assert contents(tmp_path / "steps") == contents(whole)
    firsts = {url: first for url, (first, _) in near(whole).items()}
    assert firsts == {
        "http://b.example/same": "http://a.example/first",
        "http://d.example/": "http://a.example/first",
        "http://e.example/": "http://a.example/lone",
    }


BASES = [Random(seed).choices(WORDS, k=120) for seed in range(3)]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    visits=st.lists(
        st.tuples(st.integers(0, 11), st.sampled_from(BASES), st.lists(st.integers(0, 119), max_size=3)), min_size=5
    ),
    step=st.integers(1, 9),
)
def test_pages_that_come_and_change(
    tmp_path_factory: pytest.TempPathFactory, visits: list[tuple[int, list[str], list[int]]], step: int
) -> None:
    """In steps as in one go; and a page that others are near to is near none, whatever became of it since."""
    folder = tmp_path_factory.mktemp("pages")
    pages = [(f"http://{page}.example/", html("Page", edited(words, *places))) for page, words, places in visits]
    made = Archive(folder / "steps")
    for number, (url, answer) in enumerate(pages):
        made.visit(url, answer)
        if number % step == 0:
            made.flush()
            indexed(folder / "steps")
    made.close()
    indexed(folder / "steps")
    whole = archive(folder / "whole", pages)
    indexed(whole, IndexLimits())
    found = near(whole)
    assert found == near(folder / "steps")
    assert not found.keys() & {first for first, _ in found.values()}


def test_a_page_brings_together_what_it_is_near(tmp_path: Path) -> None:
    """Two pages that are nearer to a third than to each other, as long as it is there and they say the same."""
    one, third, other = (
        (f"http://{name}.example/", html("Page", edited(TEXT, *places)))
        for name, places in (("a", (40, 80, 120, 160)), ("b", ()), ("c", (60, 100, 140, 180)))
    )
    made = Archive(tmp_path)
    found = []
    for url, answer in (one, other, third, (other[0], html("Page", edited(OTHER))), other, (third[0], Answer("", 404))):
        made.visit(url, answer, Outcome.GONE if answer.status == 404 else Outcome.OK)
        made.flush()
        indexed(tmp_path)
        found.append({url: first for url, (first, _) in near(tmp_path).items()})
    made.close()
    first = {third[0]: one[0]}
    assert found == [{}, {}, {**first, other[0]: one[0]}, first, {**first, other[0]: one[0]}, {}]


def test_gone_pages_and_hidden_ones_are_near_none(tmp_path: Path) -> None:
    made = Archive(tmp_path)
    for url, answer in VISITS:
        made.visit(url, answer)
    made.visit("http://a.example/near", Answer("", 404))
    made.visit("http://a.example/near", Answer("", 404), Outcome.GONE)
    made.visit("http://b.example/same", html("x", edited(TEXT), head='<meta name="robots" content="noindex">'))
    made.close()
    indexed(tmp_path)
    assert near(tmp_path) == {}
    with Searcher([tmp_path]) as searcher:
        assert {hit.more_like_it for hit in searcher.search(TEXT[0]).hits} == {0}


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """With settings, as the command line wants them."""
    archive(tmp_path / "there", VISITS)
    (tmp_path / "there" / "fyke.toml").write_text(render(build({"crawl": {"seeds": ["http://a.example/"]}}, "x")))
    return tmp_path / "there"


def test_exports_have_it_as_a_column(crawl: Path, tmp_path: Path) -> None:
    for indexes in (False, True):
        if indexes:
            indexed(crawl)
        lines, table = tmp_path / f"{indexes}.jsonl", tmp_path / f"{indexes}.parquet"
        for out, to in ((lines, "jsonl"), (table, "parquet")):
            done = fyke("export", str(crawl), "--to", to, "--out", str(out))
            assert done.returncode == 0, done.stderr
        entries = {entry["url"]: entry for entry in map(json.loads, lines.read_text().splitlines())}
        rows = {row["url"]: row["near_of"] for row in pq.read_table(table).to_pylist()}
        assert len(rows) == len(VISITS) and len(entries) == len(VISITS) - 1  # none is left out but an exact copy
        first = key_of("http://a.example/first")
        for url, of in rows.items():
            wanted = first if indexes and url in ("http://b.example/same", "http://a.example/near") else None
            assert of == wanted
            assert url not in entries or entries[url]["near_of"] == (f"{of:016x}" if of else None)


def test_the_report_counts_them(crawl: Path) -> None:
    assert fyke("report", str(crawl)).returncode == 0
    assert "Near-duplicates" not in (crawl / "report.html").read_text()
    indexed(crawl)
    done = fyke("report", str(crawl))
    assert done.returncode == 0, done.stderr
    text = (crawl / "report.html").read_text()
    assert "2 pages say nearly what one of 1 other said" in text
    assert "a.example/first" in text
    told = json.loads(fyke("report", str(crawl), "--json").stdout)["near"]
    assert (told["pages"], told["clusters"], len(told["largest"])) == (2, 1, 1)
