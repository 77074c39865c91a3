"""What comes first, what is said of it, and several indexes as one."""

import dataclasses
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from fyke.core.errors import BadQuery
from fyke.search.compiling import Statistics
from fyke.search.folder import IndexFolder
from fyke.search.grammar import MAX_CLAUSES
from fyke.search.searcher import Searcher
from search.archives import Answer, Archive, archive, html, indexed, searched, urls

FILLING = "Words that fill a page and mean nothing much stand here so that it is long enough to be a page. " * 3


def test_a_title_says_more_than_a_text(tmp_path: Path) -> None:
    archive(
        tmp_path,
        [
            ("http://a.example/text", html("Other things", f"{FILLING} a tangerine. {FILLING}")),
            ("http://a.example/title", html("Tangerine", FILLING)),
        ],
    )
    with searched(tmp_path) as searcher:
        assert urls(searcher, "tangerine")[0] == "http://a.example/title"


FRENCH = (
    "La crème brûlée est un dessert composé de jaunes d'œufs, de sucre, de crème et de vanille. On la caramélise au "
    "chalumeau juste avant de la servir, et la cuillère doit casser la croûte déjà dorée. "
)


@pytest.mark.parametrize("language", ["fr", "en"])
def test_a_word_without_its_accents_counts_as_with_them(tmp_path: Path, language: str) -> None:
    """Their stems may be others: "brul" is that of "brûlée" in French, "brule" that of "brulee"."""
    article = "http://wiki.example/wiki/Cr%C3%A8me_br%C3%BBl%C3%A9e"
    text = FRENCH if language == "fr" else f"{FILLING} It has crème brûlée. {FILLING}"
    lists = {article: "Crème brûlée", f"{article}?action=history": "History"}
    visits = [
        (f"{article}?action=history", html("History of Crème brûlée", "rev 1 rev 2 diff", {article: "article"})),
        ("http://wiki.example/recent", html("Recent changes", "", lists)),
        ("http://wiki.example/", html("The Wiki", "Welcome.", lists)),
        (article, html("Crème brûlée", text)),
    ]
    archive(tmp_path, visits)
    with searched(tmp_path) as searcher:
        asked = ("crème brûlée", "creme brulee", "CREME brûlée", "brulee")
        assert {query: urls(searcher, query)[0] for query in asked} == dict.fromkeys(asked, article)
        scores = [searcher.search(query).hits[0].score for query in ("brulee", "brûlée")]
        assert scores[0] == pytest.approx(scores[1], rel=0.25)


def test_what_is_linked_to_comes_first(tmp_path: Path) -> None:
    linking = [(f"http://s{n}.example/", html(f"{n}", FILLING, {"http://b.example/x": "more"})) for n in range(12)]
    same = [(f"http://{host}.example/x", html("Persimmon", f"{FILLING} {host}")) for host in "abc"]
    archive(tmp_path, same + linking)
    with searched(tmp_path) as searcher:
        assert urls(searcher, "persimmon")[0] == "http://b.example/x"


def test_short_and_canonical_addresses_come_first(tmp_path: Path) -> None:
    own = '<link rel="canonical" href="/b">'
    archive(
        tmp_path,
        [
            ("http://a.example/very/long/way/down/to/the/page.html", html("Lychee", f"{FILLING} 1")),
            ("http://a.example/c?print=1", html("Lychee", f"{FILLING} 2", head=own)),
            ("http://a.example/b", html("Lychee", f"{FILLING} 3", head=own)),
        ],
    )
    with searched(tmp_path) as searcher:
        assert urls(searcher, "lychee")[0] == "http://a.example/b"


def test_a_site_has_two_results_and_says_how_many_more(tmp_path: Path) -> None:
    many = [(f"http://a.example/{n}", html(f"Guava {n}", FILLING)) for n in range(7)]
    archive(tmp_path, [*many, ("http://b.example/", html("Few", f"{FILLING} guava"))])
    with searched(tmp_path) as searcher:
        results = searcher.search("guava")
        assert results.total == 8
        assert [hit.site for hit in results.hits] == ["a.example", "a.example", "b.example"]
        assert [hit.more_from_site for hit in results.hits] == [0, 5, 0]
        assert len(urls(searcher, "guava site:a.example")) == 7


