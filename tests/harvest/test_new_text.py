"""What counts as new text: sentences, and neither numbers, nor links, nor words that stand in the page's own URL."""

import random
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.batches import Kind, url_batch
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.urls import locate
from fyke.core.visits import Earlier, Exchange, Purpose, visits_of
from fyke.harvest.met_text import GRAM, WINDOW
from fyke.harvest.new_text import (
    ONE_IN,
    NewText,
    is_judged,
    pictures,
    rows,
)

AROUND = "<header>All that there is to know of rivers</header><footer>Written by many hands, for many years</footer>"


def page(content: str, path: str = "/", host: str = "www.a.example", kind: Kind = Kind.PAGE) -> Page:
    visit = visits_of(url_batch([locate(f"http://{host}{path}")], kind=kind))[0]
    return Page(Exchange(visit, Outcome.OK, 0.0, 0.0), "text/html", content.encode())


def answered(outcome: Outcome, status: int, purpose: Purpose = Purpose.PAGE, kind: Kind = Kind.PAGE) -> Page:
    visit = visits_of(url_batch([locate("http://www.a.example/there")], kind=kind))[0]
    visit.purpose = purpose
    return Page(Exchange(visit, outcome, 0.0, 0.0, status=status), "text/html", b"<p>What nobody had said before, here")


@pytest.fixture
def reader() -> NewText:
    return one_that_read()


def one_that_read() -> NewText:
    """Has met the domain already, and what stands around each of its pages."""
    reader = NewText()
    assert reader.fresh(page(AROUND)) is None
    assert reader.fresh(page(AROUND, "/1")) is True
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
    other = [reader.fresh(page(said, "/", host="www.b.example")) for _ in range(3)]
    assert other == [None, True, False], "another domain may say the same"


@pytest.mark.parametrize(
    ("page", "is_fresh"),
    [
        (answered(Outcome.CLIENT_ERROR, 404), False),
        (answered(Outcome.GONE, 410), False),
        (answered(Outcome.CLIENT_ERROR, 403), None),
        (answered(Outcome.THROTTLED, 503), None),
        (answered(Outcome.REDIRECTED, 302), None),
        (answered(Outcome.CLIENT_ERROR, 404, Purpose.PROBE), None),
    ],
)
def test_where_there_is_no_page_there_is_no_news_and_a_server_in_need_accuses_nobody(
    reader: NewText, page: Page, is_fresh: bool | None
) -> None:
    assert reader.fresh(page) is is_fresh


@pytest.mark.parametrize(
    ("exchange", "expected"),
    [
        (answered(Outcome.OK, 200).exchange, True),
        (answered(Outcome.REDIRECTED, 302).exchange, True),
        (answered(Outcome.REDIRECTED, 302, Purpose.ROBOTS).exchange, False),
        (answered(Outcome.REDIRECTED, 302, kind=Kind.LISTING).exchange, False),
    ],
)
def test_who_is_judged(exchange: Exchange, expected: bool) -> None:
    assert is_judged(exchange) is expected


def test_who_is_visited_again_is_not_judged() -> None:
    """Of a page that changed a little the text was met: that says nothing of what else its site has."""
    again = answered(Outcome.OK, 200).exchange
    again.visit.earlier = Earlier()
    assert not is_judged(again)


def test_the_first_page_of_a_domain_is_remembered_from_its_second_on() -> None:
    reader = NewText()
    said = "<p>Above the third bridge the banks are steep."
    assert [reader.fresh(page(said, path)) for path in ("/", "/again", "/and/again")] == [None, True, False]


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


