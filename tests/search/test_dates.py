"""When a page was written, by what it says itself."""

import json
import time
from typing import Any

import pytest

from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, visit_to
from fyke.harvest import Parser
from fyke.search.dates import parsed
from fyke.search.extract import TextExtractor

FETCHED_S = 1.7e9  # November 2023
SERVER = "2015-05-05"


def dated(body: str) -> str:
    """Return the day that search has for a page with this `body`; its server says 2015."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nLast-Modified: Tue, 05 May 2015 00:00:00 GMT\r\n\r\n"
    exchange = Exchange(visit_to("http://a.example/"), Outcome.OK, FETCHED_S, 0.1, status=200, head=head)
    found = TextExtractor().extract(Parser().parse(exchange, body.encode()))
    assert found is not None
    return time.strftime("%Y-%m-%d", time.gmtime(found.date_s))


def json_ld(data: Any) -> str:
    return f'<script type="application/ld+json">{json.dumps(data)}</script>'


def meta(name: str, content: str = "2021-04-03") -> str:
    return f'<meta name="{name}" content="{content}">'


@pytest.mark.parametrize(
    "name",
    [
        "dcterms.issued", "DCTERMS.created", "dc.date.issued", "DC.date", "citation_publication_date", "citation_date",
        "parsely-pub-date", "pubdate", "publishdate", "sailthru.date", "date", "datePublished",
    ],
)  # fmt: skip
@pytest.mark.parametrize("content", ["2021-04-03", "2021/04/03", "2021/4/3", "20210403", "2021-04-03 10:00:00"])
def test_the_names_of_metas(name: str, content: str) -> None:
    assert dated(meta(name, content)) == "2021-04-03"


@pytest.mark.parametrize(
    "data",
    [
        {"@type": "NewsArticle", "datePublished": "2021-04-03T10:00:00+02:00"},
        {"@type": "BlogPosting", "datePublished": "2020-01-01", "dateModified": "2021-04-03"},
        [{"@type": "WebSite"}, {"@type": ["Thing", "https://schema.org/Article"], "datePublished": ["2021-04-03"]}],
        [{"@type": "WebPage", "datePublished": "2020-01-01"}, {"@type": "Report", "datePublished": "2021-04-03"}],
        {"@graph": [{"@type": "WebSite"}, {"@type": "ReportageNewsArticle", "datePublished": "2021-04-03"}]},
        {"@type": "WebPage", "mainEntity": {"@type": "Article", "datePublished": {"@value": "2021-04-03"}}},
        {"@type": "WebPage", "datePublished": "2021-04-03"},
        [{"@type": "Article", "datePublished": "yesterday"}, {"@type": "Article", "datePublished": "2021-04-03"}],
    ],
)  # fmt: skip
def test_what_json_ld_says_of_the_page(data: Any) -> None:
    assert dated(json_ld(data)) == "2021-04-03"


@pytest.mark.parametrize(
    "data",
    [
        {"@type": "Movie", "datePublished": "1999-03-31"},
        {"@type": "Product", "review": {"@type": "Review", "datePublished": "2021-04-03"}},
        {"@type": "Article", "datePublished": 20210403},
        {"@type": "Article", "datePublished": None, "mainEntity": [7]},
    ],
)
def test_what_json_ld_says_of_others(data: Any) -> None:
    assert dated(json_ld(data)) == SERVER


@pytest.mark.parametrize(
    "html",
    [
        '<meta itemprop="datePublished" content="2021-04-03">',
        '<span itemprop="datePublished" content="2021-04-03">April</span>',
        '<span itemprop="dateCreated datePublished">2021-04-03</span>',
        '<time itemprop="datePublished" datetime="2021-04-03">x</time>',
        '<p itemprop="dateModified"> 2021-04-03, late</p>',
        "<time>2021-04-03</time>",
        "<time> 2021-04-03T10:00 </time>",
        "<time datetime=''>2021-04-03</time>",
        "<time>soon</time><time>2021-04-03</time>",
        "<time datetime=PT5M>5 minutes</time><time datetime=2021-04-03>April</time>",
        "<time datetime=2020-01-01>x</time><time pubdate datetime=2021-04-03>x</time>",
        "<meta http-equiv=last-modified content='Sat, 03 Apr 2021 10:00:00 GMT'>",
    ],
)
def test_elements_with_a_date(html: str) -> None:
    assert dated(html) == "2021-04-03"


@pytest.mark.parametrize(
    "html",
    [
        "<time>soon</time>",
        "<time>2021</time>",
        meta("date", "2021-02-30"),
        meta("date", "2023-12-01"),
        '<p itemscope itemtype="https://schema.org/Comment"><b><i itemprop=datePublished>2021-04-03</i></b></p>',
        '<div itemscope itemtype="http://schema.org/Review"><i itemprop=datePublished content=2021-04-03></i></div>',
    ],
)
def test_dates_that_are_none_or_of_something_else(html: str) -> None:
    assert dated(html) == SERVER


def test_the_order_of_trust() -> None:
    """What was modified before what was published, and what names the page before a time in its text."""
    said = [
        meta("article:modified_time", "2021-01-01"),
        json_ld({"@type": "Article", "dateModified": "2021-01-02"}),
        "<i itemprop=dateModified>2021-01-03</i>",
        meta("article:published_time", "2021-01-04"),
        meta("date", "2021-01-05"),
        json_ld({"@type": "Article", "datePublished": "2021-01-06"}),
        "<i itemprop=datePublished>2021-01-07</i>",
        "<time pubdate>2021-01-08</time>",
        "<time datetime=2021-01-09>x</time>",
    ]
    for number in range(len(said)):
        assert dated("".join(reversed(said[number:]))) == f"2021-01-0{number + 1}"


@pytest.mark.parametrize(
    "html",
    [
        "<time>soon</time>" * 100_000,
        "<time>" * 3_000 + "x" * 100_000,
        "<div>" * 5_000 + "<i itemprop=datePublished>soon</i>" * 5_000,
        json_ld([{"@type": "Article", "datePublished": "soon"}] * 50_000),
        json_ld({"@type": "Article", "datePublished": ["soon"] * 200_000}),
        '<script type="application/ld+json">' + '{"datePublished":0,"mainEntity":' * 90_000 + "</script>",
        "<time>" + " " * 2_000_000 + "</time>",
        "<meta name=date content='" + "1" * 2_000_000 + "'>",
    ],
)  # fmt: skip
def test_the_work_is_bounded(html: str) -> None:
    begun = time.process_time()
    assert dated(html) == SERVER
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("text", ["20210403100000", "20210403", "2021/04/03", "2021.04.03", "2021-4-3"])
def test_a_day_is_written_in_several_ways(text: str) -> None:
    assert parsed(text) is not None


IN_WORDS = [
    "3 April 2021", "April 3, 2021", "Apr 3, 2021", "3rd of April, 2021", "Saturday, 3 April 2021", "Apr. 3 2021",
    "APRIL 3RD, 2021", "03-Apr-2021", "3\u00a0April\u00a02021", "Published on April 3, 2021 by Ann",
    " 3\n April\n 2021", "April 3, 2021 – 5 May 2021",
]  # fmt: skip


@pytest.mark.parametrize("said", IN_WORDS)
def test_a_day_with_the_name_of_its_month(said: str) -> None:
    assert dated(meta("date", said)) == dated(f"<time>{said}</time>") == "2021-04-03"
    assert dated(json_ld({"@type": "Article", "datePublished": said})) == "2021-04-03"


@pytest.mark.parametrize(
    "said",
    [
        "03/04/2021", "3.4.2021", "13-04-2021", "April 2021", "3 April", "3 April 21", "31 April 2021", "0 May 2021",
        "3 avril 2021", "3 Aprils 2021", "1-3 April 2021", "April 3–5, 2021", "133 April 2021", "April 3, 20211",
        "April 35, 2021", "Mayor 3, 2021", "dismay 3, 2021", "x" * 60 + "3 April 2021",
    ],
)  # fmt: skip
def test_days_that_are_none_or_may_be_others(said: str) -> None:
    assert parsed(said) is None
    assert dated(f"<time>{said}</time>") == dated(meta("date", said)) == SERVER


@pytest.mark.parametrize("text", ["2021-0403", "202104031", "2021/13/03", "12021-04-03", "2021", "20219", "03/04/2021"])
def test_what_is_no_day(text: str) -> None:
    assert parsed(text) is None
