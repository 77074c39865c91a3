"""Any text is a question or is refused in a line; the words of the language mean what they say."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fyke.core.errors import BadQuery
from fyke.search.grammar import Clause, Dated, Language, Occur, Site, Words, parse
from fyke.search.searcher import Searcher
from search.archives import Answer, archive, html, indexed, urls

DAY = 86_400


def day(year: int, month: int = 1, of_month: int = 1) -> int:
    return int(datetime(year, month, of_month, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("", ()),
        ("one two", (Clause((Words("one", 0),), Occur.SHOULD), Clause((Words("two", 4),), Occur.SHOULD))),
        ('"a phrase', (Clause((Words("a phrase", 1, phrase=True),), Occur.SHOULD),)),
        ("+must -not", (Clause((Words("must", 1),), Occur.MUST), Clause((Words("not", 7),), Occur.NOT))),
        ("a OR b", (Clause((Words("a", 0), Words("b", 5)), Occur.SHOULD),)),
        ("a OR", (Clause((Words("a", 0),), Occur.SHOULD),)),
        ("OR b", (Clause((Words("OR", 0),), Occur.SHOULD), Clause((Words("b", 3),), Occur.SHOULD))),
        ("a OR -b", (Clause((Words("a", 0),), Occur.SHOULD), Clause((Words("b", 6),), Occur.NOT))),
        ("site:Docs.Example.org/X/y", (Clause((Site("docs.example.org", "/X/y"),), Occur.MUST),)),
        ("site:https://example.org/", (Clause((Site("example.org"),), Occur.MUST),)),
        ("site:localhost:8000", (Clause((Site("localhost"),), Occur.MUST),)),
        ("-site:a.org", (Clause((Site("a.org"),), Occur.NOT),)),
        ("site:a.org OR site:b.org", (Clause((Site("a.org"), Site("b.org")), Occur.MUST),)),
        ("intitle:x", (Clause((Words("x", 8, phrase=True, where="title"),), Occur.MUST),)),
        ("inurl:x", (Clause((Words("x", 6, phrase=True, where="url"),), Occur.MUST),)),
        ("LANG:DE", (Clause((Language("de"),), Occur.MUST),)),
        ("after:2024", (Clause((Dated(begin_s=day(2024)),), Occur.MUST),)),
        ("before:2024-02-03", (Clause((Dated(end_s=day(2024, 2, 3)),), Occur.MUST),)),
        ('"site:"', (Clause((Words("site:", 1, phrase=True),), Occur.SHOULD),)),
        ("off-site: x", (Clause((Words("off-site:", 0),), Occur.SHOULD), Clause((Words("x", 10),), Occur.SHOULD))),
        ("state-of-the-art", (Clause((Words("state-of-the-art", 0),), Occur.SHOULD),)),
        ("HTTPS://A.org/b", (Clause((Words("A.org/b", 8),), Occur.SHOULD),)),
        ("-http://www.a.org/", (Clause((Words("a.org/", 12),), Occur.NOT),)),
        ("http://", (Clause((Words("http://", 0),), Occur.SHOULD),)),
        ('"http://a.org"', (Clause((Words("http://a.org", 1, phrase=True),), Occur.SHOULD),)),
    ],
)
def test_means(text: str, clauses: tuple[Clause, ...]) -> None:
    assert parse(text).clauses == clauses


@pytest.mark.parametrize(
    ("text", "wrong", "instead"),
    [
        ("river site:", "site: it is empty", "site:docs.example.org"),
        ("river -site: x", "site: it is empty", "site:docs.example.org"),
        ("site:...", "site: '...' is not valid", "site:docs.example.org"),
        ('site:""', "site: it is empty", "site:docs.example.org"),
        ("after:foo", "after: 'foo' is not valid", "after:2024-06-15"),
        ("Before:2024-13-01", "before: '2024-13-01' is not valid", "before:2024-06-15"),
        ("lang:", "lang: it is empty", "lang:de"),
        ("lang:42", "lang: '42' is not valid", "lang:de"),
        ("intitle:!", "intitle: '!' is not valid", "intitle:howto"),
        ("inurl:", "inurl: it is empty", "inurl:library"),
    ],
)
def test_refuses_what_says_nothing(text: str, wrong: str, instead: str) -> None:
    with pytest.raises(BadQuery) as refused:
        parse(text)
    said = str(refused.value)
    assert said.startswith(wrong) and instead in said and said.isprintable()
    quoted = said[said.index('"') : said.rindex('"') + 1]  # what it offers is a query
    assert all(isinstance(part, Words) for clause in parse(quoted).clauses for part in clause.parts)


@pytest.mark.parametrize(
    "query", ["fox " * 40 + "site:a.example", "fox OR " * 290 + "fox", "a" * 1_990 + " site:b.example"]
)
def test_no_filter_is_cut_off(query: str) -> None:
    """The rest would be the answer to another question."""
    with pytest.raises(BadQuery, match="write at most"):
        parse(query)


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    """A few pages, dated and in two languages."""
    german = "Der Fluss fließt langsam durch die Wiesen, und am Ufer stehen alte Bäume mit grünen Blättern. " * 2
    english = "The river flows slowly through the meadows, and on its banks stand old trees with green leaves. " * 2
    february = {"Last-Modified": "Mon, 05 Feb 2024 10:00:00 GMT"}
    folder = archive(
        tmp_path_factory.mktemp("pages") / "crawl",
        [
            ("http://www.example.org/river", html("The river", english)),
            ("http://shop.example.org/trees/oak", html("Oaks for sale", f"{english} buy one")),
            ("http://example.com/fluss", html("Am Fluss", german)),
            ("http://example.com/old", Answer(f"<title>Old trees</title><p>{english}", headers=february)),
            ("http://example.net/tokyo", html("東京タワー", "東京は日本の首都です。" * 5)),
            ("http://example.net/bosporus", html("İstanbul", "İstanbul, Boğaziçi kıyısında bir şehirdir. " * 3)),
            ("http://example.net/seoul", html("서울", "경복궁은 조선 시대에 지어진 궁궐로 많은 관광객이 찾는다. " * 3)),
            ("http://example.net/apart", html("Apart", "De\u0301ja\u0300 vu, qahwa قَهْوَة, shalom שָׁלוֹם, йод. " * 3)),
        ],
    )
    indexed(folder)
    return Searcher([folder])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("river trees", {"river", "oak", "old"}),
        ("river -oak", {"river", "old"}),
        ("+buy river", {"oak"}),
        ('"banks stand old"', {"river", "oak", "old"}),
        ('"stand banks"', set()),
        ("flow meadow", {"river", "oak", "old"}),
        ("FLOWED", {"river", "oak", "old"}),
        ("baume", {"fluss"}),
        ("buy OR fluss", {"oak", "fluss"}),
        ("river site:example.org", {"river", "oak"}),
        ("site:shop.example.org", {"oak"}),
        ("site:xample.org", set()),
        ("-site:example.org trees", {"old"}),
        ("lang:de", {"fluss"}),
        ("trees lang:en before:2024-03", {"old"}),
        ("trees after:2024-02-05 before:2024-02-06", {"old"}),
        ("trees after:2024-02-06", {"river", "oak"}),
        ("inurl:trees", {"oak"}),
        ("intitle:trees", {"old"}),
        ('intitle:"for sale"', {"oak"}),
        ("東京", {"tokyo"}),
        ("首都", {"tokyo"}),
        ("都首", set()),
        ("http://shop.example.org/trees/oak", {"oak"}),
        ("https://www.example.org/river", {"river"}),
        ("example.com/fluss", {"fluss"}),
        ("http://example.org/meadows/", set()),
        ("shop.example.org:8080/trees/", {"oak"}),
        ("river's", {"river", "oak", "old"}),
        ("oak\u2019s", {"oak"}),
        ("+buy's", {"oak"}),
        ("leave's trees'", {"river", "oak", "old"}),
        ('"river\'s"', set()),
        ("istanbul", {"bosporus"}),
        ("ISTANBUL", {"bosporus"}),
        ("İSTANBUL bogazici", {"bosporus"}),
        ("경복궁", {"seoul"}),  # a noun without what follows it
        ("궁복경", set()),
        ("déjà", {"apart"}),  # accents that stand apart, and points
        ("قهوة", {"apart"}),
        ("שלום", {"apart"}),
        ("йод", {"apart"}),
        ("-river", set()),
        ("", set()),
        ("!?", set()),
    ],
)
def test_finds(searcher: Searcher, query: str, found: set[str]) -> None:
    assert {url.rpartition("/")[2] for url in urls(searcher, query)} == found


NAMED = {
    "cpp": "C++", "c": "C", "csharp": "C#", "fsharp": "F#", "dotnet": ".NET", "objc": "Objective-C++",
    "node": "Node.js", "aplus": "A++", "net": "net", "js": "JS",
}  # fmt: skip


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    """A page for each language, named in its text alone."""
    pages = [
        (
            f"http://l{at}.example/{path}",
            html(f"Number {at}", f"This page is about {name}, and ({name}) is a name. {at}"),
        )
        for at, (path, name) in enumerate(NAMED.items())
    ]
    folder = archive(tmp_path_factory.mktemp("languages") / "crawl", pages)
    indexed(folder)
    return Searcher([folder])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("c++", {"cpp", "objc"}),
        ("C++", {"cpp", "objc"}),
        ("c", {"c"}),
        ("c#", {"csharp"}),
        ("f#", {"fsharp"}),
        (".net", {"dotnet"}),
        (".NET", {"dotnet"}),
        ("net", {"net"}),
        ("objective-c++", {"objc"}),
        ('"objective-c++"', {"objc"}),
        ("node.js", {"node"}),
        ("a++", {"aplus"}),
        ("c++ -objective", {"cpp"}),
    ],
)
def test_signs_make_names(languages: Searcher, query: str, found: set[str]) -> None:
    hits = languages.search(query).hits
    paths = [hit.url.rpartition("/")[2] for hit in hits]
    assert set(paths) == found or (query in ("objective-c++", "node.js") and paths[0] in found)
    marked = "".join(text for text, marked in hits[0].snippet if marked).lower()
    named = query.lower().split()[0].strip('"')
    assert named.replace("node.", "node").replace("-", "") in marked


FIELDS = ["site:", "after:", "before:", "lang:", "inurl:", "intitle:"]
MARKS = [":", '"', "+", "-", "OR", "|", "()", "*", "\\", "~2", "^", "[x TO y]", " ", "\x00", "\u202e", "' OR 1=1"]


def test_what_is_shown_is_as_it_was(searcher: Searcher) -> None:
    hit = searcher.search("東京").hits[0]
    assert hit.title == "東京タワー"
    assert "".join(text for text, _ in hit.snippet).startswith("東京タワー 東京は日本の首都です。")
    assert ("東", True) in hit.snippet


PIECES = st.sampled_from([*FIELDS, *MARKS, "river", "trees", "2024", "a.b", "東京"])


@settings(max_examples=300, deadline=None)
@given(query=st.text() | st.lists(PIECES, max_size=20).map("".join) | st.lists(PIECES, max_size=20).map(" ".join))
@example(query="x" * 100_000)
@example(query="a " * 5_000)
@example(query='"' + "b " * 900)
@example(query="OR " * 50)
@example(query="after:9999-12-31 before:0001-01-01")
@example(query="\ud800")
def test_any_text_is_answered_or_refused_in_a_line(searcher: Searcher, query: str) -> None:
    try:
        results = searcher.search(query)
    except BadQuery as refused:
        assert str(refused).isprintable() and "; write " in str(refused)
        return
    assert results.total >= len(results.hits)
    assert results.query == query
    assert all(url.startswith("http") for url in (hit.url for hit in results.hits))


@settings(max_examples=50, deadline=None)
@given(offset=st.integers(-3, 8), limit=st.integers(-3, 8))
def test_pages_of_an_answer(searcher: Searcher, offset: int, limit: int) -> None:
    whole = searcher.search("river OR fluss OR trees").hits
    part = searcher.search("river OR fluss OR trees", offset, limit).hits
    assert [hit.url for hit in part] == [hit.url for hit in whole][max(0, offset) :][: max(0, limit)]
