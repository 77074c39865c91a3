"""The law of resolving: whatever path a link takes, the result is that of `canonical` and `locate`."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fyke.core import bases, resolve
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


@pytest.fixture(params=["joiner", "parser"], autouse=True, scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """All of it holds with and without the compiled joiner."""
    joined = resolve.join
    if request.param == "parser":
        resolve.join = None
    elif joined is None:
        pytest.skip("the joiner was not compiled: there was no compiler")
    yield
    resolve.join = joined


def slowly(base: str, hrefs: list[str]) -> list[Locator]:
    urls = [canonical(href, base) for href in hrefs]
    return [locate(url) for url in urls if url is not None and url.startswith(FETCHED)]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(BASES) | hrefs, st.lists(hrefs, max_size=6)), max_size=5))
@example([("http://h/", ["http:?q", "http:#x", "http:", "h\nttp:?q", " ", "\x00?q", "//h/x", "/\t/h/x"])] * 2)
@example([("http://h/a//b", ["../x", "../../x", "../../../../x", "..//x", "../.x", "./x", ".//x", "././x", "../"])])
@example([("http://h/a/b", ["../" * 8 + "x", "../" * 9 + "x", "x/../y", "./../y", ".././y", "./", "../?q", ".."])])
@example([("http://h/a/b", ["http://www.b.org/x", "http://www.b.org:80/x", "http://www.b.org#x"])] * 3)
@example([("http://h/a/b?x", ["?y", "#z", "", "c"]), ("http://h/a/d", ["?y", "#z", "", "c"])])
@example([("https://h/a", ["//b.org/x?'", "/x'", "x'?", "x?y#'", "//b.org", "//b.org/.", "x#\ud800", "%2f", "x%"])])
@example([("http://h/a", ["a:b", "a/b:c", "a?b:c", "a#b:c", "./a:b", "/a:b", "http:a", "/%2F%41%2", "/%2E", "?"])])
def test_every_link_leads_where_the_parser_says(pages: list[tuple[str, list[str]]]) -> None:
    """However many pages are resolved at once."""
    found = LinkResolver(SCHEMES).resolve(pages)
    assert found.locators() == [at for base, links in pages for at in slowly(base, links)]
    assert found.url.to_pylist() == found.urls
    each = [(base, link) for base, links in pages for link in links]
    assert [each[number] for number in found.link.tolist()] == [at for at in each if slowly(at[0], [at[1]])]


def test_locators_are_locators() -> None:
    (at,) = LinkResolver().resolve([("http://www.example.co.uk/a/", ["b"])]).locators()
    assert type(at) is Locator
    assert at == locate("http://www.example.co.uk/a/b")


@pytest.mark.parametrize(
    "href",
    [
        "/a/b.html",
        "/",
        "/a?x=1&y=%20",
        "/%D0%B0",
        "b.html",
        "b/c#d",
        "./b",
        "../x",
        "../../../x",
        "http://other.org/x",
        "//other.org/x",
    ],
)
def test_common_links_need_no_parser(href: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless there is no joiner: then all do."""
    asked = []
    monkeypatch.setattr(LinkResolver, "_parsed", lambda *link: asked.append(link))
    found = LinkResolver().resolve([("http://example.com/a/b/c", [href])])
    assert (len(found.urls), len(asked)) == ((1, 0) if resolve.join else (0, 1))


@pytest.mark.parametrize("href", ["x{}", "/x{}", "?{}", "é{}", "x {}", "//h/{}", "..//../x{}", "http:{}"])
def test_short_links_below_a_long_base_are_bounded(href: str) -> None:
    """What one page's links come to is, not what a batch's do; those that come first are kept."""
    base = f"http://h/{'a' * 2000}/b"
    links = [href.format(number) for number in range(4000)]
    pages = [(base, links), ("http://h/", ["x"]), (base, links)]
    found = LinkResolver(most_bytes=200_000).resolve(pages)
    assert len(b"".join(found.urls)) <= 2 * 200_000 + 10
    assert found.locators()[:5] == slowly(base, links[:5])
    assert b"http://h/x" in found.urls
    dropped = len(found.urls) < 2 * len(links) + 1
    assert found.cut == ({0, 2} if dropped else set()), "it is said of which pages some were dropped"


@pytest.mark.parametrize("host", ["http://h/", "//h/", "http://é.example/"])
def test_long_links_that_are_written_out_are_all_taken(host: str) -> None:
    """A sitemap of long URLs is as long as they are."""
    links = [f"{host}{number}/{'a' * 200}" for number in range(2000)]
    found = LinkResolver(most_bytes=100_000).resolve([("http://h/sitemap.xml", links)])
    assert len(found.urls) == len(links) and not found.cut


def test_links_that_lack_only_their_root_are_all_taken() -> None:
    host = "http://" + "long." * 40 + "example"
    links = [f"/{number}/{'a' * 200}" for number in range(2000)]
    found = LinkResolver(most_bytes=100_000).resolve([(f"{host}/map", links)])
    assert len(found.urls) == len(links) and not found.cut


def test_what_memory_holds_does_not_grow_with_what_was_met() -> None:
    resolver = LinkResolver()
    for number in range(3):
        resolver.resolve([(f"http://h{number}.example/{'a' * 1000}", [f"/{n}" for n in range(1000)])])
    assert not [held for held in vars(resolver).values() if isinstance(held, dict | list | set)]


def test_too_long_is_dropped_however_it_is_written() -> None:
    long = "a" * 8200
    assert LinkResolver().resolve([("http://h/", [long, f"/{long}", f"http://h/{long}", f" {long}"])]).urls == []


def test_no_pages_have_no_links() -> None:
    assert LinkResolver().resolve([]).locators() == LinkResolver().resolve([("http://h/", [])]).locators() == []


@given(st.from_regex(bases.PLAIN_ROOT, fullmatch=True))
@example("http://a.1-2.b")
@example("https://" + "a" * 247)
@example("http://" + "a." * 123 + "b")
@example("http://0x1.example")
def test_a_plain_root_is_canonical(root: str) -> None:
    if len(root) <= bases.LONGEST_ROOT:  # others are not asked for
        assert canonical(f"{root}/") == f"{root}/"
        assert bases.keys_of_root(root.encode()) == locate(f"{root}/")[2:]
