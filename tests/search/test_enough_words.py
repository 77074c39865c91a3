"""How many words of a query a page needs: three in five, of the words that tell something or of all."""

from math import ceil
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.search.compiling import COMMON, FEW_WORDS, NEEDED
from fyke.search.searcher import Searcher
from search.archives import archive, html, indexed
from search.webs import WORDS

EVERYWHERE = ["harvest", "basket"]
SOME = sorted(set(WORDS) - set(EVERYWHERE))[:20]
PAGES = 60


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Searcher, dict[str, set[str]]]:
    """An index, and the words of each of its pages. Words of `SOME` are on less than a quarter of the pages."""
    dice = Random(5)
    said = {f"http://a.example/{n}": {*EVERYWHERE, *dice.sample(SOME, k=2)} for n in range(PAGES)}
    assert all(sum(word in words for words in said.values()) < COMMON * PAGES for word in SOME)
    folder = archive(
        tmp_path_factory.mktemp("enough") / "crawl",
        [(url, html(f"Page {url[-2:]}", " ".join(sorted(said[url])))) for url in said],
    )
    indexed(folder)
    return Searcher([folder]), said


@settings(max_examples=200, deadline=None)
@given(
    important=st.lists(st.sampled_from(SOME), min_size=1, max_size=FEW_WORDS - 1, unique=True),
    others=st.lists(st.sampled_from(EVERYWHERE), max_size=2, unique=True),
    dice=st.randoms(use_true_random=False),
)
def test_a_page_is_found_if_it_has_three_in_five_of_all_words_or_of_those_that_tell_something(
    pages: tuple[Searcher, dict[str, set[str]]], important: list[str], others: list[str], dice: Random
) -> None:
    searcher, said = pages
    words = [*important, *others][:FEW_WORDS]
    dice.shuffle(words)
    found = {hit.url for hit in searcher.search(" ".join(words), limit=PAGES).hits}
    expected = {
        url
        for url, there in said.items()
        if (telling := len(there.intersection(important))) >= ceil(NEEDED * len(important))
        or (telling and len(there.intersection(words)) >= ceil(NEEDED * len(words)))
    }
    assert found == expected
