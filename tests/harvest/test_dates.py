"""Dates of sitemaps and feeds: read whatever stands there, and told on where they may say something."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.pages import Page
from fyke.harvest.dates import DAY_S, FEW, credible, time_of

Read = Callable[..., Page]
NOON = datetime(2026, 3, 5, 12, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-05T12:00:00Z", "2026-03-05T12:00Z", "2026-03-05T13:00:00+01:00", "2026-03-05T12:00:00.000+00:00",
        "Thu, 05 Mar 2026 12:00:00 GMT", "05 Mar 2026 13:00 +0100", " 2026-03-05T12:00:00 ",
    ],
)  # fmt: skip
def test_dates_as_they_are_written(text: str) -> None:
    assert time_of(text) == NOON


@pytest.mark.parametrize("text", ["2026-03-05", "5 March 2026", "March 5, 2026", "Thursday, Mar. 5th, 2026"])
def test_a_day_is_its_begin(text: str) -> None:
    assert time_of(text) == NOON - DAY_S / 2


@pytest.mark.parametrize("text", ["05/03/2026", "5.3.2026 12:00", "March 2026", "31 June 2026", "5 mars 2026"])
def test_a_day_that_may_be_another_is_not_read(text: str) -> None:
    assert time_of(text) == 0


@given(
    text=st.one_of(st.text(max_size=60), st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.+Z-]*)?", fullmatch=True))
)
def test_whatever_stands_there(text: str) -> None:
    assert time_of(text) >= 0
    assert time_of("2026" + text * 100) == 0 or len(text) < 2


@given(
    dated=st.dictionaries(st.text(max_size=3), st.integers(-5, 5).map(lambda days: NOON + days * DAY_S / 2)),
    since=st.integers(-4, 0).map(lambda days: NOON + days * DAY_S),
)
def test_what_was_told_before_and_what_is_to_come_is_not_told_on(dated: dict[str, float], since: float) -> None:
    found = credible(dated, since, NOON)
    assert all(found[href] == dated[href] for href in found)
    if len(set(dated.values())) > 1 or len(dated) <= FEW:
        assert {href for href, at in dated.items() if since <= at <= NOON} <= found.keys()
    else:
        assert not found
    assert not {href for href, at in dated.items() if at > NOON or at <= since - DAY_S} & found.keys()


SITEMAP = "<urlset><url><lastmod>2026-03-05T12:00:00Z</lastmod><loc>/a</loc></url><url><loc>/b</loc></url></urlset>"
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/a"/><link rel="edit" href="/b"/>
<updated>2026-03-05T12:00:00Z</updated></entry><entry><link href="/c"/></entry></feed>"""
RSS = """<rss><channel><item><link>/a</link><pubDate>Thu, 05 Mar 2026 12:00:00 GMT</pubDate></item>
<item><link>/b</link></item></channel></rss>"""
JSON = """{"version": "https://jsonfeed.org/version/1.1", "items": [
{"url": "/a", "date_modified": "2026-03-05T12:00:00Z"}, {"url": "/b", "date_modified": 5}, {"url": "/c"}]}"""


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (SITEMAP, "text/xml"),
        (ATOM, "application/atom+xml"),
        (RSS, "application/rss+xml"),
        (JSON, "application/feed+json"),
    ],
)
def test_each_list_says_when_its_pages_changed(read: Read, content: str, media_type: str) -> None:
    assert read(content, media_type=media_type).links.dated == {"/a": NOON}


@pytest.mark.parametrize("content", [SITEMAP, ATOM, RSS])
def test_broken_lists_too(read: Read, content: str) -> None:
    assert read(content[: content.rindex("</")], media_type="text/xml").links.dated == {"/a": NOON}
