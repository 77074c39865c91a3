"""Words of a query that no page has: the rest is answered as if they were not there, and they are named."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fyke.search.compiling import FEW_WORDS
from fyke.search.grammar import MAX_CLAUSES
from fyke.search.searcher import Searcher
from search.archives import archive, html, indexed, searched, urls
from search.webs import WORDS

COMMON = ["harvest", "basket"]  # on every page
PAGES = 40
UNKNOWN = ["xylotomous", "kubernete", "qwzx", "9f3ac1", "quasi-xylotomous", "crème-fouettée", "未知"]
KNOWN = [
    *WORDS[:8],
    *COMMON,
    '"harvest basket"',
    "+harvest",
    "copper-violet",
    "site:a.example",
    "-ember",
    "lang:en",
    "intitle:river",
]


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    """An index of pages of a few words each, on two hosts."""
    dice = Random(7)

    def page(number: int) -> tuple[str, str]:
        words = [*dice.choices(WORDS, k=6), str(number)]
        return " ".join(dice.choices(words, k=2)), f"The harvest basket has some {' and '.join(words)} in it."

    pages = [(f"http://{'ab'[n % 2]}.example/{n}", html(*page(n))) for n in range(PAGES)]
    folder = archive(tmp_path_factory.mktemp("unknown") / "crawl", pages)
    indexed(folder)
    return Searcher([folder])


@settings(max_examples=200, deadline=None)
@given(
    known=st.lists(st.sampled_from(KNOWN), min_size=1, max_size=FEW_WORDS - 1, unique=True),
    unknown=st.sampled_from(UNKNOWN),
    at=st.integers(0, FEW_WORDS),
)
def test_a_word_that_no_page_has_changes_nothing_but_is_named(
    searcher: Searcher, known: list[str], unknown: str, at: int
) -> None:
    asks = [one for one in known if one[0] != "-" and not one.startswith(("site:", "lang:", "intitle:"))]
    whole = searcher.search(" ".join(known), limit=PAGES)
    results = searcher.search(" ".join([*known[:at], unknown, *known[at:]]), limit=PAGES)
    assert whole.unknown == () and results.unknown == (unknown,)
    if asks:
        assert (results.total, results.hits) == (whole.total, whole.hits)
    else:
        assert (results.total, results.hits) == (0, ())


@settings(max_examples=50, deadline=None)
@given(known=st.permutations(WORDS[:8]), unknown=st.sampled_from(UNKNOWN))
def test_a_long_question_still_needs_one_of_its_words(searcher: Searcher, known: list[str], unknown: str) -> None:
    asked = known[:FEW_WORDS]
    results = searcher.search(" ".join([*asked, unknown]))
    long = searcher.search(" ".join([*asked, asked[0]]))
    assert (results.total, results.unknown) == (long.total, (unknown,))


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("qwzx", ("qwzx",)),
        ("what is a qwzx", ("qwzx",)),
        ("qwzx kubernete", ("qwzx", "kubernete")),
        ('harvest "basket harvest"', ('"basket harvest"',)),
        ("harvest +qwzx", ("qwzx",)),
        ("harvest intitle:qwzx", ("intitle:qwzx",)),
        ("qwzx inurl:1", ("qwzx",)),
        ("harvest site:c.example", ()),
        ("qwzx site:a.example", ("qwzx",)),
    ],
)
def test_what_must_be_there_is_not_left_out(searcher: Searcher, query: str, unknown: tuple[str, ...]) -> None:
    results = searcher.search(query)
    assert (results.total, results.hits, results.unknown) == (0, (), unknown)


@pytest.mark.parametrize("query", ["harvest -qwzx", "harvest OR qwzx", "har vest basket", "how harvest"])
def test_names_nothing_that_is_not_missed(searcher: Searcher, query: str) -> None:
    results = searcher.search(query, limit=PAGES)
    assert (results.total, results.unknown) == (PAGES, ())


def test_two_words_that_are_one_are_known(tmp_path: Path) -> None:
    pages = [(f"http://a.example/{n}", html("Files", f"Some datatypes of {n}")) for n in range(3)]
    with searched(archive(tmp_path, pages)) as searcher:
        results = searcher.search("datat ypes files")
        assert (results.total, results.unknown) == (3, ())


def test_a_word_of_one_index_is_known_in_all(tmp_path: Path) -> None:
    for name, fruit in (("one", "plum"), ("two", "pear")):
        archive(tmp_path / name, [(f"http://{name}.example/", html("Fruit", f"A {fruit} in a basket."))])
    with searched(tmp_path / "one", tmp_path / "two") as searcher:
        assert urls(searcher, "plum basket") == ["http://one.example/"]
        results = searcher.search("plum pear qwzx")
        assert (results.total, results.unknown) == (0, ("qwzx",))


def test_a_misspelt_word_is_left_out_and_respelt(searcher: Searcher) -> None:
    results = searcher.search("harvezt basket")
    assert (results.total, results.unknown, results.suggestion) == (PAGES, ("harvezt",), "harvest basket")


@settings(max_examples=200, deadline=None)
@given(
    right=st.lists(st.sampled_from([word for word in WORDS if len(word) > 5]), min_size=1, max_size=3, unique=True),
    which=st.integers(0, 2),
    at=st.integers(1, 4),
    edit=st.sampled_from(["swap", "drop", "double", "other"]),
)
def test_a_word_that_no_page_has_is_read_as_one_that_is_spelt_alike(
    searcher: Searcher, right: list[str], which: int, at: int, edit: str
) -> None:
    """The answer is that of the better spelling, and says so."""
    word = right[which % len(right)]
    typed = (
        word[:at]
        + {
            "swap": word[at + 1] + word[at] + word[at + 2 :],
            "drop": word[at + 1 :],
            "double": word[at] + word[at:],
            "other": "q" + word[at + 1 :],
        }[edit]
    )
    assume(not searcher.search(typed, limit=0).total or searcher.search(typed, limit=0).is_respelt)
    results = searcher.search(" ".join(typed if one == word else one for one in right), limit=PAGES)
    meant = searcher.search(" ".join(right), limit=PAGES)
    assert meant.unknown == () and not meant.is_respelt
    assert results.is_respelt and results.suggestion == " ".join(right) and results.unknown == (typed,)
    assert (results.total, results.hits) == (meant.total, meant.hits)


@settings(max_examples=100, deadline=None)
@given(
    pair=st.sampled_from([("harvest", "basket"), *(("some", word) for word in WORDS), *((w, "and") for w in WORDS)]),
    other=st.sampled_from(["", *WORDS[:4]]),
)
def test_neighbours_typed_as_one_word_are_read_as_two(searcher: Searcher, pair: tuple[str, str], other: str) -> None:
    joined = "".join(pair)
    meant = f"{' '.join(pair)} {other}".strip()
    assume(searcher.search(f'"{" ".join(pair)}"', limit=0).total)  # somebody says so
    results, expected = searcher.search(f"{joined} {other}".strip(), limit=PAGES), searcher.search(meant, limit=PAGES)
    assert (results.unknown, results.suggestion, results.is_respelt) == ((joined,), meant, True)
    assert (results.total, results.hits) == (expected.total, expected.hits)


@pytest.mark.parametrize("words", [MAX_CLAUSES // 2, MAX_CLAUSES // 2 + 1, MAX_CLAUSES])
def test_a_query_that_would_have_too_many_words_is_answered_as_typed(searcher: Searcher, words: int) -> None:
    results = searcher.search(" ".join(["harvestbasket"] * words))
    assert results.is_respelt == (2 * words <= MAX_CLAUSES)
    assert results.total == (PAGES if results.is_respelt else 0)
