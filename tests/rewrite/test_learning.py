"""Rules are learned where they hold, and nowhere else: on sites whose truth is known."""

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from fyke.core.rewrite_rules import Rule
from fyke.core.rewriting import Rewriter
from fyke.lab.simweb.dust import Dust, Session
from fyke.rewrite.learner import restless_pages, rules_of_site, short_of_site
from fyke.rewrite.learning import FEW_SUPPORT, LEAST_SUPPORT, Content
from fyke.rewrite.likeness import outline
from rewrite.dust_sites import AUCTION, FORUM, LIBRARY, SHOP, STORE, hub_of
from rewrite.walking import page_of, walked

sessions = st.none() | st.sampled_from(
    [Session("query", "sid"), Session("parameter", "jsid"), Session("segment", before="s-"), Session("query", "id2")]
)
sites = st.builds(
    Dust, seed=st.integers(0, 99), host=st.just("site.sim"), articles=st.integers(0, 40), folders=st.integers(0, 20),
    things=st.integers(0, 60), aliases=st.sampled_from([(), ("www.site.sim",), ("www.site.sim", "m.site.sim")]),
    session=sessions, sessions=st.integers(1, 2),
    ignored=st.sampled_from([(), (("utm", ("x", "y")),), (("utm", ("x", "y")), ("p", ("1",)))]),
    index=st.sampled_from(["", "index.html"]), shuffled=st.booleans(),
    matter=st.sampled_from([("id",), ("id", "part"), ("page", "id", "size")]),
    usual=st.none() | st.just(("lang", "en", "de")), changing_share=st.sampled_from([0.0, 0.0, 0.05]),
    missing=st.integers(0, 30), links_per_page=st.integers(3, 6),
)  # fmt: skip


@given(sites)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_no_rule_makes_one_url_of_two_pages(site: Dust) -> None:
    """And all pages are found by whoever follows rewritten links alone."""
    pages = walked(site)
    rewriter = Rewriter(rules_of_site(site.host, pages))
    for page in pages:
        assert page_of(site, page.url) == page_of(site, rewriter.rewrite(page.url).url)
    after = walked(site, lambda url: rewriter.rewrite(url).url)
    assert {page_of(site, page.url) for page in after} == {page_of(site, page.url) for page in pages}


def test_of_pages_that_change_at_every_request_too_many_teach_nothing_wrong() -> None:
    """More than the share of contradictions that a rule may have."""
    pages = walked(STORE)
    rewriter = Rewriter(rules_of_site(STORE.host, pages))
    assert all(page_of(STORE, page.url) == page_of(STORE, rewriter.rewrite(page.url).url) for page in pages)


@pytest.mark.parametrize(
    "site",
    [SHOP, FORUM, replace(STORE, changing_share=0.0), AUCTION, replace(LIBRARY, changing_share=0.0)],
    ids=lambda site: site.host,
)
def test_every_pattern_is_found_and_no_decoy(site: Dust) -> None:
    pages = walked(site)
    rules = rules_of_site(site.host, pages)
    rewriter = Rewriter(rules)
    left = {rewriter.rewrite(page.url).url for page in pages}
    assert len(left) <= 1.05 * (len(site.pages()) + site.missing)
    decoys = {*site.matter, *(site.usual or ())[:1]}
    assert not [rule for rule in rules if rule.key in decoys and rule.value is None]
    for rule in rules:
        assert rule.support >= 10 and rule.contradictions <= 0.02 * rule.support
        assert rewriter.rewrite(rule.example[0]).url == rule.example[1] != rule.example[0]
        assert any(one.name == rule.name for one in rewriter.rewrite(rule.example[0]).rules)


@pytest.mark.parametrize("seed", range(3))
def test_a_page_that_changes_and_has_many_urls_hides_no_rule(seed: int) -> None:
    """Every link to it that a rule would change leads to another text; other pages teach the same rules."""
    quiet = Dust(
        seed=seed, host="museum.sim", aliases=("www.museum.sim",), articles=60, folders=15, things=80,
        session=Session("query", "PHPSESSID"), sessions=3, links_per_page=6, shuffled=True, index="index.aspx",
        ignored=(("gclid", tuple(f"Cj{n * 7919:07d}x" for n in range(30))), ("layout", ("print", "wide"))),
        matter=("room", "case"), missing=40,
    )  # fmt: skip
    rules, rules_beside = (rules_of_site(site.host, walked(site)) for site in (quiet, hub_of(quiet)))
    assert {rule.name for rule in rules} == {rule.name for rule in rules_beside}
    assert {rule.key for rule in rules} >= {"PHPSESSID", "gclid", "layout", "index.aspx"}