def test_a_picture_is_new_once_whatever_stands_beside_its_name(reader: NewText) -> None:
    """Galleries have pages without text. Icons, and what counts visits, are everywhere."""

    def shown(source: str, path: str) -> bool | None:
        return reader.fresh(page(f'{AROUND}<a href=/next><IMG class="wide"\n alt="" src={source}></a>', path))

    assert shown('"/i/0042.jpg"', "/pictures/42") is True
    assert shown("'http://cdn.example/(S(a1b2c3))/I/0042.JPG?w=300#top'", "/pictures/42?s=1") is False
    assert shown('"/spin.gif" data-src="/i/0043.webp"', "/pictures/43") is True
    assert shown('"/spin.gif" data-src="/i/0043.webp"', "/pictures/44") is False
    assert shown("data:image/png;base64,iVBORw0KGgo=", "/pictures/45") is False
    assert shown('"/logo.svg"', "/pictures/46") is False
    assert shown('"/hit.php?page=.jpg"', "/pictures/47") is False


DATES = ["2026-11-{d:02} 07:15", "{d}/Nov/2026 7:15:22", "{d:02} Nov 2026", "{d}. Oktober 2026", "May {d}, 2026"]


@pytest.mark.parametrize("date", DATES)
def test_a_list_of_files_is_no_table(reader: NewText, date: str) -> None:
    """When each was changed, and its size, are made up as easily as its name; a timetable is read."""
    files = (f"<tr><td><a href=f{d}>f{d}</a><td>{date.format(d=d)}<td>{d * 977}K" for d in range(1, 20))
    assert reader.fresh(page(AROUND + "".join(files), "/pub/old/")) is False
    times = "".join(f"<tr><td>{h}:{h + 9}<td>{h + 1}:{h + 30}<td>{h + 2}:{h + 40}" for h in range(5, 20))
    assert reader.fresh(page(AROUND + times, "/stop")) is True


def test_it_is_remembered_which_pages_came(reader: NewText) -> None:
    """Also those that bring nothing: who redirects to one shows nothing."""
    one, other = page(AROUND, "/one"), page(AROUND, "/other")
    assert not reader.was_asked(one.exchange.visit.url)
    reader.fresh(one)
    reader.fresh(other)
    assert reader.was_asked(one.exchange.visit.url) and reader.was_asked(other.exchange.visit.url)
    assert not reader.was_asked("http://www.a.example/third")


def test_failures_and_images_are_not_read(reader: NewText) -> None:
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


def test_a_trap_within_an_honest_site_is_read_from_its_first_page(reader: NewText) -> None:
    """Whatever its articles brought: they lie elsewhere."""
    for n in range(1000):
        reader.fresh(page(f"<p>{words(n)} and {words(n + 7)}</p>", f"/news/{n}"))
    for url in ("/calendar/2026/{n}", "/news?month={n}"):
        assert [reader.fresh(page(AROUND, url.format(n=n))) for n in range(20)][1:] == [False] * 19


def test_the_words_of_the_url_are_not_new_whatever_else_has_them_in_it(reader: NewText) -> None:
    """There is an "er" in "here", which is left without it."""
    said = "<p>The page {} has moved or is not here any more. Perhaps you were looking for one of these instead:</p>"
    ends = ["er", "ov", "th", "ha", "ge", "pa", "as", "no", "an", "mo", "ps", "in", "st", "ea", "lo", "ok", "ki", "fo"]
    paths = [f"/archive/{words(n).split()[0]}-{end}.htm" for n, end in enumerate(ends)]
    assert [reader.fresh(page(AROUND + said.format(path), path)) for path in paths][2:] == [False] * 16


SPUN = [
    "Are you looking for a {how} {what} in {town}?", "Need a {how} {what} near {town}? Call us before it is too late.",
    "More than 500 people of {town} rely on our {what} service.", "Every {what} on our list is checked and insured.",
    "A {how} {what} costs about 40 an hour in {town}.", "Quotes for every {what} job are free, and so is advice.",
]  # fmt: skip


