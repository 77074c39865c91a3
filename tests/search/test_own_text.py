"""What a page says by itself is what its copy at another host says by itself."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.disk.ranges import Array
from fyke.search import own_text
from fyke.search.article import TextParts
from fyke.search.own_text import LEAST_PAGES, NOTE_WORDS, OwnText
from fyke.search.pieces import pieces_of
from fyke.search.sketch import LEAST_SHINGLES, shingles, sketch_of, word_hashes
from search.webs import WORDS

ONE, OTHER = 1 << 63 | 7, 12
MENUS = {host: [" ".join(Random(host + line).choices(WORDS, k=12)) for line in range(8)] for host in (ONE, OTHER)}


def said(number: int, words: int = 200) -> str:
    """What a page says by itself, three lines."""
    dice = Random(number)
    return "\n".join(" ".join(dice.choices(WORDS, k=words // 3)) for _ in range(3))


def shown(host: int, text: str) -> str:
    """A text with the menu of a host before and behind it."""
    return "\n".join([*MENUS[host][:5], text, *MENUS[host][5:]])


def sketch(text: str) -> Array:
    """Of a text at a host of which nothing was met."""
    return OwnText().sketch(ONE, pieces_of(text))


def met(*hosts: int, pages: int = LEAST_PAGES) -> OwnText:
    """With as many pages of each as make its menu common."""
    out = OwnText()
    for host in hosts:
        for number in range(pages):
            out.meet(host, pieces_of(shown(host, said(host + 100 + number))))
    return out


def has(sketched: Array) -> bool:
    return bool(sketched["bands"].any())


def test_copies_at_hosts_with_other_menus_are_alike() -> None:
    own = met(ONE, OTHER)
    for number in range(20):
        one, other = (own.sketch(host, pieces_of(shown(host, said(number)))) for host in (ONE, OTHER))
        assert one == other == sketch(said(number))


def test_the_first_pages_of_a_host_are_read_as_its_others() -> None:
    own, numbers = OwnText(), range(LEAST_PAGES)
    for number in numbers:
        own.meet(ONE, pieces_of(shown(ONE, said(number))))
    assert all(own.sketch(ONE, pieces_of(shown(ONE, said(number)))) == sketch(said(number)) for number in numbers)


@pytest.mark.parametrize("end", [". ", "! ", "。", " | "])
def test_a_sentence_is_common_whatever_shares_its_line(end: str) -> None:
    own, notice = OwnText(), f"notice{end}{MENUS[ONE][0]}{end}{MENUS[ONE][1]}"
    for number in range(LEAST_PAGES):
        own.meet(ONE, pieces_of(f"{said(number)}\nwritten in {number}{end}{notice}"))
    assert own.sketch(ONE, pieces_of(f"{said(9)}\nwritten in 9{end}{notice}")) == sketch(
        f"{said(9)}\nwritten in 9{end}"
    )


def test_a_line_with_another_date_on_each_page_is_common() -> None:
    own = OwnText()
    for number in range(LEAST_PAGES):
        own.meet(ONE, pieces_of(f"Published on {number} May 20{number} by all of our Friends\n{said(number)}"))
    assert own.sketch(ONE, pieces_of(f"Published on 31 March 2024 by all of our Readers\n{said(9)}")) == sketch(said(9))
    assert own.sketch(ONE, pieces_of(f"Published on 31 March 2024 by each of our Readers\n{said(9)}")) != sketch(
        said(9)
    )


@pytest.mark.parametrize("words", [LEAST_SHINGLES + 12, 90, 900])
def test_copies_with_other_notes_are_alike(words: int) -> None:
    for number in range(20):
        dice, article = Random(number), said(number, words)
        notes = [" ".join(dice.choices(WORDS, k=dice.randrange(NOTE_WORDS))) for _ in range(8)]
        while sum(map(len, map(str.split, notes))) > LEAST_SHINGLES:
            notes.pop()
        lines = [*article.split("\n"), *notes]
        dice.shuffle(lines)
        own = [line for line in lines if line not in notes]
        assert sketch("\n".join(lines)) == sketch("\n".join(own))


def test_copies_beside_other_links_are_alike() -> None:
    links = [" ".join(Random(f"link {number}").choices(WORDS, k=12)) for number in range(4)]
    pieces = pieces_of("\n".join([*links[:2], said(1), *links[2:]]), links)
    assert OwnText().sketch(ONE, pieces) == sketch(said(1))


@pytest.mark.parametrize("note", [
    "Retrieved from http://wiki.example/how_a_river_is_crossed_by_night", "last modified 2018-03-05 16:28 by umar",
    "User-Defined Functions 2 3796 September 9, 2021", "lantern/orchard/river/stone/the_tide_of_a_harbour.txt",
])  # fmt: skip
def test_addresses_files_and_days_are_words_of_a_note(note: str) -> None:
    assert sketch(f"{note}\n{said(1)}") == sketch(said(1))


@pytest.mark.parametrize("sign", ["Re: ", "AW: Re: ", ""])
def test_copies_of_a_thread_without_what_each_answers_are_alike(sign: str) -> None:
    title, posts = said(5, 36).replace("\n", " "), [said(number, 90) for number in range(4)]
    thread = pieces_of("\n".join([title, *(f"{sign}{title}\n{post}" for post in posts)]), title=title)
    assert OwnText().sketch(ONE, thread) == sketch("\n".join(posts))


@pytest.mark.parametrize("words", [300, 900])
def test_what_is_common_at_one_host_is_so_in_copies_elsewhere(words: int) -> None:
    """An agency writes the same below each of its press releases, and who copies one copies that too."""
    own = met(ONE)
    for number in range(LEAST_PAGES):
        own.spread(ONE, pieces_of(shown(ONE, said(ONE + 100 + number))))
    copied = pieces_of(shown(ONE, said(1, words)))
    assert own.sketch(OTHER, copied) == own.sketch(ONE, copied) == sketch(said(1, words))


def test_a_page_that_says_mostly_what_is_common_elsewhere_says_it() -> None:
    """A licence stands on each page of one host, and is the page at another."""
    own = met(ONE)
    for number in range(LEAST_PAGES):
        own.spread(ONE, pieces_of(shown(ONE, said(ONE + 100 + number))))
    licence = "\n".join([*MENUS[ONE], *MENUS[OTHER][:3]])
    assert own.sketch(OTHER, pieces_of(licence)) == sketch(licence)


def test_copies_with_other_comments_are_alike() -> None:
    comments = [said(number + 7, 60) for number in range(5)]
    pieces = pieces_of(TextParts(said(1, 60), visitors="\n".join(comments)))
    assert OwnText().sketch(ONE, pieces) == sketch(said(1, 60))


def test_where_all_is_comments_they_are_what_is_said() -> None:
    comments = "\n".join(said(number, 60) for number in range(5))
    parts = TextParts("In this thread", visitors=comments)
    assert OwnText().sketch(ONE, pieces_of(parts)) == sketch(f"In this thread\n{comments}")


def test_where_the_rest_is_common_comments_are_what_is_said() -> None:
    own, comments = met(ONE), said(5, 300)
    parts = TextParts("\n".join(MENUS[ONE]), visitors=comments)
    assert own.sketch(ONE, pieces_of(parts)) == sketch(comments)


def test_what_stands_beside_an_article_is_left_out_where_it_is_little_or_repeated() -> None:
    beside, more = said(7, 30), said(8, 600)
    for parts, left in (
        (TextParts(said(1), beside, ""), said(1)),
        (TextParts(said(1), beside, more), said(1)),
        (TextParts(said(1), more, ""), "\n".join([said(1), more])),
        (TextParts(said(1, 30), more, beside), "\n".join([said(1, 30), more, beside])),
    ):
        assert OwnText().sketch(ONE, pieces_of(parts)) == sketch(left)


def test_what_a_list_says_are_its_lines() -> None:
    names = [" ".join(Random(f"name {number}").choices(WORDS, k=3)) for number in range(90)]
    for lines in (names, [*names, said(1)]):
        assert sketch("\n".join(lines)) == sketch_of(shingles(word_hashes("\n".join(lines))))
        assert OwnText().sketch(ONE, pieces_of("\n".join(lines), lines)) == sketch("\n".join(lines))


def test_before_a_menu_is_common_nothing_is_left_out() -> None:
    own = met(ONE, pages=LEAST_PAGES - 1)
    assert own.sketch(ONE, pieces_of(shown(ONE, said(1)))) == sketch(shown(ONE, said(1)))
    assert own.sketch(OTHER, pieces_of(shown(ONE, said(1)))) == sketch(shown(ONE, said(1))), (
        "it is common at its host alone"
    )


def test_a_text_under_many_addresses_does_not_become_common() -> None:
    own = met(ONE)
    for number in range(10):
        wanted = sketch(said(number))
        dice = Random(number)
        for _ in range(30):
            own.meet(ONE, pieces_of(shown(ONE, said(number))))
            assert own.sketch(ONE, pieces_of(shown(ONE, said(number)))) == wanted
        for _ in range(30):
            words = said(number).split(" ")
            words[dice.randrange(len(words))] = "changed"
            own.meet(ONE, pieces_of(shown(ONE, " ".join(words))))
    assert own.sketch(ONE, pieces_of(shown(ONE, said(0)))) == sketch(said(0))


def test_a_paragraph_on_a_few_of_many_pages_is_not_common() -> None:
    own = met(ONE, pages=200)
    paragraph = said(1000, 60)
    for number in range(5):
        own.meet(ONE, pieces_of(f"{said(number)}\n{paragraph}"))
    assert own.sketch(ONE, pieces_of(f"{said(9)}\n{paragraph}")) == sketch(f"{said(9)}\n{paragraph}")


def test_a_line_that_a_page_repeats_counts_once() -> None:
    own = OwnText()
    own.meet(ONE, pieces_of("\n".join([said(1), *["a line that stands here again and again"] * 20, said(2)])))
    again = f"a line that stands here again and again\n{said(3)}"
    assert own.sketch(ONE, pieces_of(again)) == sketch(again)


def test_who_says_little_has_no_sketch() -> None:
    own = met(ONE)
    assert not has(own.sketch(ONE, pieces_of(shown(ONE, "river lantern orchard"))))
    assert not has(own.sketch(ONE, pieces_of(shown(ONE, ""))))
    assert not has(own.sketch(ONE, pieces_of("")))
    short = " ".join(Random(1).choices(WORDS, k=LEAST_SHINGLES))
    assert not has(own.sketch(ONE, pieces_of(short))), "by itself, whatever stands beside it elsewhere"
    assert has(own.sketch(ONE, pieces_of(shown(ONE, short))))


@settings(max_examples=20, deadline=None)
@given(cut=st.integers(0, 40), seed=st.integers(0, 5))
def test_goes_on_as_if_it_had_not_been_written(tmp_path_factory: pytest.TempPathFactory, cut: int, seed: int) -> None:
    dice = Random(seed)
    texts = [(host, shown(host, said(dice.randrange(15)))) for host in dice.choices((ONE, OTHER), k=40)]
    whole, own = OwnText(), OwnText()
    path = tmp_path_factory.mktemp("own") / "lines.npy"
    for place, (host, text) in enumerate(texts):
        if place == cut:
            own.write(path)
            own = OwnText.read(path)
        own.meet(host, pieces_of(text))
        whole.meet(host, pieces_of(text))
        assert own.sketch(host, pieces_of(text)) == whole.sketch(host, pieces_of(text))


def test_a_file_that_is_damaged_or_missing_is_nothing_met(tmp_path: Path) -> None:
    path = tmp_path / "lines.npy"
    met(ONE).write(path)
    content = path.read_bytes()
    np.save(tmp_path / "other.npy", np.zeros(9, np.uint64))
    for damaged in (
        b"",
        content[:50],
        content[:-3],
        b"\x93NUMPY" + content[99:],
        (tmp_path / "other.npy").read_bytes(),
    ):
        path.write_bytes(damaged)
        assert repr(OwnText.read(path)) == repr(OwnText())
    path.unlink()
    assert repr(OwnText.read(path)) == repr(OwnText())


def test_what_comes_often_stays_where_there_is_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is read on and on keeps its menu, whatever else is read meanwhile."""
    monkeypatch.setattr(own_text, "PLACE_BITS", 12)
    monkeypatch.setattr(own_text, "PLACES", 1 << 12)
    own = met(ONE, pages=20)
    for number in range(400):
        own.meet(number + 5000, pieces_of("\n".join(f"{number} {line} {' '.join(WORDS)}" for line in range(20))))
        if number % 20 == 0:
            assert own.sketch(ONE, pieces_of(shown(ONE, said(number)))) == sketch(said(number))