def learned(pages: list[tuple[str, int]]) -> list[Rule]:
    return rules_of_site("a.test", [Content(f"http://a.test/{target}", content) for target, content in pages])


def test_an_error_page_teaches_nothing() -> None:
    """One text for anything that does not exist, and few pages that do."""
    things = [(f"item?id={n}", n + 1000) for n in range(8)] + [(f"item?id={n}", 7) for n in range(100, 1000)]
    assert not learned(things)
    empty = [(f"{folder}/?id={n}", 7) for folder in range(40) for n in range(10)]
    assert not learned(empty)


def test_a_page_that_is_not_there_without_the_key_speaks_against_it() -> None:
    there = [(f"p{n}?sid={sid}", n + 1) for n in range(40) for sid in (1, 2)]
    assert [rule.key for rule in learned(there)] == ["sid"]
    assert not learned([*there, *((f"p{n}", 0) for n in range(40))])


@given(st.integers(30, 60), st.integers(0, 60))
@settings(max_examples=10, deadline=None)
def test_an_index_page_that_selects_by_its_query_is_not_its_folder(folders: int, selected: int) -> None:
    """Also where its folder was never asked for with a query."""
    pages = [(f"f{n}/{name}", n + 1) for n in range(folders) for name in ("", "index.php")]
    rules = learned([*pages, *((f"index.php?id={n}", 500 + n) for n in range(selected))])
    rewriter = Rewriter(rules)
    assert [rule.key for rule in rules] == ["index.php"]
    for url in (f"http://a.test/index.php?id={n}" for n in range(selected)):
        assert rewriter.rewrite(url).url == url


def test_too_little_teaches_nothing() -> None:
    assert not learned([(f"p{n}?sid={sid}", n + 1) for n in range(9) for sid in (1, 2, 3)])


def test_a_few_contradictions_are_borne_and_no_more() -> None:
    there = [(f"p{n}?sid={sid}", n + 1) for n in range(400) for sid in (1, 2)]
    assert learned([(url, content + 10_000 * (n in (1, 301))) for n, (url, content) in enumerate(there)])
    assert not learned([(url, content + 10_000 * (n % 41 == 0)) for n, (url, content) in enumerate(there)])


@given(st.integers(100, 200), st.sets(st.integers(0, 99), max_size=6))
@settings(max_examples=15, deadline=None)
def test_what_speaks_against_a_rule_is_shown(count: int, translated: set[int]) -> None:
    """Two URLs that it makes one, and which are two pages; none where nothing does."""
    there = [(f"p{n}{lang}", n + 1) for n in range(count) for lang in ("", "?lang=en", "?lang=de")]
    truth = {url: content + 1000 * (url[-2:] == "de" and content in translated) for url, content in there}
    for rule in learned(list(truth.items())):
        assert (rule.against != ("", "")) == (rule.contradictions > 0)
        if rule.contradictions:
            rewriter = Rewriter([rule])
            one, other = rule.against
            assert rewriter.rewrite(one).url == rewriter.rewrite(other).url
            assert truth[one.split("/", 3)[3]] != truth[other.split("/", 3)[3]]


TRACKED = [(f"p{n}?ref={ref}", n + 1) for n in range(400) for ref in ("home", "menu", n % 40)]


@given(st.integers(12, 60))
@settings(max_examples=5, deadline=None)
def test_what_holds_at_many_paths_merges_no_list_at_another(count: int) -> None:
    """Though the list is one group of URLs."""
    assert [rule.key for rule in learned(TRACKED)] == ["ref"]
    assert not learned([*TRACKED, *((f"parts?ref={n}", 5000 + n) for n in range(count))])


@given(st.integers(30, 60), st.integers(12, 60), st.integers(2, 9))
@settings(max_examples=10, deadline=None)
def test_what_selects_at_one_path_is_dropped_at_another(topics: int, lists: int, forums: int) -> None:
    """A topic is the same whatever forum it is met from; a list of topics is that of its forum."""
    shown = [(f"topic?t={n}&f={f}", n + 1) for n in range(topics) for f in (n % forums, (n + 1) % forums)]
    listed = [(f"list?f={n}", 500 + n) for n in range(lists)]
    rules = learned([*shown, *listed])
    assert [(rule.key, rule.path) for rule in rules] == [("f", "topic")]
    rewriter = Rewriter(rules)
    assert len({rewriter.rewrite(f"http://a.test/{url}").url for url, _ in shown}) == topics
    assert all(rewriter.rewrite(f"http://a.test/{url}").url == f"http://a.test/{url}" for url, _ in listed)
    chosen = [(f"topic?t={n}&f={f}", 1000 + 9 * n + f) for n in range(topics) for f in (1, 2)]
    assert not learned([*chosen, *listed])