def test_one_site_alone_is_not_grouped(tmp_path: Path) -> None:
    archive(tmp_path, [(f"http://a.example/{n}", html(f"Guava {n}", FILLING)) for n in range(7)])
    with searched(tmp_path) as searcher:
        assert len(urls(searcher, "guava")) == 7


def test_many_indexes_answer_as_one(tmp_path: Path) -> None:
    """A word rare in one index and common in the other is worth the same in both."""
    common = [(f"http://a{n}.example/", html(f"Papaya {n}", FILLING)) for n in range(20)]
    rare = [("http://z.example/", html("Papaya 20", FILLING))]
    rare += [(f"http://y{n}.example/", html(f"Other {n}", FILLING)) for n in range(19)]
    for name, visits in (("one", common), ("two", rare), ("both", common + rare)):
        archive(tmp_path / name, visits)
    with searched(tmp_path / "both") as searcher:
        whole = {hit.url: hit.score for hit in searcher.search("papaya", limit=30).hits}
    with searched(tmp_path / "one", tmp_path / "two") as searcher:
        assert searcher.pages == 40
        results = searcher.search("papaya", limit=30)
        assert results.total == 21
        parts = {hit.url: hit.score for hit in results.hits}
    assert parts.keys() == whole.keys()
    for url, score in whole.items():
        assert parts[url] == pytest.approx(score, rel=0.1), url
    with Searcher([tmp_path / "two"]) as searcher:
        assert searcher.search("papaya").hits[0].score > 2 * parts["http://z.example/"]


def test_a_page_in_two_indexes_is_one_result(tmp_path: Path) -> None:
    for name in ("one", "two"):
        archive(tmp_path / name, [("http://a.example/", html("Mango", FILLING))])
    with searched(tmp_path / "one", tmp_path / "two") as searcher:
        results = searcher.search("mango")
        assert (results.total, len(results.hits)) == (1, 1)


def test_a_better_spelling(tmp_path: Path) -> None:
    pages = [(f"http://a.example/{n}", html("Blueberry jam", f"{FILLING} blueberry {n}")) for n in range(5)]
    archive(tmp_path, pages)
    with searched(tmp_path) as searcher:
        assert searcher.search("bluebery jam").suggestion == "blueberry jam"
        assert searcher.search("jam +lbueberry").suggestion == "jam +blueberry"
        assert searcher.search("blueberry").suggestion is None
        assert searcher.search("qqqqqqq").suggestion is None


def test_snippets(tmp_path: Path) -> None:
    text = f"{FILLING} The ripe figs <b>hang</b> high, and a fig is sweet. {FILLING}"
    archive(
        tmp_path,
        [
            ("http://a.example/", html("Trees", text)),
            ("http://b.example/", html("Trees", "Près du café, les marronniers sont déjà défleuris. " * 4)),
        ],
    )
    with searched(tmp_path) as searcher:
        hit = searcher.search("fig").hits[0]
        assert [text for text, marked in hit.snippet if marked] == ["figs", "fig"]
        assert " ".join("".join(text for text, _ in hit.snippet).strip("… ").split()) in " ".join(
            text.replace("<b>", "").replace("</b>", "").split()
        )
        marked = [text for text, marked in searcher.search("cafe defleuri").hits[0].snippet if marked]
        assert marked[:2] == ["café", "défleuris"]


def test_snippets_leave_out_what_a_site_repeats(tmp_path: Path) -> None:
    """By role, by the name that a generator gives it, and whatever else is on every page."""
    header = '<div class="navheader"><a href="/">Previous plum</a></div>'
    menu = f"<nav>Plum menu</nav>{header}<p>Plums: skip to the content</p>"
    pages = [
        (
            f"http://a.example/{n}",
            Answer(f"<title>{n}</title>{menu}<h2>Page {n}</h2><p>{FILLING}</p><p>Plum no. {n} is ripe."),
        )
        for n in range(12)
    ]
    archive(tmp_path, pages)
    with searched(tmp_path) as searcher:
        hits = searcher.search("plum").hits
        assert len(hits) == 10
        for hit in hits:
            shown = "".join(text for text, _ in hit.snippet)
            assert f"Plum no. {hit.title} is ripe" in shown
            assert not any(words in shown for words in ("menu", "Previous", "skip", "mean nothing"))
        assert "skip to the content" in "".join(text for text, _ in searcher.search("skip").hits[0].snippet)


