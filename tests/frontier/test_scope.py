"""The scope: of any seeds, given at once or one after the other, it holds what a reader of its definition says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.batches import Kind, Mask, url_batch
from fyke.core.choices import Scope
from fyke.core.config import CrawlSection
from fyke.core.ports import OTHERS_PORTS
from fyke.core.urls import SCHEMES, Locator, canonical, locate, split
from fyke.frontier.filters import filters_for

PARTS = st.sampled_from(["a", "b", "ab", "a.b", "%20"])
URLS = st.builds(
    lambda host, parts, end: canonical(f"http://{host}/{'/'.join(parts)}{end}"),
    st.sampled_from(["a.example", "www.a.example", "b.example", "a.b.example"]),
    st.lists(PARTS, max_size=3),
    st.sampled_from(["", "/", "?a/b/", "/x?y"]),
).map(lambda url: locate(url or ""))

FOUND = (Kind.REQUISITE, Kind.SECOND, Kind.THIRD)  # as links; what else is said of requisites is marked later
HOPS = (Kind.REQUISITE, Kind.BEYOND, Kind.SECOND, Kind.THIRD)


def within(scope: Scope, seeds: list[Locator], url: Locator) -> bool:
    if scope in (Scope.SEEDS, Scope.WEB):
        return scope is Scope.WEB
    if scope is Scope.PREFIX:
        folders = [seed.url.partition(b"?")[0].rpartition(b"/")[0] + b"/" for seed in seeds]
        return any(url.url.startswith(folder) for folder in folders)
    if scope is Scope.HOST:
        return split(url.url.decode()).host in {split(seed.url.decode()).host for seed in seeds}
    return url.domain in {seed.domain for seed in seeds}


@given(st.sampled_from(Scope), st.lists(URLS, max_size=5), st.lists(URLS, max_size=5), st.lists(URLS, min_size=1))
def test_what_it_holds(scope: Scope, seeds: list[Locator], later: list[Locator], asked: list[Locator]) -> None:
    """Seeds added while the crawl runs count like those it began with."""
    filters = filters_for(CrawlSection(scope=scope), seeds, ["http"], [])
    filters.begin(later)
    for kind in (Kind.PAGE, Kind.SEED, *HOPS):
        anywhere = kind in (Kind.SEED, *HOPS[:3])
        wanted = [url for url in asked if anywhere or within(scope, [*seeds, *later], url)]
        assert filters.accept(url_batch(asked, kind=kind)).column("url").to_pylist() == [url.url for url in wanted]
    reached = [scope is Scope.SEEDS or within(scope, [*seeds, *later], url) for url in asked]
    assert [filters.reaches(url) for url in asked] == reached


@given(
    st.sampled_from(Scope),
    st.lists(URLS, max_size=5),
    st.lists(URLS, max_size=5),
    st.lists(st.tuples(URLS, st.sampled_from(Kind)), max_size=8),
)
def test_requisites_beyond_it_are_marked(
    scope: Scope, seeds: list[Locator], later: list[Locator], given: list[tuple[Locator, Kind]]
) -> None:
    """By the scope as it is when they are handed out, whatever they were before, so also after a restart."""
    filters = filters_for(CrawlSection(scope=scope), seeds, ["http"], [])
    filters.begin(later)
    urls = url_batch([url for url, _ in given], kind=[kind for _, kind in given], depth=range(len(given)))
    marked = filters.marked(urls)
    beyond = dict(zip(HOPS, (Kind.BEYOND, *HOPS[1:]), strict=True))
    assert marked.column("kind").to_pylist() == [
        kind if kind not in HOPS else Kind.REQUISITE if within(scope, [*seeds, *later], url) else beyond[kind]
        for url, kind in given
    ]
    assert filters.marked(marked) == marked
    assert marked.drop_columns("kind") == urls.drop_columns("kind")


@given(URLS, st.integers(1, 5))
def test_what_a_page_needs_counts_no_link(url: Locator, depth: int) -> None:
    filters = filters_for(CrawlSection(scope=Scope.WEB, depth=2), [], ["http"], [])
    for kind, most in ((Kind.PAGE, 2), *((one, 4) for one in HOPS)):
        assert filters.accept(url_batch([url], kind=kind, depth=depth)).num_rows == (depth <= most)


@given(URLS, URLS)
def test_a_seed_without_its_slash(seed: Locator, other: Locator) -> None:
    """What it redirects to replaces it, since the server says what is the folder."""
    filters = filters_for(CrawlSection(scope=Scope.PREFIX), [seed], ["http"], [])
    target = locate(canonical(f"{seed.url.decode()}/") or "")
    filters.land(seed, target)
    replaced = target.url == seed.url + b"/"
    assert filters.reaches(other) == within(Scope.PREFIX, [target] if replaced else [seed, target], other)


@given(st.integers(1, 65535), st.sampled_from(["a.example", "[::25]", "a.example:9@b.example"]))
def test_no_link_leads_to_a_port_of_another_protocol(port: int, host: str) -> None:
    """But where a seed is at it, or a person names it."""
    link = locate(canonical(f"http://{host}:{port}/x:25/?:25/") or "")
    here, there = locate("http://a.example/"), locate(f"http://c.example:{port}/")
    crawl = CrawlSection(scope=Scope.WEB)
    batch = url_batch([link])
    assert filters_for(crawl, [here], ["http"], []).accept(batch).num_rows == (port not in OTHERS_PORTS)
    assert filters_for(crawl, [here, there], ["http"], []).accept(batch).num_rows == 1
    assert filters_for(crawl, [here], ["http"], []).accept(url_batch([link], kind=Kind.SEED)).num_rows == 1
    news = locate(canonical(f"news2://{host}:{port}/") or "")
    assert filters_for(crawl, [here], ["news2"], []).accept(url_batch([news])).num_rows == 1


class OfKind:
    """A plug-in that wants links of some kinds."""

    def __init__(self, kinds: set[Kind]) -> None:
        self.kinds = kinds

    def accept(self, urls: pa.RecordBatch) -> Mask:
        return np.isin(urls.column("kind"), list(self.kinds))


@given(
    st.sampled_from(Scope),
    st.lists(URLS, max_size=5),
    st.lists(st.tuples(URLS, st.sampled_from((Kind.PAGE, *FOUND))), max_size=8),
    st.sampled_from([{Kind.PAGE}, {*FOUND}]),
)
def test_what_is_accepted_is_so_when_it_was_handed_out_too(
    scope: Scope, seeds: list[Locator], given: list[tuple[Locator, Kind]], kinds: set[Kind]
) -> None:
    filters = filters_for(CrawlSection(scope=scope), seeds, ["http"], [OfKind(kinds)])
    accepted = filters.accept(url_batch([url for url, _ in given], kind=[kind for _, kind in given]))
    assert filters.still_accepted(filters.marked(accepted)).all()


def test_ports_of_other_protocols() -> None:
    assert {21, 22, 23, 25, 110, 143, 465, 587, 993, 6667} < OTHERS_PORTS
    assert not OTHERS_PORTS & {70, 80, 443, 3000, 5000, 8000, 8080, 8443}


@pytest.mark.parametrize(
    ("url", "is_accepted"),
    [
        ("gopher://a.test/1GET%20/private", True), ("gopher://a.test:8080/1GET%20/private", False),
        ("gopher://a.test:6379/1flushall", False), ("gopher://g.test:9000/1x", True),
        ("gopher://a.test:7070/1x", True), ("gopher://[2001:db8::1]:8080/1x", False), ("http://a.test:8080/", True),
        ("gopher://[2001:db8::1]/1x", True),
        ("ftp://a.test:2121/", True),
    ],
)  # fmt: skip
def test_no_link_has_a_line_sent_to_a_port_where_nobody_speaks_gopher(url: str, is_accepted: bool) -> None:
    """A web server would take it for a request, which its robots.txt may forbid."""
    filters = filters_for(
        CrawlSection(scope=Scope.WEB),
        [locate("http://a.test:8080/"), locate("gopher://g.test:9000/")],
        sorted(SCHEMES),
        [],
    )
    assert filters.accept(url_batch([locate(url)])).num_rows == is_accepted


class Nameless:
    """A plug-in that says nothing of itself."""

    def accept(self, urls: pa.RecordBatch) -> Mask:
        return np.zeros(urls.num_rows, np.bool_)


class Wordless(Nameless):
    def __repr__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize("plugin", [Nameless, Wordless])
def test_a_plug_in_without_a_name_is_known_by_its_type(plugin: type[Nameless]) -> None:
    """And not by where it lies in memory, which is another place in every run."""
    url = url_batch([locate("http://a.example/")])
    filters = filters_for(CrawlSection(scope=Scope.WEB), [], ["http"], [plugin()])
    assert not filters.accept(url).num_rows
    assert filters.left_out == {plugin.__name__: 1}
    assert filters.refusal(url) == plugin.__name__


@dataclass
class Says:
    """A plug-in whose answer depends on the number of URLs alone."""

    answer: Callable[[int], Any]

    def accept(self, urls: pa.RecordBatch) -> Any:
        return self.answer(urls.num_rows)


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: np.ones(1, np.bool_),
        lambda n: np.ones((n, 1), np.bool_),
        lambda n: np.ones(n + 5, np.bool_),
        lambda n: np.full(n, np.nan),
        lambda n: ["no"] * n,
        lambda n: [1] * n,
        lambda _: True,
        lambda _: None,
    ],
)
def test_a_filter_whose_answer_is_not_a_truth_for_each_url_refuses_all(answer: Callable[[int], Any]) -> None:
    urls = url_batch([locate(f"http://a.example/{number}") for number in range(3)])
    filters = filters_for(CrawlSection(scope=Scope.WEB), [], ["http"], [Says(answer)])
    assert not filters.accept(urls).num_rows
    assert filters.failures == {"Says": 3}


@pytest.mark.parametrize("kind", [list, np.array, pa.array])
def test_a_filter_may_answer_with_any_row_of_truths(kind: Callable[[list[bool]], Any]) -> None:
    urls = url_batch([locate(f"http://a.example/{number}") for number in range(3)])
    filters = filters_for(
        CrawlSection(scope=Scope.WEB), [], ["http"], [Says(lambda n: kind([True] * (n - 1) + [False]))]
    )
    assert filters.accept(urls).num_rows == 2 and not filters.failures
