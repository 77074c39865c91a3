"""Links and robots directives in the header."""

from collections.abc import Callable
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.urls import canonical, split
from fyke.core.visits import Exchange, Visit
from fyke.harvest.headers import MOST_TARGETS, PAGE_RELS, directives, refresh_target

Read = Callable[..., Page]


@pytest.mark.parametrize(
    ("field", "pages"),
    [
        ('<x>; rel="next"', ["http://example.com/dir/x"]),
        ("</x>; rel=canonical, <y>;title=a;rel=prev", ["http://example.com/x", "http://example.com/dir/y"]),
        ('<x,y>; title="a, <b>; rel=next"; rel="alternate"', ["http://example.com/dir/x,y"]),
        ("<x>; rel=stylesheet, <y>; rel=preconnect, <z>", []),
        ("<javascript:x>; rel=next, <>; rel=next", []),
        ("nonsense", []),
    ],
)
def test_the_link_header(read: Read, field: str, pages: list[str]) -> None:
    assert read("<base href=/elsewhere/>", fields=f"Link: {field}").links.pages == pages


def test_of_many_links_in_the_header_some_are_taken(read: Read) -> None:
    """Each may become as long as the page's own URL."""
    page = read(
        "", fields="\n".join("Link: " + ",".join(f"<{field}?{n}>;rel=up" for n in range(2000)) for field in "ab")
    )
    assert page.links.pages == [f"http://example.com/dir/a?{n}" for n in range(MOST_TARGETS)]
    assert len(read("", fields="Refresh: 1;x\n" * 1000).links.pages) == 1


def test_the_link_header_also_has_requisites_and_nofollow(read: Read) -> None:
    page = read("", fields='LINK: <a.css>; rel=preload\nlink: <x>; rel="next nofollow"', requisites=True)
    assert page.links.requisites == ["http://example.com/dir/a.css"]
    assert page.links.nofollow == ["http://example.com/dir/x"]


_PARTS = ["<", ">", ",", "=", '"', "'", " ", ":", "0", "url=", "none", '; rel=""', "; rel=", "; title"]
_FIELDS = ["Link: <x>", "Link: ", "Refresh: 0;", "X-Robots-Tag: ", "Location: ", "Content-Type: ", "Content-Encoding: "]


@given(
    st.lists(st.builds("{}{}".format, st.sampled_from(_FIELDS), st.lists(st.sampled_from(_PARTS)).map("".join))),
    st.sampled_from([(200, Outcome.OK), (302, Outcome.REDIRECTED)]),
)
def test_whatever_a_header_says_the_page_is_read(read: Read, fields: list[str], answered: tuple[int, Outcome]) -> None:
    status, outcome = answered
    page = read("", fields="\n".join(fields), status=status, outcome=outcome, requisites=True)
    assert all(link.startswith("http") for link in page.links.pages)


@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_a_relation_may_stand_in_quotes_of_either_kind(read: Read, quote: str) -> None:
    for rel in sorted(PAGE_RELS):
        for others in ("{}", "x {}", "{} x") if quote else ("{}",):
            page = read("", fields=f"Link: <y>; title=a; rel={quote}{others.format(rel)}{quote}; a='b', <z>; rel=x")
            assert page.links.pages == ["http://example.com/dir/y"], rel


def test_a_link_of_an_empty_relation_has_none(read: Read) -> None:
    page = read("", fields='Link: <x>; rel="", <y>; rel=, <z>; rel=next')
    assert page.links.pages == ["http://example.com/dir/z"]


@pytest.mark.parametrize(
    ("status", "outcome", "pages"),
    [
        (301, Outcome.REDIRECTED, ["http://example.com/dir/x"]),
        (201, Outcome.OK, ["http://example.com/dir/x", "in-body"]),
        (200, Outcome.OK, ["in-body"]),
        (404, Outcome.CLIENT_ERROR, []),
    ],
)
def test_the_location(read: Read, status: int, outcome: Outcome, pages: list[str]) -> None:
    page = read("<a href=in-body>", fields="Location: x#y", status=status, outcome=outcome)
    assert page.links.pages == pages


