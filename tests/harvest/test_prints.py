"""Pages that say and show the same have a number in common; what does not, has not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("host", ["a.test", "www.a.test", "m.a.test"])
def test_a_link_to_the_own_site_counts_from_its_path_on(host: str) -> None:
    of = f"http://{host}/p"
    there, here = (number_of(page(link=link), "text/html", of) for link in (f"http://{host}/m", "/m"))
    assert there == here == number_of(page(link="//www.a.test/m"), "text/html", of)
    for other in ("http://b.test/m", f"http://{host}/n", f"http://x.{host}/m"):
        assert number_of(page(link=other), "text/html", of) != here


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
