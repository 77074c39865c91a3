"""What counts as new text: sentences, and neither numbers, nor links, nor words that stand in the page's own URL."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fyke.core.batches import Kind, url_batch
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import Exchange, Page, visits_of
from fyke.harvest import new_text
from fyke.harvest.new_text import (
    LEAST_PIECE,
    ONE_IN,
    READ_BYTES,
    SMALL_DOMAIN,
    NewText,
    blocks,
    letters_by_patterns,
    pieces_by_columns,
    rows,
)

AROUND = "<header>All that there is to know of rivers</header><footer>Written by many hands, for many years</footer>"


def page(content: str, path: str = "/", host: str = "www.a.example", kind: Kind = Kind.PAGE) -> Page:
    visit = visits_of(url_batch([locate(f"http://{host}{path}")], kind=kind))[0]
    return Page(Exchange(visit, Outcome.OK, 0.0, 0.0), "text/html", content.encode())


@pytest.fixture
def reader() -> NewText:
    """Has met the domain already, and what stands around each of its pages."""
    reader = NewText()
    for number in range(SMALL_DOMAIN):
        assert reader.fresh(page(AROUND, f"/{number}")) is None
    assert reader.fresh(page(f"{AROUND}<p>The first page has a few words of its own.</p>")) is True
    return reader


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<p>The first page has a few words of its own.</p>",
        "<h1>31.12.2041</h1><td>1</td><td>2</td>",
        "<a href='/elsewhere'>A long name for a page that lies elsewhere</a>",
        "<script>var session = 'ajfdkghakdfhgkladfhgklahdfgklahdfg'</script>",
        "<style>.ajfdkghakdfhgkladfhgklahdfgklahdfg { color: red }</style>",
        "<p>missing treasure chest map legend</p>",
        "<!-- made for you alone by the server named ajfdkghakdfhgkladfhgk -->",
    ],
)
def test_what_is_not_new(reader: NewText, content: str) -> None:
    assert reader.fresh(page(AROUND + content, "/missing-treasure/chest,map,legend/2041")) is False


def test_what_is_new_once(reader: NewText) -> None:
    said = f"{AROUND}<p>Beyond the second bend the water slows down.</p>"
    assert reader.fresh(page(said, "/bend")) is True
    assert reader.fresh(page(said, "/again")) is False
    other = [reader.fresh(page(said, "/", host="www.b.example")) for _ in range(SMALL_DOMAIN + 2)]
    assert other == [*[None] * SMALL_DOMAIN, True, False], "another domain may say the same"


def test_words_of_the_url_of_which_one_begins_another_are_no_news(reader: NewText) -> None:
    long = ["abdefghijklmnopqrstuvwxyz", "bacdefghijklmnopqrstuvwxy", "cabdefghijklmnopqrstuvwxz"]
    path = "/".join(word[:end] for word in long for end in (5, 9, 14, 25))
    assert reader.fresh(page(f"{AROUND}<p>{' '.join(long)}", f"/{path}")) is False


def table(lines: list[list[int]]) -> str:
    return "".join(f"<tr>{''.join(f'<td>{number}</td>' for number in line)}" for line in lines)


def test_tables_of_numbers_are_new_once(reader: NewText) -> None:
    """And not again in another order, nor with the day in the URL, nor by what counts."""
    lines = [[18 * hour, 1013 - hour, 7 * hour * hour, 600 + hour] for hour in range(9)]
    assert reader.fresh(page(AROUND + table(lines), "/weather/1")) is True
    assert reader.fresh(page(AROUND + table(lines[::-1]), "/weather/2")) is False
    assert reader.fresh(page(AROUND + table(lines[2:7]), "/weather/3")) is False
    assert reader.fresh(page(AROUND + table([[20, 4, 11, n, n] for n in range(20, 29)]), "/20/4/11")) is False
    assert reader.fresh(page(AROUND + table([[*range(n, n + 7)] for n in range(1, 29, 7)]), "/may")) is False
    assert reader.fresh(page(f"{AROUND}<p>2026-11-23 07:15:22.123456, visitor 4711007", "/clock")) is False
    links = "".join(f"<tr><td><a href=/{n}>{n * 18}</a> <a href=/>{n * n}</a> <a href=/>9{n}7</a>" for n in range(9))
    assert reader.fresh(page(AROUND + links, "/links")) is False
    assert reader.fresh(page(AROUND + table([[n * 977, n * n, n * 7] for n in range(100, 109)]), "/weather/4")) is True


def test_sitemaps_failures_and_images_are_not_read(reader: NewText) -> None:
    assert reader.fresh(page("", kind=Kind.LISTING)) is None
    failed, image = page(""), page("")
    failed.exchange.outcome = Outcome.SERVER_ERROR
    image.media_type = "image/png"
    assert (reader.fresh(failed), reader.fresh(image)) == (None, None)


def test_a_domain_that_brings_something_is_read_seldom_until_it_does_not(reader: NewText) -> None:
    said = [reader.fresh(page(f"<p>{words(n)} and {words(n + 7)}</p>", f"/{n}")) for n in range(1000)]
    late = said[200:]
    assert late.count(True) + late.count(None) == len(late)
    assert 0.5 / ONE_IN < late.count(True) / len(late) < 2 / ONE_IN
    barren = [reader.fresh(page(AROUND, f"/{n}")) for n in range(2000, 2100)]
    assert barren[50:] == [False] * 50


def words(number: int) -> str:
    """Letters that differ, as no number does."""
    return " ".join("abcdefghij"[int(digit)] * 5 + "klmnopqrst"[int(digit)] for digit in str(number * 7919))


PIECES = [
    b"<", b">", b"</", b"<a ", b"<A\x0b", b"<ab ", b"<a", b" href=x>", b"<script", b"</Script>", b"<STYLE>", b"</style",
    b"<p>", b"</p>", b"<!--", b"-->", b"\n", b"\t", b" ", b"Two words", b"31.12.", b"\xc3\xa9", b"\x00", b"\xa0",
]  # fmt: skip


@pytest.mark.skipif(new_text.letters is None, reason="it was not compiled: there was no compiler")
@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=5), max_size=60).map(b"".join))
def test_letters_are_the_same_compiled(content: bytes) -> None:
    assert new_text.letters(content).split() == letters_by_patterns(content).split()


@given(st.binary(max_size=300))
def test_any_bytes_have_blocks(content: bytes) -> None:
    assert all(block and b"<" not in block for block in blocks(content))


@pytest.mark.parametrize(
    "piece", [b"<", b">", b"<a ", b"<a >", b"<script", b"<script>x</script>", b"<style", b"x>", b"<p>1 2", b"9"]
)
def test_work_grows_with_length(piece: bytes) -> None:
    """A megabyte of each; what is read of it is bounded, and a second run is not needed to tell minutes from none."""
    assert len(blocks(piece * (1 << 20))) < 1 << 16
    assert len(letters_by_patterns(piece * (1 << 16))) < 1 << 20
    assert len(rows(piece * (1 << 20), "http://h/1")) < 1 << 16


def test_text_that_was_met_and_is_cut_anew_is_not_new() -> None:
    """What a search shows of pages: other pieces each time."""
    words = " ".join(letter * 2 + word for letter in "bcdfghjklmnp" for word in ["anker", "udine", "ospak", "ifamu"])
    reader, told = NewText(), words.split()
    for number in range(SMALL_DOMAIN + 1):
        reader.fresh(page(f"<p>{words}</p>", f"/{number}"))
    found = [reader.fresh(page(f"<p>{' '.join(told[at : at + 24])}</p>", f"/search/{at}")) for at in range(1, 24)]
    assert sum(map(bool, found)) <= 2
    other = " ".join(letter * 3 + word for letter in "bcdfghjklmnp" for word in ["anker", "udine", "ospak", "ifamu"])
    assert reader.fresh(page(f"<p>{other}</p>", "/other")) is True


BLOCKS = st.lists(st.binary(max_size=200).map(lambda text: text.replace(b"\n", b"")), max_size=5)


@given(BLOCKS)
@example([b"", b"\x98" + bytes(7) + b"a"])
def test_pieces_are_of_one_block_and_wherever_it_begins(text: list[bytes]) -> None:
    found = pieces_by_columns(b"\n".join(text))
    alone = [set(pieces_by_columns(block)["key"].tolist()) for block in text]
    assert set(found["key"].tolist()) == set().union(*alone)
    assert found["length"].sum() <= sum(map(len, text)) and (found["length"] >= LEAST_PIECE).all()
    for block, keys in zip(text, alone, strict=True):
        assert set(pieces_by_columns(b"anything at all" + block)["key"].tolist()) >= keys


@pytest.mark.skipif(new_text.pieces is None, reason="it was not compiled: there was no compiler")
@given(BLOCKS | st.lists(st.sampled_from([b"fghfghfgh", b"afabcdefgha", b"ah", b"a"]), max_size=200))
def test_pieces_are_the_same_compiled(text: list[bytes]) -> None:
    joined = b"\n".join(text) + b"".join(text)
    found = new_text.pieces(joined[:READ_BYTES])
    assert sorted(zip(*[iter(np.frombuffer(found, np.uint64).tolist())] * 2, strict=True)) == sorted(
        pieces_by_columns(joined[:READ_BYTES]).tolist()
    )


FIRST = "Whoever has no umbrella stays at home and waits until the sun shines once more."
INVENTED = [
    "The harbour of glass was closed by seven silent ministers, who left no orders for the autumn.",
    "Copper lanterns grow in every valley where a violin has been buried under the first snow.",
    "He sold the bridge for eleven feathers and walked home along the bottom of the river.",
]


def probe(content: str, path: str) -> Page:
    visit = visits_of(url_batch([locate(f"http://www.a.example{path}")], kind=Kind.PROBE))[0]
    return Page(Exchange(visit, Outcome.OK, 0.0, 0.0), "text/html", (AROUND + content).encode())


def test_text_that_is_new_under_each_name_is_made_up(reader: NewText) -> None:
    assert reader.fresh(page(f"{AROUND}<title>Rain, the meaning of it</title><p>{FIRST}</p>", "/wiki/rain")) is True
    for number, text in enumerate(INVENTED):
        name = "many-hands" + "x" * number
        assert reader.fresh(probe(f"<title>{name}, the meaning of it</title><p>{text}</p>", f"/wiki/{name}")) is True
    assert reader.fresh(page(f"{AROUND}<p>{INVENTED[0]}</p>", "/real")) is True, (
        "no page is held to what a probe brought"
    )


def test_what_says_no_is_not_made_up_whatever_stands_beside_it(reader: NewText) -> None:
    """The second time, since nobody knows how a site says it."""
    answers = [f"<p>Sorry, no page named q{n}x here.</p><p>{text}</p>" for n, text in enumerate(INVENTED)]
    said = [reader.fresh(probe(answer, f"/wiki/q{n}x")) for n, answer in enumerate(answers)]
    assert said[1:] == [False, False]
    met = "<p>The first page has a few words of its own.</p>"
    assert reader.fresh(probe(met, "/wiki/another")) is False, "the page that is shown for all"