def test_a_location_beyond_ascii_and_one_that_is_none(read: Read) -> None:
    there = {"status": 302, "outcome": Outcome.REDIRECTED}
    assert read("", fields="Location: /é", **there).links.pages == ["http://example.com/%C3%A9"]
    assert read("", fields="Location: http://[", **there).links.pages == []
    assert read("", fields="Server: x", **there).links.pages == []


@given(st.binary(max_size=30).filter(lambda path: not path.strip(b"%/azAZ09\x80\xe9\xff\xc3\xa9-_~")))
@example(b"caf\xe9/na\xc3\xafve")
def test_the_server_knows_the_bytes_of_its_location_again(path: bytes) -> None:
    """In whatever charset they are; the host's name is UTF-8 or Latin-1."""
    for host in ("b\u00fccher.example".encode(), "b\u00fccher.example".encode("latin-1"), b"xn--bcher-kva.example"):
        head = b"HTTP/1.1 302 Found\r\nLocation: http://%s/%s\r\n\r\n" % (host, path)
        location = Exchange(Visit("http://example.com/", 0, 0, 0), Outcome.REDIRECTED, 0.0, 0.0, head=head).location
        found = canonical(location)
        assert found is not None and split(found).host == "xn--bcher-kva.example"
        assert unquote_to_bytes(split(found).target) == unquote_to_bytes(b"/" + path)


def test_a_redirect_is_followed_whatever_robots_are_told(read: Read) -> None:
    page = read("", fields="Location: /x\nX-Robots-Tag: none", status=302, outcome=Outcome.REDIRECTED)
    assert page.links.pages == ["http://example.com/x"]
    assert page.noindex and page.nofollow


def test_the_refresh_header(read: Read) -> None:
    assert read("<base href=/b/>", fields="Refresh: 0; url=x").links.pages == ["http://example.com/dir/x"]


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("0;url=x", "x"),
        (" 1.5 ; URL = 'x' ", "x"),
        ('0; url="x"; y', "x"),
        ("0; x", "x"),
        ("0;", ""),
        ("0", ""),
        ("", ""),
        ("url=x", ""),
        ("0; url='x", "x"),
    ],
)
def test_refresh(value: str, target: str) -> None:
    assert refresh_target(value) == target


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("noindex", {"noindex"}),
        ("NoIndex, nofollow", {"noindex", "nofollow"}),
        ("googlebot: noindex, nofollow", set()),
        ("googlebot: noindex, Fyke: nofollow", {"nofollow"}),
        ("fyke: none", {"none"}),
        ("*: noindex", {"noindex"}),
        ("noindex, googlebot: nofollow", {"noindex"}),
        ("noindex;nofollow", {"noindex", "nofollow"}),
        ("googlebot: noindex; nofollow", set()),
        ("googlebot: noindex; fyke: nofollow", {"nofollow"}),
        ("fyke: noindex nofollow;", {"noindex", "nofollow"}),
    ],
)
def test_x_robots_tag(value: str, expected: set[str]) -> None:
    assert directives(value, "fyke") == expected


def test_a_directive_with_a_value_is_no_agent(read: Read) -> None:
    page = read("", fields="X-Robots-Tag: unavailable_after: 25 Jun 2010 15:00:00 PST, max-snippet: 5, noindex")
    assert page.noindex and not page.nofollow
    for between in (",", ";", " ; ", ", "):
        until = f"unavailable_after: Sat, 25 Jun 2010{between}15:00:00 PST{between}noindex"
        assert read("", fields=f"X-Robots-Tag: {until}").noindex
    page = read("", fields="X-Robots-Tag: bot: none\nx-robots-tag: nofollow")
    assert page.nofollow and not page.noindex
