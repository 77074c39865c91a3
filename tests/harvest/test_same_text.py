"""What a reader comes for makes a change; what frames it does not."""

import pytest

from fyke.harvest.same_text import MOST_TEXT_BYTES, same_text

PAGE = (
    "<!doctype html><html><head><title>A pump</title><meta name=csrf content='{token}'></head><body>"
    "<nav>{menu}</nav><h1>A pump</h1><p>It lifts {price} litres.</p><form><input type=hidden value='{token}'></form>"
    "<div class='box Advert'>{offer}</div><script>var t = '{token}'</script><footer>{date}</footer></body></html>"
)
USUAL = {"token": "a1", "menu": "home", "price": "12", "offer": "buy me", "date": "Monday"}


def page(**words: str) -> bytes:
    return PAGE.format(**USUAL | words).encode()


@pytest.mark.parametrize("name", ["token", "menu", "offer", "date"])
def test_a_token_a_menu_an_advertisement_a_date_below_are_no_change(name: str) -> None:
    assert page() != page(**{name: "other"}) and same_text(page(), page(**{name: "other"}))


def test_a_number_in_the_text_and_a_title_are_a_change() -> None:
    assert not same_text(page(), page(price="13"))
    assert not same_text(page(), page().replace(b"<title>A pump", b"<title>Two pumps"))


def test_a_page_that_is_all_frame_is_compared_whole() -> None:
    assert not same_text(b"<body><nav>one</nav></body>", b"<body><nav>two</nav></body>")
    assert same_text(b"", b"") and same_text(b"<body><nav>one</nav></body>", b"<nav>one</nav>")


def test_what_is_too_long_is_not_compared() -> None:
    long = b"<p>" + b"x " * MOST_TEXT_BYTES
    assert not same_text(long, long)