def test_what_stands_around_a_question_is_left_out(tmp_path: Path) -> None:
    archive(
        tmp_path,
        [
            ("http://a.example/1", html("Bread", f"{FILLING} The oven must be hot to bake bread.")),
            ("http://a.example/2", html("How do I", f"{FILLING} How do I do what I do? How to do my own.")),
            *[(f"http://a.example/{n}", html(f"Other {n}", f"{FILLING} {n}")) for n in range(3, 20)],
        ],
    )
    with searched(tmp_path) as searcher:
        assert urls(searcher, "how do I bake my own bread") == ["http://a.example/1"]
        assert urls(searcher, "how do I")[0] == "http://a.example/2"


def test_two_words_are_found_as_one(tmp_path: Path) -> None:
    pages = [("http://a.example/1", html("Datatypes", f"{FILLING} Datatypes are five."))]
    pages += [(f"http://a.example/{n}", html(f"Data {n}", f"{FILLING} some data {n}")) for n in range(2, 12)]
    archive(tmp_path, pages)
    with searched(tmp_path) as searcher:
        assert urls(searcher, "data types")[0] == "http://a.example/1"


@pytest.mark.parametrize("sign", list("-/.:,=_"))
def test_a_word_with_signs_in_it_is_as_strict_as_its_parts(sign: str, tmp_path: Path) -> None:
    """A page with one of the parts in its title is not the better one, and does not count."""
    whole = sign.join(("kumquat", "quince"))
    pages = [("http://whole.example/", html("Fruits", f"{FILLING} They grow {whole} there. {FILLING}"))]
    pages += [(f"http://{n}.example/", html(f"{part} {n}", part)) for part in ("Kumquat", "Quince") for n in part]
    archive(tmp_path, pages)
    with searched(tmp_path) as searcher:
        assert urls(searcher, whole) == urls(searcher, "kumquat quince") == ["http://whole.example/"]
        assert searcher.search(whole).total == 1
        assert urls(searcher, f"{whole} - – — · | /") == ["http://whole.example/"]


@pytest.mark.parametrize("parts", [["fig"] * 500, [f"x{n}" for n in range(400)]])
def test_the_work_of_a_word_with_many_parts_is_bounded(
    parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: Counter[str] = Counter()
    frequency = Statistics.frequency

    def counted(self: Statistics, field: str, term: str) -> int:
        looked_up[field] += 1
        return frequency(self, field, term)

    monkeypatch.setattr(Statistics, "frequency", counted)
    archive(tmp_path, [("http://a.example/", html("Trees", ".".join(parts)))])
    with searched(tmp_path) as searcher:
        assert searcher.search(".".join(parts)).total == 1
    assert 0 < looked_up["stem_"] <= MAX_CLAUSES


def test_of_words_without_blanks_one_with_blanks_is_enough(tmp_path: Path) -> None:
    archive(tmp_path, [("http://a.example/", html("COVID-19", f"{FILLING} COVID-19の感染症 {FILLING}"))])
    with searched(tmp_path) as searcher:
        assert urls(searcher, "COVID-19感染症") == ["http://a.example/"]
        assert urls(searcher, "+COVID-19感染症") == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("古いカーネルを削除する", "不要になったカーネルは、古い順に削除できます。"),
        ("如何报告软件错误", "报告错误的方法：软件出现错误时请填写表格。"),
        ("วิธีลบไฟล์เก่า", "ไฟล์ที่เก่ามากควรลบด้วยวิธีนี้"),
    ],
)
def test_a_sentence_without_blanks_is_found_by_its_words(tmp_path: Path, query: str, said: str) -> None:
    others = "別の話です。今日は天気がいい。今天天气很好。วันนี้อากาศดี"
    archive(tmp_path, [("http://a.example/", html("一", said)), ("http://b.example/", html("二", others))])
    with searched(tmp_path) as searcher:
        assert urls(searcher, query)[:1] == ["http://a.example/"]
        assert urls(searcher, f'"{query}"') == urls(searcher, f"+{query}") == []