def test_met_sentences_with_other_names_in_them_are_not_new_when_these_are_in_the_url(reader: NewText) -> None:
    """In whatever order they come."""
    dice = random.Random(7)
    fresh = []
    for number in range(300):
        how, what = dice.choice(["best", "cheap", "local"]), dice.choice(["dentist", "florist", "plumber"])
        town = words(number).split()[0]
        said = " ".join(dice.sample(SPUN, 4)).format(how=how, what=what, town=town.capitalize())
        fresh.append(reader.fresh(page(f"{AROUND}<p>{said}</p>", f"/{how}-{what}-in-{town}")))
    assert fresh[100:].count(True) < 5
    assert reader.fresh(page(f"{AROUND}<p>{words(400)}, {words(401)}. {SPUN[3]}", "/tutor-in-holt")) is True


def words(number: int) -> str:
    """Six that nobody says but with this number."""
    return " ".join("".join(random.Random(f"{number} {at}").choices(ascii_lowercase, k=6)) for at in range(6))


@pytest.mark.parametrize(
    "piece",
    [
        b"<",
        b">",
        b"<a ",
        b"<a >",
        b"<script",
        b"<script>x</script>",
        b"<style",
        b"x>",
        b"<p>1 2",
        b"9",
        b"<img src=",
        b"<img src=/a.jpg",
    ],
)
def test_work_grows_with_length(piece: bytes) -> None:
    """A megabyte of each; what is read of it is bounded, and a second run is not needed to tell minutes from none."""
    assert len(rows(piece * (1 << 20), "http://h/1")) < 1 << 16
    assert len(pictures(piece * (1 << 20))) < 1 << 12


INVENTED = [
    "The harbour of glass was closed by seven silent ministers, who left no orders for the autumn.",
    "Copper lanterns grow in every valley where a violin has been buried under the first snow.",
    "He sold the bridge for eleven feathers and walked home along the bottom of the river.",
]


@st.composite
def cuts(draw: st.DrawFn, least: int = GRAM + WINDOW - 1) -> str:
    """Words in a row of one of the sentences, with so many letters."""
    told = draw(st.sampled_from(INVENTED)).split()
    firsts = [first for first in range(len(told)) if len(letters_of(told[first:])) >= least]
    first = draw(st.sampled_from(firsts))
    ends = [end for end in range(first, len(told) + 1) if len(letters_of(told[first:end])) >= least]
    return " ".join(told[first : draw(st.sampled_from(ends))])


def letters_of(told: list[str]) -> str:
    return "".join(filter(str.isalpha, "".join(told)))


def brings(content: str) -> bool | None:
    """Whether a page brings something where all sentences were met."""
    reader = one_that_read()
    assert reader.fresh(page("".join(f"<p>{text}</p>" for text in INVENTED), "/first")) is True
    return reader.fresh(page(f"{AROUND}<p>{content}</p>", "/anew"))


@given(st.lists(cuts(), max_size=6), st.sampled_from(["</p><p>", "<br>", " <mark>", "</mark> "]))
def test_met_text_cut_anew_and_parted_by_tags_is_not_new(parts: list[str], tag: str) -> None:
    assert brings(tag.join(parts)) is False


@given(st.permutations(INVENTED), st.sampled_from(["", "Domu: ", "Print, "]), st.integers(1, 3))
def test_met_text_joined_anew_and_behind_a_word_is_not_new(told: list[str], before: str, count: int) -> None:
    assert brings(before + " ".join(told[:count])) is False


def test_a_caption_among_much_that_was_met_is_new(reader: NewText) -> None:
    told = "".join(f"<p>{text}</p>" for text in INVENTED * 4)
    assert reader.fresh(page(told, "/first")) is True
    caption = "Two old boats on the shore below the red cliffs"
    assert reader.fresh(page(f"{told}<p>{caption}</p>", "/photo/1")) is True
    assert reader.fresh(page(f"{told}<p>Photo: {caption}</p>", "/photo/2")) is False


FIRST = "Whoever has no umbrella stays at home and waits until the sun shines once more."


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
