"""Laws: what a page says of the pages that it links to is found there first."""

import time
from pathlib import Path
from random import Random

import pytest

from fyke.search.teasers import teased
from search.archives import Answer, archive, searched, urls
from search.webs import WORDS

ARTICLES = 12


def words(seed: object, count: int) -> str:
    return " ".join(Random(str(seed)).choices(WORDS, k=count))


def by_heading(url: str, title: str, teaser: str) -> str:
    return f"<article><h2><a href='{url}'>{title}</a></h2><p>{teaser}…</p><a href='{url}'>Read more</a></article>"


def by_tile(url: str, title: str, teaser: str) -> str:
    return f"<a href='{url}'><h3>{title}</h3><p>{teaser}</p></a>"


def by_line(url: str, title: str, teaser: str) -> str:
    return f"<div><a href='{url}'>{title}</a><div>{teaser}</div><div>3 May</div></div>"


@pytest.mark.parametrize("teaser", [by_heading, by_tile, by_line])
def test_an_article_comes_before_the_fronts_that_introduce_it(tmp_path: Path, teaser: object) -> None:
    assert callable(teaser)
    titles = {f"http://a.example/{number}.html": f"Of {words(number, 4)} {number}x" for number in range(ARTICLES)}
    shown = [teaser(url, title, f"{words(url, 25)} {title.split()[-1]}") for url, title in titles.items()]
    fronts = {f"http://a.example/{name}": shown[begin::2] for name, begin in (("", 0), ("second", 1))}
    visits = [
        (
            url,
            Answer(
                f"<title>{title}</title><h1>{title}</h1><p>{words(url, 25)} {title.split()[-1]}<p>{words(url * 2, 400)}"
            ),
        )
        for url, title in titles.items()
    ]
    visits += [
        (url, Answer(f"<title>News</title><h1>News</h1><main>{''.join(cards)}</main>")) for url, cards in fronts.items()
    ]
    with searched(archive(tmp_path, visits)) as searcher:
        for url, title in titles.items():
            for query in (title, f"{' '.join(words(url, 25).split()[:3])} {title.split()[-1]}"):
                found = urls(searcher, query)
                assert found[0] == url and set(found) & fronts.keys()
        assert urls(searcher, "news")[0] in fronts


LINE, LONG = words("line", 20), words("long", 200)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        (f"One page\n{LINE}\nAnother\n{LINE}\nOne page", 0.95, 1),
        (f"News\nOne page\n{LINE}\n3 May\nRead more\nAnother\n{LINE}\n3 May\nRead more", 0.95, 1),
        (f"News\n{LINE}\nRead more\n{LINE}\nRead more", 0.4, 0.6),
        ("One page\nAnother", 0.9, 1),
        (f"One page\nAnother\n{LINE}", 0, 0.2),
        (f"{LONG}\nOne page\n{LONG}\nAnother\n{LONG}", 0, 0.02),
        (f"One page\n{LINE}\n{LINE}\n{LINE}\n{LINE}\nAnother", 0, 0.05),
        (f"{LONG}\n{LINE}\n{LINE}", 0, 0),
        (f"of One page\n{LINE}\n" * 5, 0, 0),
        ("", 0, 0),
    ],
)
def test_the_share_of_a_text(text: str, least: float, most: float) -> None:
    wordings = ["Another", "One page", "Read more", f"A tile {LONG}"]
    assert least <= teased(text, wordings, 120) <= most
    assert teased(text, [], 120) == 0


def test_a_link_around_lines_names_a_page_by_the_first() -> None:
    text = f"Of marble\n{LINE}\nAnother of it\n{LINE}\n" * 2
    cut = [f"{line} {LINE}"[:120] for line in ("Of marble", "Another of it")]
    assert teased(text, cut, 120) > 0.7
    assert teased(f"Of\n{LINE}\n" * 5, cut, 120) == 0, "a single word may begin anything"


def test_a_link_that_was_cut_names_a_page() -> None:
    assert teased(f"{LONG}\n{LINE}\n" * 2, [LONG[:120].rstrip()], 120) > 0.9


def test_many_links_and_lines_take_little_time() -> None:
    lines = [f"{number} {words(number % 9, 3)}" for number in range(10_000)]
    began = time.thread_time()
    assert teased("\n".join(lines), lines * 5, 120) > 0.95
    teased("\n" * 200_000, ["\n"] * 50_000, 120)
    teased("a " * 100_000, ["a " * 60] * 50_000, 120)
    assert time.thread_time() - began < 2