def test_similar(tmp_path: Path) -> None:
    def page(fruit: str, n: int) -> Answer:
        return html(f"{fruit} {n}", f"{FILLING} {fruit} grows in the {fruit} orchard. {n}")

    fruits = [(f"http://{fruit}{n}.example/", page(fruit, n)) for fruit in ("cherry", "walnut") for n in range(3)]
    archive(tmp_path, fruits)
    with searched(tmp_path) as searcher:
        found = searcher.similar("http://cherry0.example/", limit=2)
        assert {hit.url for hit in found} == {"http://cherry1.example/", "http://cherry2.example/"}
        assert searcher.similar("http://nowhere.example/") == ()


def test_similar_where_pages_were_replaced(tmp_path: Path) -> None:
    """The engine still counts the earlier versions among the pages that have a word."""
    addresses = [f"http://{n}.example/" for n in range(12)]
    half = set(addresses[::2])
    crawl = Archive(tmp_path)
    for version, visited in enumerate((addresses, addresses[:2], addresses)):
        for url in visited:
            crawl.visit(url, html("Menu", f"{FILLING} {version} {url} {('plum', 'pear')[url in half]}"))
        crawl.flush()
        indexed(tmp_path)
        with Searcher([tmp_path]) as searcher:
            assert {hit.url for hit in searcher.similar(addresses[0], limit=5)} == half - {addresses[0]}
    crawl.close()


def test_an_open_searcher_sees_what_comes(tmp_path: Path) -> None:
    archive(tmp_path / "a", [("http://a.example/", html("Nashi", FILLING))])
    indexed(tmp_path / "a")
    with Searcher([tmp_path / "a"]) as searcher:
        assert len(urls(searcher, "nashi")) == 1
        folder = IndexFolder(tmp_path / "a")
        number = folder.last_engine()
        folder.save(dataclasses.replace(folder.state(), format=0))
        indexed(tmp_path / "a")  # made anew, in another folder
        assert folder.state().engine_number > number
        assert len(urls(searcher, "nashi")) == 1


PLACES = [
    "http://a.example/", "http://a.example/d", "http://a.example/d/x", "http://a.example/d/x.y?z=1", "http://a.example/dxy",
    "https://b.a.example:8443/d/x", "http://xa.example/d/x", "http://a.example.b.example/d/x", "http://a.example/e/d/x",
    "http://c.example/?u=http://a.example/d/x",
]  # fmt: skip


@pytest.mark.parametrize("path", ["/d", "/d/", "/d/x", "/d/x.", "/d/x.y?z=", "/d/X", "/d/(x|y)", "/d/*", "/?u="])
def test_a_site_may_be_a_folder(tmp_path: Path, path: str) -> None:
    archive(tmp_path, [(url, html(url, "walnut")) for url in PLACES])
    with searched(tmp_path) as searcher:
        found = set(urls(searcher, f"walnut site:a.example{path}"))
    hosts = ("http://a.example", "https://b.a.example:8443")
    assert found == {url for url in PLACES if url.startswith(tuple(host + path for host in hosts))}


@pytest.mark.parametrize("host", ["a.example", "b" * 180 + ".example"])
def test_a_path_of_any_length_finds_or_is_refused(tmp_path: Path, host: str) -> None:
    with searched(archive(tmp_path, [("http://a.example/", html("one", "walnut"))])) as searcher:
        for length in (1, 200, 380, 400, 600, 1_900):
            with suppress(BadQuery):
                assert urls(searcher, f"walnut site:{host}/{'x' * length}") == []
        with pytest.raises(BadQuery):
            urls(searcher, f"walnut site:{host}/{'x' * 400}")


@pytest.mark.parametrize("emoji", ["🎉", "👍🏽", "👩‍💻", "❤️", "🇩🇪", "✅"])
def test_emoji_are_found(tmp_path: Path, emoji: str) -> None:
    said = [
        ("http://a.example/1", html("one", f"plum {emoji} river")),
        ("http://a.example/2", html("two", "plum river")),
    ]
    with searched(archive(tmp_path, said)) as searcher:
        for query in (emoji, f"plum {emoji}", f"+{emoji}", emoji.replace("🏽", "")):
            hit = searcher.search(query).hits[0]
            assert hit.url == "http://a.example/1"
            assert any(marked and text[0] == emoji[0] for text, marked in hit.snippet)
        assert urls(searcher, "🚀") == []
