"""The laws of the canonical form, and a table of what it is."""

from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fyke.core.urls import (
    MAX_URL_BYTES,
    canonical,
    host_keys,
    is_address,
    key_of,
    keys_of,
    locate,
    pay_level_domain,
    robots_url,
    split,
)

_PIECES = [
    *[
        "http://",
        "https://",
        "ftp://",
        "gopher://",
        "n2+x://",
        "HTTP:",
        "gopher:",
        "//",
        "/",
        "\\",
        "..",
        ".",
        "?",
        "#",
        "@",
        ":",
    ],
    *["%", "%%", "%4", "%41", "%2e", "%2E", "%2F", "%c3%a9", "%25", "%00", "%7e", "%32e", "80", ":70", ":443", ":0"],
    *["a", "EXAMPLE", "example.com", "com", "co.uk", "bücher.de", "xn--bcher-kva.de", "[::1]", "[2001:DB8::0:1]"],
    *["1.2.3.4", "0x7f.1", "１", "。", "ß", "\u00ad", "\u200b", " ", "\t", "\n", "\x00", "\ud800", "'", '"', "|", "{"],
]
anything = st.one_of(st.lists(st.sampled_from(_PIECES), max_size=9).map("".join), st.text(max_size=30))
webby = st.tuples(st.sampled_from(["http://", "ftp://", "gopher://", "n2+x://"]), anything).map("".join)


@settings(max_examples=600, deadline=None)
@given(anything | webby, st.none() | anything | webby)
@example("gopher://EX%41mple/", None)
@example("gopher://b%C3%BCcher.de:70", None)
@example("http://a/%%32e/x", None)
@example("http://a/%2%65%2%65/x", None)
@example("http://a/?%%34%31", None)
@example("http://./", None)
@example("http://a..b/", None)
@example("gopher://[::1]:70//", None)
def test_canonical_is_idempotent_and_never_raises(url: str, base: str | None) -> None:
    once = canonical(url, base)
    if once is None:
        return
    assert canonical(once) == once
    assert once.isascii()
    at, parts = locate(once), split(once)
    assert at.url.decode() == once
    assert (at.host, at.domain) == host_keys(parts.host) == (key_of(parts.host), key_of(pay_level_domain(parts.host)))
    assert parts.host and parts.target.startswith("/")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://Example.COM:80", "http://example.com/"),
        ("https://example.com:443/a/../b/./c?x#y", "https://example.com/b/c?x"),
        ("http://user:pass@example.com/", "http://example.com/"),
        ("http://example.com/%7euser/%c3%a9", "http://example.com/~user/%C3%A9"),
        ("http://example.com/é?é", "http://example.com/%C3%A9?%C3%A9"),
        ("http://example.com/%2e%2e/a", "http://example.com/a"),
        ("http://example.com/%%41", "http://example.com/%%41"),
        ("http://example.com/%4%31", "http://example.com/%4%31"),
        ("http://example.com/%zz%41", "http://example.com/%zzA"),
        ("http://example.com/a?", "http://example.com/a"),
        ("http://example.com/a?#", "http://example.com/a"),
        ("http://example.com./", "http://example.com./"),
        ("http://bücher.de/", "http://xn--bcher-kva.de/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[2001:DB8::0:1]/", "http://[2001:db8::1]/"),
        ("gopher://Example.ORG:70", "gopher://example.org/"),
        ("gopher://bücher.de/1", "gopher://xn--bcher-kva.de/1"),
        ("gopher://h/0/a\tb", "gopher://h/0/ab"),
        ("ftp://h:21/a", "ftp://h/a"),
        (" http://h/a b\n", "http://h/a%20b"),
        ("http://h\\a", "http://h/a"),
        ("News2://u:p@Example.ORG:0119/a/../b?#c", "news2://example.org:119/b"),
        ("news2://bücher.de", "news2://xn--bcher-kva.de/"),
        ("news2:///a", None),
        ("news2:a", None),
        ("file:///etc/passwd", None),
        ("mailto:a@b.c", None),
        ("javascript:alert(1)", None),
        ("http://", None),
        ("gopher:h", None),
        ("gopher://a%2fb/", None),
        ("/a", None),
        ("http://a b/", None),
        ("http://h/\ud800", None),
        ("http://h\x00/", None),
        ("http://h/" + "a" * (MAX_URL_BYTES - 9), "http://h/" + "a" * (MAX_URL_BYTES - 9)),
        ("http://h/" + "a" * MAX_URL_BYTES, None),
        ("http://h/#" + "a" * MAX_URL_BYTES, "http://h/"),
        ("http://" + ("a" * 62 + ".") * 4 + "b/", "http://" + ("a" * 62 + ".") * 4 + "b/"),
        ("http://" + ("a" * 62 + ".") * 4 + "bcde/", None),
        ("//" + "\u6f22" * 5000, None),
        ("http:" + "\u6f22" * 5000, None),
        ("gopher:\\t//\u6f22" + "a" * 5000, None),
        ("http://" + "u" * 1000 + "@h/", "http://h/"),
        ("http://h/" + "a" * 3 * MAX_URL_BYTES, None),
    ],
)
def test_the_canonical_form(url: str, expected: str | None) -> None:
    assert canonical(url) == expected


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("www.example.com.", "example.com"),
        ("co.uk", "co.uk"),
        ("10.0.0.1", "10.0.0.1"),
        ("[::1]", "[::1]"),
        ("localhost", "localhost"),
        (".", "."),
    ],
)
def test_the_pay_level_domain(host: str, domain: str) -> None:
    assert pay_level_domain(host) == domain


def test_addresses_are_told_from_names() -> None:
    assert is_address("10.0.0.1") and is_address("[::1]")
    assert not is_address("10.0.0.1.example") and not is_address("1.2.3")


def test_a_url_apart() -> None:
    parts = split("http://[::1]:8080/a?b")
    assert parts == ("http", "[::1]", 8080, "/a?b")
    assert parts.origin == "http://[::1]:8080"
    assert split("news2://h/a") == ("news2", "h", 0, "/a")
    assert [split(url).origin for url in ("news2://h/a", "news2://h:119/", "http://h/", "http://h:0/")] == [
        "news2://h",
        "news2://h:119",
        "http://h:80",
        "http://h:0",
    ]
    assert robots_url("news2://h") == "news2://h/robots.txt"
    with pytest.raises(ValueError, match="not a canonical"):
        split("/a")
    with pytest.raises(ValueError):
        locate("/a")


@pytest.mark.parametrize("same", ["http://h.org./a", "http://h.org../b", "http://H.ORG%2e:80/", "http://h。org。"])
def test_dots_behind_a_name_make_no_other_host(same: str) -> None:
    url, other = canonical(same) or "", locate("http://h.org/")
    assert locate(url)[2:] == other[2:] and split(url).origin == "http://h.org:80"
    assert [split(dots).host for dots in ("http://./", "http://../")] == [".", ".."]


def test_keys_are_of_the_bytes() -> None:
    assert key_of("é") == key_of("é".encode())


@given(st.lists(st.binary(max_size=300)))
def test_keys_are_blake2b(texts: list[bytes]) -> None:
    """Nobody can make a URL with the key of another, which would then count as seen."""
    expected = [int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in texts]
    assert [key_of(text) for text in texts] == expected
    assert np.frombuffer(keys_of(texts), "<u8").tolist() == expected
