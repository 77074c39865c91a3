"""Pages that say and show the same have a number in common; what does not, has not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.own_marks import LEAST_LINKS
from fyke.harvest.prints import number_of, prints_of, whole_prints

WORDS = " ".join(f"word{number}" for number in range(40))
PAGE = (
    "<!doctype html><title>{title}</title><nav>{menu}</nav><h1>A pump</h1><p>{text}</p><img src='{image}' alt='{alt}'>"
    "<a href='{link}'>more</a><form><input type=hidden value='{token}'></form><div class=ad>{offer}</div>"
    "<script>var t = '{token}'</script><script type='application/json'>{data}</script><footer>{date}</footer>"
)
USUAL = {"title": "A", "text": WORDS, "image": "/i", "link": "/m", "alt": "A pump", "data": "[1]"}
USUAL |= dict.fromkeys(("token", "menu", "offer", "date"), "one")


def page(**words: str) -> bytes:
    return PAGE.format(**{**USUAL, **words}).encode()


@pytest.mark.parametrize("name", ["token", "menu", "offer", "date"])
def test_what_frames_a_page_does_not_count(name: str) -> None:
    assert number_of(page(), "text/html") == number_of(page(**{name: "other"}), "text/html")
    assert number_of(page(), "text/plain") != number_of(page(**{name: "other"}), "text/plain")


@pytest.mark.parametrize("name", ["title", "text", "image", "alt", "link", "data"])
def test_what_it_says_and_shows_and_where_it_leads_counts(name: str) -> None:
    assert number_of(page(), "text/html") != number_of(page(**{name: WORDS + "/other"}), "text/html")


def test_of_few_words_every_byte_counts() -> None:
    assert number_of(page(text="few"), "text/html") != number_of(page(text="few", token="b"), "text/html")


def test_the_session_of_the_own_url_does_not_count() -> None:
    asked, plain = page(link="/m?sid=abcdef123456"), page()
    assert number_of(plain, "text/html") in prints_of(asked, "text/html", "http://a.test/?sid=abcdef123456")
    assert number_of(plain, "text/html") not in prints_of(asked, "text/html", "http://a.test/")


@given(st.lists(st.sampled_from("abcdefghij"), min_size=LEAST_LINKS, max_size=10, unique=True), st.integers(0, 3))
def test_a_copy_that_names_itself_in_its_links_is_one(names: list[str], elsewhere: int) -> None:
    """Links to the site to which most lead count from their path on; of few, and elsewhere, the host counts."""

    def linking(host: str, names: list[str], out: str = "out.test") -> int:
        links = [f"{host}/{name}" for name in names] + [f"http://{out}/{n}" for n in range(elsewhere)]
        return number_of(page(text=WORDS + "".join(f"<a href='{link}'>x</a>" for link in links)), "text/html")

    hosts = ["", "http://a.test", "http://www.a.test", "//m.a.test", "https://mirror.test"]
    assert len({linking(host, names) for host in hosts}) == 1
    assert linking("", names) != linking("", [*names[1:], "other"])
    assert (linking("", names) == linking("", names, "out2.test")) == (elsewhere == 0)
    few = names[: LEAST_LINKS - 1]
    assert linking("http://a.test", few) != linking("http://b.test", few)


@given(st.binary(max_size=300), st.sampled_from(["text/html", "text/plain", ""]))
def test_equal_bytes_have_equal_numbers(content: bytes, media_type: str) -> None:
    assert number_of(content, media_type) == number_of(bytes(content), media_type) != 0


def beside(link: str, url: str = "http://a.test/p?ref=top") -> frozenset[str]:
    """What counts of a `link` beside a page."""
    return whole_prints(page(menu=f"<a href='{link}'>x</a>"), "text/html", url)[0].frame


def test_where_what_is_beside_a_page_leads_is_told_apart() -> None:
    assert beside("/firm?id=3") == {"/firm?id=3"} and beside("#top") == set()
    for name in ("offer", "token"):
        one, other = (whole_prints(page(**{name: f"<a href=/{n}>x</a>"}), "text/html", "http://a.test/") for n in "ab")
        assert one == other, "an advertisement and what is in no element of the page lead nowhere"


@pytest.mark.parametrize(
    ("link", "left"),
    [
        ("/out?token=4fa3bb901ce27d55&by=3", "/out&by=3"),
        ("/basket;jsessionid=4fa3bb901ce27d55", "/basket"),
        ("/in?back=%2Fp%3Fref%3Dtop", "/in"),
        ("/firm?id=100000000023", "/firm?id=100000000023"),
    ],
)
def test_tokens_and_where_to_come_back_to_do_not_count_beside_a_page(link: str, left: str) -> None:
    assert beside(link) == {left}
    assert not beside("/p?ref=top") and not beside("?ref=top") and not beside("http://a.test/p?ref=top#x")
