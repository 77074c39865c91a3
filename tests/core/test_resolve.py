"""The law of resolving: whatever path a link takes, the result is that of `canonical` and `locate`."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fyke.core.resolve import LinkResolver
from fyke.core.urls import Locator, canonical, locate

BASES = [
    "http://example.com/",
    "http://example.com/a/b/c.html",
    "https://example.com:8443/a//b/?q=/x/y",
    "http://example.com/a/..b/",
    "http://[2001:db8::1]/x/y",
    "http://10.0.0.1/x",
    "ftp://ftp.example.org/pub/",
    "gopher://gopher.example.org/1/menu",
    "news2://news.example.org/a/b",
    "http://example.com/a/b#frag",
    # not canonical, and some no URLs at all
    "http://example.com/a/..",
    "http://example.com/a/%2E%2e?x",
    "HTTP://EXAMPLE.com/a/./b",
    "http://u:p@example.com/a/b",
    "http://example.com",
    "http://example.com\\a\\b",
    "http://1.2.3.4.5/a/",
    "http://a b/",
    "",
    "\ud800",
]

SCHEMES = ("http", "https", "ftp", "gopher", "news2")  # of all that are met, those that are fetched
FETCHED = tuple(f"{scheme}://" for scheme in SCHEMES)

_PIECES = [
    *["/", "//", "..", ".", "../", "./", "?", "#", "%", "%2e", "%2E", "%41", "%4", "%C3%A9", "%c3", ":", "@", "\\"],
    *[
        "http:",
        "https://",
        "HTTP://",
        "gopher://",
        "news2://",
        "irc://",
        "ftp:",
        "javascript:",
        "example.com",
        "www.b.org",
        "[::1]",
        ":80",
    ],
    *[
        "a",
        "b.html",
        "x=1",
        "&",
        "'",
        '"',
        "|",
        "^",
        "~",
        "é",
        "\t",
        "\n",
        " ",
        "\x00",
        "\ud800",
        "a b",
        "1.2",
        "index",
    ],
]
hrefs = st.one_of(st.lists(st.sampled_from(_PIECES), max_size=7).map("".join), st.text(max_size=20))


def slowly(base: str, hrefs: list[str]) -> list[Locator]:
    urls = [canonical(href, base) for href in hrefs]
    return [locate(url) for url in urls if url is not None and url.startswith(FETCHED)]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(BASES) | hrefs, st.lists(hrefs, max_size=6)), max_size=5), st.integers(0, 20))
@example([("http://h/", ["http:?q", "http:#x", "http:", "h\nttp:?q", " ", "\x00?q", "//h/x", "/\t/h/x"])] * 2, 99)
@example([("http://h/a//b", ["../x", "../../x", "../../../../x", "..//x", "../.x"])] * 2, 99)
@example([("http://h/a/b", ["http://www.b.org/x", "http://www.b.org:80/x", "http://www.b.org#x"])] * 3, 99)
@example([("http://h/a/b?x", ["?y", "#z", "", "c"]), ("http://h/a/d", ["?y", "#z", "", "c"])] * 2, 99)
def test_every_path_gives_what_the_slow_path_gives(pages: list[tuple[str, list[str]]], cache_links: int) -> None:
    resolver = LinkResolver(cache_links, SCHEMES)
    for base, found in pages * 2:
        assert resolver.resolve(base, found) == slowly(base, found)


def test_locators_are_locators() -> None:
    (at,) = LinkResolver(10).resolve("http://www.example.co.uk/a/", ["b"])
    assert type(at) is Locator
    assert at == locate("http://www.example.co.uk/a/b")


@pytest.mark.parametrize(
    "href",
    [
        "/a/b.html",
        "/",
        "/a?x=1&y=%20",
        "b.html",
        "b/c#d",
        "../x",
        "../../../x",
        "http://other.org/x",
        "http://other.org",
    ],
)
def test_common_links_are_fast(href: str) -> None:
    resolver = LinkResolver(1000)
    resolver.resolve("http://example.com/a/b/c", ["http://other.org/first"])
    before = resolver.statistics()
    resolver.resolve("http://example.com/a/b/c", [href])
    assert resolver.statistics().fast == before.fast + 1


def test_repeats_are_hits_also_from_another_directory() -> None:
    resolver = LinkResolver(1000)
    resolver.resolve("http://example.com/a/b", ["/x", "y", "mailto:z"])
    resolver.resolve("http://example.com/a/c", ["/x", "y", "mailto:z"])
    resolver.resolve("http://example.com/other/", ["/x"])
    figures = resolver.statistics()
    assert (figures.links, figures.hits, figures.fast, figures.slow, figures.invalid) == (7, 4, 2, 1, 1)


def test_what_is_held_is_bounded() -> None:
    resolver = LinkResolver(100)
    for number in range(50):
        resolver.resolve(f"http://h{number}.example/a/", [f"p{n}" for n in range(10)] + [f"http://o{number}.org/"])
        assert resolver.statistics().held < 200
    assert resolver.statistics().emptied > 3


def test_too_long_is_dropped_on_every_path() -> None:
    long = "a" * 8200
    assert LinkResolver(10).resolve("http://h/", [long, f"/{long}", f"http://h/{long}"]) == []