def test_two_keys_that_hold_elsewhere_do_not_excuse_each_other() -> None:
    both = [(f"{url}&by={n % 3}", content) for url, content in TRACKED for n in (content, content + 1)]
    assert {rule.key for rule in learned(both)} == {"ref", "by"}
    listed = [(f"parts?ref={n}&by={by}", 5000 + 40 * n + by) for n in range(40) for by in range(40)]
    assert not learned([*both, *listed])


def test_a_page_that_changes_by_itself_counts_once_however_many_urls_it_has() -> None:
    def said(what: str, visitor: object = "") -> Content:
        words = [f"{what}{n}" for n in range(60)]
        return Content("", 0, outline([*words, "welcome", f"{visitor}"]))

    pages = [said(f"p{content}")._replace(url=f"http://a.test/{url}", content=content) for url, content in TRACKED]
    home = [said("home", n)._replace(url=f"http://a.test/?ref={n}", content=5000 + n) for n in range(200)]
    other = [said(f"part{n}x")._replace(url=f"http://a.test/?ref={n}", content=5000 + n) for n in range(200)]
    assert [rule.key for rule in rules_of_site("a.test", [*pages, *home])] == ["ref"]
    assert not rules_of_site("a.test", [*pages, *other])


TWICE = {
    "drop-key sid on a.test": "http://a.test/{}?sid={}",
    "drop-parameter sid on a.test": "http://a.test/{};sid={}",
    "drop-segment 0 s-[8-8] on a.test": "http://a.test/s-1a2b3c4{1}/{0}",
}


@given(
    pattern=st.sampled_from(sorted(TWICE)), count=st.integers(0, 3 * LEAST_SUPPORT), others=st.integers(0, 30),
    wrong=st.integers(0, 2),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_a_rule_that_nothing_contradicts_is_learned_or_said_to_be_short_of_support(
    pattern: str, count: int, others: int, wrong: int
) -> None:
    pages = [Content(TWICE[pattern].format(n, sid), 1 + n) for n in range(count) for sid in (5, 6)]
    pages += [Content(f"http://a.test/other{n}", 1_000 + n) for n in range(others)]
    pages += [Content(TWICE[pattern].format(n, 7), 2_000 + n) for n in range(min(wrong, count))]
    rules = rules_of_site("a.test", pages)
    short = {rule.name: rule.support for rule in short_of_site(pages, rules)}
    if wrong and count:
        assert short == {}
    elif pattern in {rule.name for rule in rules}:
        assert short == {} and count >= LEAST_SUPPORT
    else:
        assert short == ({pattern: count} if count >= FEW_SUPPORT else {}) and count < 2 * LEAST_SUPPORT


@given(
    restless=st.integers(0, 3 * LEAST_SUPPORT), still=st.integers(0, 30), lists=st.integers(0, 30),
    urls=st.integers(2, 4),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_pages_that_change_at_every_request_are_named_if_they_hide_rules(
    restless: int, still: int, lists: int, urls: int
) -> None:
    """And no page that stays the same, and no list that goes on at other URLs."""

    def said(path: str, ref: int, content: int, words: list[str]) -> Content:
        return Content(f"http://a.test/{path}?ref={ref}", content, outline(words))

    def words_of(path: str) -> list[str]:
        return [f"{path}x{n}" for n in range(60)]

    pages = [
        said(f"r{n}", ref, 10_000 + 10 * n + ref, [*words_of(f"r{n}"), "served", f"{n} {ref}"])
        for n in range(restless)
        for ref in range(urls)
    ]
    pages += [said(f"s{n}", ref, 1 + n, words_of(f"s{n}")) for n in range(still) for ref in range(urls)]
    pages += [
        said(f"l{n}", ref, 20_000 + 10 * n + ref, words_of(f"l{n}x{ref}")) for n in range(lists) for ref in range(urls)
    ]
    found = restless_pages(pages, rules_of_site("a.test", pages))
    if restless < LEAST_SUPPORT:
        assert found is None
    else:
        assert found is not None and found.pages == restless
        (path, first), (same, second) = (url.split("?") for url in found.example)
        assert path == same and path.startswith("http://a.test/r") and first != second
