"""A rule for views is learned where a page holds all that its view does, and nowhere else."""

from random import Random

import pytest

from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.rewrite_rules import Rule
from fyke.core.urls import key_of, split
from fyke.core.visits import Exchange, visit_to
from fyke.rewrite.fetched import AnsweredPage
from fyke.rewrite.learning import LEAST_SUPPORT
from fyke.rewrite.views import views

HOST = "http://a.test"


def text(*of: object) -> str:
    return " ".join(f"w{Random(str(of)).randrange(4000) + n}" for n in range(60))


def site(pages: dict[str, str | None]) -> list[Rule]:
    """The rules for a site of these pages (target and body; None: no page)."""

    def read(answered: AnsweredPage) -> Page:
        exchange = Exchange(visit_to(answered.url), Outcome.OK, 0.0, 0.0)
        body = pages[answered.url.removeprefix(HOST) if answered.url.startswith(HOST) else answered.url] or ""
        return Page(exchange, "text/html", body.encode(), fingerprint=answered.fingerprint)

    urls = {(HOST + target if target.startswith("/") else target): body for target, body in pages.items()}
    rows = [
        AnsweredPage(url, split(url).host, key_of(body) if body else 0,
                     {"media_type": "text/html", "warc_length": len(body or ""), "warc_file": "a"})
        for url, body in urls.items()
    ]  # fmt: skip
    return list(views(rows, [], read))


def whole(n: object) -> str:
    return (
        f"<title>Page {n}</title><nav><a href=/>home</a></nav><p>{text(n)}<p>By <a href=/by/{n}>x{n}</a>"
        f"<ul><li><a href=/more/{n}>more {n}</a></ul><img src=/i{n}.png>"
    )


def less(n: object) -> str:
    return f"<title>Page {n}</title><p>{text(n)}<p>By <a href=/by/{n}>x{n}</a> Printed for you"


WAYS = {"first": "/print/p{}", "last": "/p{}/print", "inner": "/p{}/print/", "key": "/p{}?view=print",
        "host": "http://m.a.test/p{}"}  # fmt: skip


def with_views(way: str, view: dict[int, str | None], pages: int = 30) -> dict[str, str | None]:
    plain = "/p{}/" if way == "inner" else "/p{}"
    found: dict[str, str | None] = {plain.format(n): whole(n) for n in range(pages)}
    return {**found, **{WAYS[way].format(n): body for n, body in view.items()}}


@pytest.mark.parametrize("way", WAYS)
def test_a_view_is_found_however_it_is_named(way: str) -> None:
    (rule,) = site(with_views(way, {n: less(n) for n in range(20)}))
    assert rule.view and rule.support >= LEAST_SUPPORT and not rule.contradictions
    assert rule.example[0] != rule.example[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "more",
    ["<p>A word of its own: q{}", "<a href=/only/{}>more {}</a>", "<img src=/large{}.png>"],
    ids=["word", "link", "picture"],
)
def test_nothing_that_only_the_view_has_is_given_up(way: str, more: str) -> None:
    assert not site(with_views(way, {n: less(n) + more.format(n, n) for n in range(20)}))


@pytest.mark.parametrize("way", WAYS)
def test_few_contradictions_are_pages_that_changed_and_more_are_not(way: str) -> None:
    for wrong, count in ((0, 1), (4, 0)):
        some = {n: less(n) + ("<p>also this" + str(n) if n < wrong else "") for n in range(25)}
        assert len([rule for rule in site(with_views(way, some)) if rule.support >= LEAST_SUPPORT]) == count


@pytest.mark.parametrize("way", WAYS)
def test_a_notice_in_place_of_views_says_nothing(way: str) -> None:
    assert not site(with_views(way, {n: f"<p>Please log in to see more {n}" for n in range(20)}))
    assert not site(with_views(way, dict.fromkeys(range(20), "<p>" + text("the same for all"))))


@pytest.mark.parametrize("way", WAYS)
def test_too_few_views_are_told_as_too_few(way: str) -> None:
    (rule,) = site(with_views(way, {n: less(n) for n in range(LEAST_SUPPORT - 1)}))
    assert rule.support == LEAST_SUPPORT - 1


@pytest.mark.parametrize("way", ["first", "last", "inner", "key"])
def test_views_whose_pages_were_not_fetched_may_be_pages(way: str) -> None:
    known = with_views(way, {n: less(n) for n in range(20)}, pages=20)
    more: dict[str, str | None] = {WAYS[way].format(n): less(n) for n in range(100, 130)}
    assert not site({**known, **more})
    gone: dict[str, str | None] = {("/p{}/" if way == "inner" else "/p{}").format(n): None for n in range(100, 130)}
    assert not site({**known, **more, **gone})


def test_a_rule_is_told_once() -> None:
    """Though its segment is the first and the second from the end, and its key has one value."""
    for way in ("first", "key"):
        rules = site(with_views(way, {n: less(n) for n in range(20)}))
        assert len(rules) == 1 and rules[0].value is None
