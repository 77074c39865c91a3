"""A list that is in a `nav` makes other pages, and a menu does not, also where it changes at every request."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.harvest.prints import whole_prints
from fyke.rewrite.likeness import MOST_COMPARED, PrintsOfSite, different, outline, usual_words, without


def numbers(urls: Sequence[str], links_of: Callable[[str], Sequence[str]]) -> dict[str, int]:
    """The number of each page, which says what its path is, and has `links_of` its URL in a `nav`."""
    found = PrintsOfSite()
    for url in urls:
        path = url.partition("?")[0]
        words = " ".join(f"{path}{n}" for n in range(30))
        links = "".join(f"<a href='{link}'>more</a>" for link in links_of(url))
        found.add(whole_prints(f"<nav>{links}</nav><p>{words}".encode(), "text/html", f"http://a.test{url}"))
    return {url: own[0] for url, (own, _) in zip(urls, found.pages(), strict=True)}


def test_lists_of_results_in_a_nav_are_other_pages() -> None:
    urls = [f"/town/{town}?letter={letter}" for town in range(15) for letter in "abcdefgh"]
    listed = numbers(urls, lambda url: ["/home", *(f"/firm{url[5:]}-{n}" for n in range(6))])
    assert len(set(listed.values())) == len(urls)


@pytest.mark.parametrize(
    ("shown", "many"),
    [
        ("<iframe src='/x{0}'></iframe>", True),
        ("<iframe src='http://A.test/x{0}?from=http://b.test'></iframe>", True),
        ("<div hidden><a href='/x{0}'>more</a></div>", True),
        ("<noscript><a href='/x{0}'>more</a></noscript>", True),
        ("<iframe src='//ads.test/x{0}'></iframe>", False),
        ("<iframe src='/x'></iframe>", False),
    ],
)
def test_where_a_crawl_goes_on_from_what_is_not_seen_makes_other_pages(shown: str, many: bool) -> None:
    found, words = PrintsOfSite(), " ".join(f"word{n}" for n in range(30))
    for number in range(3):
        url = f"http://a.test/list?part={number}"
        found.add(whole_prints(f"<p>{words}</p>{shown.format(number)}".encode(), "text/html", url))
    assert len({numbers[0] for numbers, _ in found.pages()}) == (3 if many else 1)


def test_lists_in_a_nav_at_one_path_are_several_pages_though_their_words_are_those_of_one() -> None:
    found = PrintsOfSite()
    for part in range(30):
        links = "".join(f"<a href='/note/{part}-{n}'>more</a>" for n in range(3))
        body = f"<nav>{links}</nav><p>{' '.join(f'word{n}' for n in range(30))}"
        found.add(whole_prints(body.encode(), "text/html", f"http://a.test/parts?ref={part}"))
    assert different([said for _, said in found.pages()]) == 30


@given(st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_menus_that_turn_or_name_their_page_make_no_other_page(seed: int) -> None:
    dice = Random(seed)
    urls = [f"/p{n}?ref={ref}" for n in range(60) for ref in ("top", "side", "foot")]

    def menu(url: str) -> list[str]:
        token = f"t{dice.getrandbits(64):016x}"
        own = [url, f"/login?back={url.replace('?', '%3F').replace('=', '%3D')}", f"/out?csrf={token}"]
        return [*own, *(f"/popular{n}" for n in dice.sample(range(20), 5))]

    found = numbers(urls, menu)
    assert len(set(found.values())) == 60 and all(found[url] == found[url.partition("=")[0] + "=top"] for url in urls)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3 * MOST_COMPARED), st.integers(0, 8))
def test_pages_that_say_other_things_are_several_and_one_with_a_counter_is_one(count: int, changing: int) -> None:
    header = [f"header{n}" for n in range(100)]
    pages = [[f"p{page}x{n}" for n in range(60)] for page in range(count)]
    others = [[f"o{page}x{n}" for n in range(60)] for page in range(9)]
    usual = usual_words([outline(header + words) for words in [*others, pages[0]]])
    assert different([without(outline(header + words), usual) for words in pages]) == count
    visits = [[*pages[0], *(f"{visit}v{n}" for n in range(changing))] for visit in range(count)]
    assert different([without(outline(header + words), usual) for words in visits]) == 1
