"""Content-seen saves parsing and loses no link, whatever a page says and wherever the same page is again."""

from itertools import chain, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fyke.core.batches import Kind, url_batch
from fyke.core.config import FetchSection
from fyke.core.decoding import decode_body
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical, locate
from fyke.core.visits import SAME_TEXT, Earlier, Exchange, visit_to, visits_of
from fyke.harvest import Parser
from fyke.harvest.link_groups import NOT_FOLLOWED
from harvest.reaping import harvest_with

HREFS = [
    "?page=2", " ?page=2", "\t?\npage=2", "http:?page=2", "HTTP:?x", "?", "http:?", "", "#top", "http:#top", "http:",
    ".", "./", "..", "x", "./y?a", "/a/x", "/a/x?q", "//h.example/a/y", "http://h.example/a/x", "z#f", "/%61/x?page=2",
]  # fmt: skip
NAMES = ["", "x", "y", "x?q=1", "x?q=2", "y?q=1", "x%3F", "b/x", "b/"]
BASES = [None, "", "?base", "y", "b/", "b/x?c", "#", "http:", "http:?d", "/a/x", "//other.example/a/x"]
HEADERS = ["", "Link: </n>; rel=next\r\n", "Refresh: 0; url=?r\r\n", "X-Robots-Tag: nofollow\r\n"]
TYPES = ["text/html", "text/plain", "text/html; charset=koi8-r", "application/rss+xml"]


def exchange_of(name: str, body: bytes, media_type: str = "text/html", header: str = "") -> Exchange:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n{header}\r\n".encode()
    visit = visit_to(canonical(f"http://h.example/a/{name}") or "")
    return Exchange(visit, Outcome.OK, 1e9, 0.1, status=200, head=head, body=Document(body))


def taken_in(rounds: list[list[Exchange]]) -> tuple[set[bytes], int, list[bool]]:
    """What a harvest of `rounds` finds to follow, how many pages it parses, and which it takes for duplicates."""
    parser = Parser()
    with harvest_with(parser=parser) as harvest:
        sheaves = []
        for exchanges in rounds:
            sheaves += harvest.reap(exchanges)
            assert not harvest.waiting
            harvest._content_seen.state()
    rows = (zip(sheaf.pointers.found.urls, sheaf.pointers.kind.tolist(), strict=True) for sheaf in sheaves)
    found = {url for url, kind in chain.from_iterable(rows) if kind != NOT_FOLLOWED}
    return found, parser.pages, [one.page.duplicate for sheaf in sheaves for one in sheaf.reaped]


def parsed(exchange: Exchange) -> set[bytes]:
    """What a parse of the answer gives, but for the page itself."""
    page = Parser().parse(exchange, decode_body(exchange, FetchSection().max_body_bytes).content)
    found = LinkResolver().resolve([(page.links.base, page.links.pages)])
    return set(found.urls) - {exchange.visit.url.encode()}


answers = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(TYPES[:1] * 3 + TYPES), st.sampled_from(HEADERS[:1] * 3 + HEADERS)
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(HREFS), max_size=3),
    st.sampled_from(BASES),
    st.lists(st.lists(answers, min_size=1, max_size=4), min_size=1, max_size=3),
)
@example(["?page=2"], None, [[("x", "text/html", ""), ("y", "text/html", "")]])
@example(["?page=2"], None, [[("", "text/html", ""), ("x", "text/html", "")]])
@example(["?"], None, [[("x?q=1", "text/html", "")], [("y?q=1", "text/html", "")]])
@example(["?"], None, [[("", "text/html", ""), ("x?q=1", "text/html", "")]])
@example(["x"], None, [[("x", "text/plain", "")], [("y", "text/html", "")]])
def test_no_link_is_lost(hrefs: list[str], base: str | None, rounds: list[list[tuple[str, str, str]]]) -> None:
    based = "" if base is None else f'<base href="{base}">'
    body = f"<html>{based}{''.join(f'<a href={chr(34)}{href}{chr(34)}>x</a>' for href in hrefs)}".encode()

    def exchanges() -> list[list[Exchange]]:
        return [[exchange_of(name, body, media_type, header) for name, media_type, header in some] for some in rounds]

    pages = {exchange.visit.url.encode() for some in exchanges() for exchange in some}
    every = {url for some in exchanges() for exchange in some for url in parsed(exchange)}
    found, _, _ = taken_in(exchanges())
    assert every - pages <= found


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(HREFS), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from(TYPES), st.sampled_from(HEADERS)), min_size=2, max_size=4),
)
@example(["x"], [("text/plain", ""), ("text/html", "")])
@example(["x"], [("text/html", "X-Robots-Tag: nofollow\r\n"), ("text/html", "")])
def test_the_same_bytes_go_by_the_head_of_their_visit(hrefs: list[str], heads: list[tuple[str, str]]) -> None:
    body = "".join(f'<a href="{href}">x</a>' for href in hrefs).encode()
    visits = [exchange_of("x", body, *head) for head in heads]
    fingerprint = Parser().page_of(visits[0], body).fingerprint
    for before, one in pairwise(visits):
        one.visit.earlier = Earlier(place=(0, 0, 1), fingerprint=fingerprint, head=before.head)
    found, _, _ = taken_in([[one] for one in visits])
    assert {url for one in visits for url in parsed(one)} - {visits[0].visit.url.encode()} <= found
    for (before, now), one in zip(pairwise(heads), visits[1:], strict=True):
        assert (one.outcome is Outcome.UNCHANGED) == (before == now)
        assert (one.detail == SAME_TEXT) == (
            before != now and before[0] == now[0] and not is_robots({before[1], now[1]})
        )


def is_robots(fields: set[str]) -> bool:
    return any("Robots" in field for field in fields)


def test_copies_in_a_folder_are_parsed_once() -> None:
    body = b'<a href="x1">1</a><a href="/p">p</a><a href="#top">top</a>'
    _, count, duplicates = taken_in([[exchange_of(f"x{n}", body) for n in range(10)], [exchange_of("late", body)]])
    assert count == 1 and duplicates == [False] + [True] * 10


def test_copies_whose_links_keep_their_names_are_all_parsed() -> None:
    body = b'<a href="?page=2">2</a>'
    found, count, _ = taken_in([[exchange_of(name, body) for name in ("x", "y", "x?page=2", "y?page=2", "b/x")]])
    assert found == {b"http://h.example/a/%b?page=2" % name for name in (b"x", b"y", b"b/x")}
    assert count == 3


@pytest.mark.parametrize("body", [b"<rss><channel><item><link>/x</link></item></channel></rss>", b"<a href=/x>x</a>"])
def test_what_a_probe_brings_is_no_page_and_no_list(body: bytes) -> None:
    """Nobody has seen it, no link of it leads anywhere, and it stays what it is."""
    probe, page = (exchange_of(name, body, "application/xml" if b"rss" in body else "text/html") for name in ("p", "q"))
    (visit,) = visits_of(url_batch([locate(probe.visit.url)], kind=Kind.PROBE))
    probe.visit = visit
    found, parsed_pages, duplicates = taken_in([[probe], [page]])
    assert found and parsed_pages == 1 and duplicates == [False, False]
    assert visit.kind is Kind.PROBE
