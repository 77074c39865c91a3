"""What is told of pages and redirects on their way from the harvest to the frontier."""

import pytest

from fyke.core.urls import locate
from fyke.core.visits import visit_to
from fyke.crawl.gathering import STRANGERS_WAIT_S, leads_to_its_like, target_wait_s


@pytest.mark.parametrize(
    ("target", "is_like"),
    [
        ("http://a.example/go/77aa8c1d0e", True),
        ("http://a.example/landing/77aa8c1d0e", False),
        ("http://b.example/go/77aa8c1d0e", False),
        ("https://a.example/go/3f2a1b9900", False),
        ("http://www.a.example/go/3f2a1b9900", False),
        ("http://a.example/", False),
    ],
)
def test_a_redirect_to_its_like_stays_where_it_is(target: str, is_like: bool) -> None:
    """To another scheme, name or path is where sites redirect to; one counted link to the next is a trap."""
    assert leads_to_its_like("http://a.example/go/3f2a1b9900", target) == is_like


@pytest.mark.parametrize("asked_s", [1.0, STRANGERS_WAIT_S, 86400.0])
def test_a_strangers_redirect_keeps_a_page_waiting_for_an_hour_at_most(asked_s: float) -> None:
    visit = visit_to("http://www.a.example/go")
    for own in ("http://www.a.example/", "https://b.a.example:444/x"):
        assert target_wait_s(visit, locate(own), asked_s) == asked_s
    assert target_wait_s(visit, locate("http://b.example/"), asked_s) == min(asked_s, STRANGERS_WAIT_S)
