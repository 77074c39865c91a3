"""The laws of the outbox: what was put in comes out, repeats apart, and no domain's link to another is lost."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.batches import Kind, numbers, texts, u64, url_batch
from fyke.core.messages import ENDED, OK, Links, Rules
from fyke.core.outcomes import Outcome
from fyke.core.urls import Locator, locate
from fyke.core.visits import visit_to
from fyke.crawl.outbox import MESSAGE_ROWS, LinkCache, Outbox

PAGES = [locate(f"http://d{domain}.example/{number}") for domain in range(4) for number in range(5)]
PUTS = st.tuples(
    st.sampled_from(PAGES),  # the page
    st.lists(st.sampled_from(PAGES), max_size=8),  # its links
    st.integers(0, 3),
    st.sampled_from([Kind.PAGE, Kind.REQUISITE]),
)


ALL = 1 << 30  # bytes


def links_on(page: Locator, found: Sequence[Locator], depth: int = 0, kind: Kind = Kind.PAGE) -> Links:
    """What the outbox is given of a page with the links `found`."""
    return Links(url_batch(found, via=page.key, depth=depth, kind=kind), np.full(len(found), page.domain, np.uint64))


@given(
    puts=st.lists(PUTS, max_size=30),
    limit=st.sampled_from([0, 5, 1000]),
    by_depth=st.booleans(),
    taken=st.integers(1, 7),
)
def test_nothing_new_is_kept_back(
    puts: list[tuple[Locator, list[Locator], int, Kind]], limit: int, by_depth: bool, taken: int
) -> None:
    """Each URL comes out for each kind (and depth) it was put in with, and each pair of domains does."""
    outbox = Outbox(LinkCache(limit, by_depth=by_depth))
    put, came, put_edges, came_edges = set(), set(), set(), set()
    messages = []
    for place, (page, found, depth, kind) in enumerate(puts):
        outbox.put_links(links_on(page, found, depth, kind))
        put |= {(at.url, kind, depth * by_depth) for at in found}
        put_edges |= {(page.domain, at.domain) for at in found}
        if place % taken == 0:
            messages.append(outbox.take_links(ALL))
    messages.append(outbox.take_links(ALL))
    assert outbox.waiting == outbox.take_links(ALL).urls.num_rows == 0
    for message in messages:
        urls = message.urls
        kinds, depths = numbers(urls, "kind").tolist(), numbers(urls, "depth").tolist()
        rows = zip(texts(urls), kinds, depths, strict=True)
        came |= {(url.encode(), Kind(kind), depth * by_depth) for url, kind, depth in rows}
        came_edges |= set(zip(message.sources.tolist(), u64(urls, "domain").tolist(), strict=True))
    assert came == put
    assert came_edges == put_edges
    assert outbox.links == sum(len(found) for _, found, _, _ in puts)


def test_what_was_sent_lately_is_not_sent_again() -> None:
    outbox = Outbox(LinkCache(1000, by_depth=False))
    for turn in range(3):
        for depth in range(5):
            outbox.put_links(links_on(PAGES[0], PAGES, depth))
        assert outbox.take_links(ALL).urls.num_rows == (0 if turn else len(PAGES))
    outbox.forget_links()
    outbox.put_links(links_on(PAGES[0], PAGES))
    assert outbox.take_links(ALL).urls.num_rows == len(PAGES)


def test_where_a_seed_redirects_to_makes_the_scope_grow() -> None:
    """Links that were refused before may be accepted from then on."""
    outbox = Outbox(LinkCache(1000, by_depth=False))
    outbox.put_links(links_on(PAGES[0], PAGES, 1))
    outbox.put_links(links_on(PAGES[1], PAGES[:1], 0, Kind.SEED))
    outbox.put_links(links_on(PAGES[0], PAGES, 1))
    assert outbox.take_links(ALL).urls.num_rows == 2 * len(PAGES) + 1


def test_where_a_server_redirects_to_is_sent_though_a_page_linked_to_it() -> None:
    """Rules may have rewritten the link; what is given they let be."""
    outbox = Outbox(LinkCache(1000, by_depth=False))
    links = links_on(PAGES[0], PAGES[:2])
    outbox.put_links(links)
    outbox.put_links(replace(links, fixed=np.array([True, False])))
    outbox.put_links(replace(links, fixed=np.array([True, False])))
    taken = outbox.take_links(ALL)
    assert taken.fixed is not None and taken.fixed.tolist() == [False, False, True]
    assert u64(taken.urls, "key").tolist() == [PAGES[0].key, PAGES[1].key, PAGES[0].key]


def test_a_crowded_outbox_is_full() -> None:
    """Or nobody would empty it: few links are many bytes where they are long."""
    outbox = Outbox(LinkCache(0, by_depth=False))
    rows = []
    for _ in range(2):
        while not outbox.crowded:
            assert outbox.waiting < MESSAGE_ROWS
            outbox.put_links(links_on(PAGES[0], [locate(f"http://d.example/{'x' * 2020}{outbox.waiting}")] * 50))
        assert outbox.full
        rows.append(outbox.waiting)
        while outbox.waiting:
            outbox.take_links(300_000)
        assert not (outbox.crowded or outbox.full)
    assert rows[0] == rows[1], "what was taken out in portions takes no room"


def test_pages_that_showed_nothing_new_do_not_wait_for_others() -> None:
    """Those like them are fetched until the frontier knows."""
    outbox = Outbox(LinkCache(0, by_depth=False))
    for stale in (False, None):
        for number in range(50):
            outbox.put_judged(visit_to(f"http://d.example/{number}"), fresh=True)
            assert not outbox.has_stale
        outbox.put_judged(visit_to("http://d.example/stale"), fresh=stale)
        assert outbox.has_stale
        assert outbox.take_judged().column("fresh").to_pylist() == [*[True] * 50, stale]
        assert not (outbox.has_stale or outbox.take_judged().num_rows)
        outbox.put_judged(visit_to("http://d.example/stale"), fresh=stale)
        assert outbox.take_outcomes().judged.num_rows == 1, "what was not taken before goes with the outcomes"
        assert not outbox.has_stale


def test_links_that_share_a_place_in_the_cache_are_sent_again() -> None:
    """The cache holds what it holds: what it forgets is sent, and what is in one message is in it once."""
    outbox = Outbox(LinkCache(1, by_depth=False))
    outbox.put_links(links_on(PAGES[0], PAGES * 3))
    assert sorted(texts(outbox.take_links(ALL).urls)) == sorted(at.url.decode() for at in PAGES)


@given(
    pages=st.lists(st.integers(0, 40), max_size=12),
    portions=st.lists(st.integers(1, 900), min_size=1, max_size=20),
)
def test_portions_are_small_and_no_visit_is_over_before_its_links(pages: list[int], portions: list[int]) -> None:
    """All links come out in order, each portion with as many bytes as were asked for and a URL at most."""
    outbox, put, came = Outbox(LinkCache(0, by_depth=False)), [], []
    for number, links in enumerate(pages):
        found = [locate(f"http://d.example/{number}/{'long' * (row % 7)}{row}") for row in range(links)]
        outbox.put_links(links_on(PAGES[0], found))
        outbox.put_ended(visit_to(f"http://d.example/{number}"), Outcome.OK)
        put += [at.url.decode() for at in found]
    for most in cycle(portions):
        urls = texts(outbox.take_links(most).urls)
        assert bool(urls) == (len(came) < len(put))
        assert sum(map(len, urls[:-1])) < most
        came += urls
        ended = outbox.take_outcomes().ended
        assert ended.num_rows == (len(pages) if len(came) == len(put) else 0)
        if len(came) == len(put):
            break
    assert came == put
    assert not outbox


def test_outcomes_come_out_as_columns() -> None:
    outbox = Outbox(LinkCache(0, by_depth=False))
    for outcome in (Outcome.OK, Outcome.STALLED):
        outbox.put_ended(visit_to(PAGES[0].url.decode()), outcome)
    outbox.put_learned("http://d0.example:80", Rules.CLOSED, 12.5)
    outcomes = outbox.take_outcomes()
    assert outcomes.ended.schema == ENDED
    assert (numbers(outcomes.ended, "outcome") == OK).tolist() == [True, False]
    assert u64(outcomes.ended, "key").tolist() == [PAGES[0].key] * 2
    assert outcomes.learned.to_pylist() == [{"origin": b"http://d0.example:80", "rules": 2, "until": 12.5}]
    again = outbox.take_outcomes()
    assert again.ended.num_rows == again.learned.num_rows == 0
    assert outbox.take_links(ALL).sources.dtype == np.uint64
