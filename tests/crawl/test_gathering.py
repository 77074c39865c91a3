"""What is told of pages and redirects on their way from the harvest to the frontier."""

import pytest

from fyke.crawl.gathering import leads_to_its_like


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
