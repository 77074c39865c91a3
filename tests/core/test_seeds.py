"""What a person means by a seed, and what is said where it is none."""

import pytest

from fyke.core.errors import BadUrl
from fyke.core.seeds import seed_url


@pytest.mark.parametrize(
    ("seed", "url"),
    [
        ("example.org", "http://example.org/"),
        ("localhost:8000/a", "http://localhost:8000/a"),
        (" https://Example.org/a b ", "https://example.org/a%20b"),
        ("http://example.org/?to=http://other.example/", "http://example.org/?to=http://other.example/"),
    ],
)
def test_a_name_or_a_url_is_a_seed(seed: str, url: str) -> None:
    assert seed_url(seed) == url


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        ("http://a.example/ http://b.example/", "several URLs"),
        ("a.example\thttps://b.example/", "several URLs"),
        ("not a url", "write http://"),
        ("http://exa mple.org/", "its host or port is not valid"),
        ("http://me:secret@a.example/", "user name or password"),
        ("http://me:secret@a.example/ http://b.example/", "several URLs"),
    ],
)
def test_what_is_none_is_told_in_one_line_without_a_password(seed: str, words: str) -> None:
    with pytest.raises(BadUrl, match=words) as told:
        seed_url(seed)
    assert "\n" not in str(told.value) and "secret" not in str(told.value)
