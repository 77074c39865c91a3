"""What stands in `<noscript>` is text of a page that says next to nothing else: Fyke reads as one without scripts."""

import re
from collections.abc import Callable
from random import Random

import pytest

from fyke.core.pages import Page
from fyke.export.prose import markdown, plain
from fyke.harvest.same_text import same_text
from fyke.search.main_text import LITTLE_TEXT, main_text
from search.test_main_text import page

READERS: list[Callable[[Page], str]] = [lambda one: main_text(one).text, plain, markdown]
NOTICES = [
    "<p>You need to enable JavaScript to run this app.</p>",
    "<strong>We are sorry, but this site does not work properly without JavaScript enabled.</strong>",
    '<img height="1" width="1" style="display:none" src="https://tracker.example/tr?id=1&amp;noscript=1"/>',
    '<iframe src="https://tags.example/ns.html?id=G" height="0" width="0" style="display:none"></iframe>',
    'Please enable JavaScript to view the <a href="https://comments.example/">comments</a>.',
    "<link rel=stylesheet href=plain.css>",
    "",
]
TAG = re.compile(r"<(/?)noscript>")
WORDS = ["Reed", "warbler", "pond", "heron", "marsh", "дрозд", "鹭鸶", "kingfisher", "otter", "newt"]


def text(dice: Random, letters: int) -> str:
    """Blocks of about so many letters, in words of several scripts."""
    blocks = []
    while letters > 0:
        words = " ".join(dice.choices(WORDS, k=min(dice.randrange(1, 12), 1 + letters // 8)))
        letters -= len(words)
        blocks.append(dice.choice(["<p>{}</p>", "<div>{}</div>", "<ul><li>{}</li></ul>"]).format(words))
    return "".join(blocks)


def body(dice: Random, outside: int, inside: int) -> str:
    """A body with a text of so many letters, one inside `<noscript>`, and perhaps a notice, in any order."""
    within = [text(dice, inside), dice.choice(NOTICES)]
    parts = [text(dice, outside), *(f"<noscript>{part}</noscript>" for part in within if part)]
    dice.shuffle(parts)
    around = dice.choice(["{}", "<div id=app></div>{}", "<main>{}</main>", "<script>x = '<p>no'</script>{}"])
    return f"<title>t</title><body>{around.format(''.join(parts))}</body>"


def words_of(text: str) -> list[str]:
    return sorted(re.findall(r"\w+", re.sub(r"\]\([^()]*\)", "]", text)))


LITTLE, MUCH = LITTLE_TEXT // 5, 4 * LITTLE_TEXT
SEEDS = range(200)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(("outside", "inside"), [(MUCH, MUCH), (MUCH, LITTLE), (MUCH, 0), (LITTLE, 0), (0, 0)])
def test_of_a_page_that_says_enough_or_only_asks_for_scripts_it_is_no_text(
    read: Callable[[Page], str], outside: int, inside: int
) -> None:
    for seed in SEEDS:
        html = body(Random(seed), outside, inside)
        without = re.sub(r"<noscript>.*?</noscript>", "", html)
        assert words_of(read(page(html))) == words_of(read(page(without))), html


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("outside", [0, LITTLE])
def test_of_a_page_that_says_next_to_nothing_else_it_is_the_text(read: Callable[[Page], str], outside: int) -> None:
    for seed in SEEDS:
        html = body(Random(seed), outside, MUCH)
        shown = TAG.sub(r"<\1div>", re.sub(r"<script>.*?</script>|<title>.*?</title>", "", html))
        assert words_of(read(page(html))) == words_of(re.sub(r"<[^>]*>", " ", shown)), html


@pytest.mark.parametrize("outside", [0, LITTLE])
def test_another_text_in_it_is_a_change(outside: int) -> None:
    for seed in SEEDS:
        html = body(Random(seed), outside, MUCH)
        assert same_text(html.encode(), html.encode())
        assert not same_text(html.encode(), re.sub(r"(>[^<]*)(?=<[^<]*</noscript>)", r"\1 bittern", html).encode())


@pytest.mark.parametrize("shared", [True, False])
def test_links_in_it_are_followed(shared: bool) -> None:
    for seed in SEEDS:
        html = body(Random(seed), LITTLE, MUCH).replace("<noscript>", "<noscript><a href=/there>there</a>")
        assert "/there" in page(html, shared=shared).links.pages
