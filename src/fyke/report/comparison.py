"""This crawl beside those of the papers: the rows of the report's tables.

`fyke.report.page` calls it. Invariant: a number that is unknown (no links table, no pages yet, not printed in a paper)
is an empty cell, never a zero.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import NamedTuple

from fyke.archive.statistics import CrawlStatistics
from fyke.quantities import bytes_text, count_text, number, share_text, time_text
from fyke.report import papers
from fyke.report.sql import Rows
from fyke.report.survey import Survey

DAY_S = 86400
ROWS = 12


class Measure(NamedTuple):
    """A row: what is measured, and its value here, in IRLbot's crawl and in Mercator's."""

    name: str
    here: str
    irlbot: str
    mercator: str


class Frequency(NamedTuple):
    """A row of a distribution: the count here, and the shares here and in Mercator's crawl."""

    name: str
    pages: int
    here: str
    mercator: str


def measures(found: Survey, crawled: CrawlStatistics) -> list[Measure]:
    """Return the numbers of IRLbot's section 7 and Mercator's section 6."""
    return [*_of_the_crawl(found, crawled), *_of_links(found, crawled), *_of_pages(found), *_of_domains(found)]


def _of_the_crawl(found: Survey, crawled: CrawlStatistics) -> Iterator[Measure]:
    totals = found.totals
    lasted_s = crawled.total_s or totals.end_s - totals.begin_s
    answers, errors = papers.IRLBOT_REPLIES, papers.IRLBOT_ERRORS
    good = papers.MERCATOR_STATUSES[200] / papers.MERCATOR_ANSWERS
    html = papers.MERCATOR_MEDIA_TYPES["text/html"]
    yield Measure("HTML pages", f"{totals.html:,}", count_text(papers.IRLBOT_PAGES), count_text(html))
    yield Measure(
        "Time spent crawling",
        time_text(lasted_s) if lasted_s else "",
        time_text(papers.IRLBOT_DAYS * DAY_S),
        time_text(papers.MERCATOR_DAYS * DAY_S),
    )
    yield Measure(
        "Pages a second", _ratio(totals.pages, lasted_s), number(papers.IRLBOT_PAGES_S), number(papers.MERCATOR_PAGES_S)
    )
    yield Measure(
        "Requests that were answered",
        _share(totals.answered, totals.asked),
        share_text(answers / papers.IRLBOT_CONNECTIONS),
        share_text(papers.MERCATOR_ANSWERS / papers.MERCATOR_REQUESTS),
    )
    yield Measure(
        "Answers that were errors or redirects",
        _share(totals.answered - totals.pages, totals.answered),
        share_text(errors / answers),
        share_text(1 - good),
    )
    yield Measure(
        "Whole answers that were not HTML",
        _share(totals.pages - totals.html, totals.pages),
        share_text(papers.IRLBOT_OTHER_TYPES / (answers - errors)),
        share_text(1 - html / papers.MERCATOR_DOCUMENTS),
    )


def _of_links(found: Survey, crawled: CrawlStatistics) -> Iterator[Measure]:
    totals = found.totals
    yield Measure("Links on an HTML page", _ratio(totals.links, totals.html), number(papers.IRLBOT_LINKS), "")
    fresh = _share(crawled.urls, totals.links) if crawled.urls else ""
    yield Measure("Links that were new", fresh, share_text(papers.IRLBOT_UNIQUE), "")
    fresh = _ratio(crawled.urls, totals.html) if crawled.urls else ""
    yield Measure("New URLs from an HTML page", fresh, number(papers.IRLBOT_UNIQUE_LINKS), "")
    here = bytes_text(totals.url_bytes) if totals.visits else ""
    yield Measure("Length of a URL, without http://", here, bytes_text(papers.IRLBOT_URL_BYTES), "")


def _of_pages(found: Survey) -> Iterator[Measure]:
    totals = found.totals
    here = bytes_text(totals.html_bytes / totals.html) if totals.html else ""
    yield Measure("Size of an HTML page, unpacked", here, bytes_text(papers.IRLBOT_HTML_BYTES), "")
    yield Measure(
        "Whole answers of 1 to 32 kB", _share(totals.middling, totals.pages), "", share_text(papers.MERCATOR_MIDDLING)
    )
    yield Measure("Sent compressed", _share(totals.packed, totals.pages), share_text(papers.IRLBOT_PACKED), "")
    yield Measure(
        "Compression of these",
        _times(totals.packed_content_bytes, totals.packed_body_bytes),
        f"1 : {papers.IRLBOT_RATIO}",
        "",
    )
    yield Measure(
        "Copies of an earlier body",
        _share(totals.bodies - totals.distinct, totals.bodies),
        "",
        share_text(1 - papers.MERCATOR_DOCUMENTS / papers.MERCATOR_STATUSES[200]),
    )


def _of_domains(found: Survey) -> Iterator[Measure]:
    hosts = found.hosts
    yield Measure(
        "Hosts of a domain", _ratio(hosts.hosts, hosts.domains), number(papers.IRLBOT_HOSTS / papers.IRLBOT_DOMAINS), ""
    )
    here = f"{hosts.largest:,}" if hosts.largest else ""
    yield Measure("Pages of the largest domain", here, f"{papers.IRLBOT_LARGEST:,}", "")
    for share, pages, theirs in (
        (90, hosts.pages_90, papers.IRLBOT_PAGES_90),
        (99, hosts.pages_99, papers.IRLBOT_PAGES_99),
    ):
        yield Measure(
            f"Most pages of a domain, for {share} % of domains",
            f"{pages:,}" if hosts.domains else "",
            f"{theirs:,}",
            "",
        )


def statuses(found: Survey) -> list[Frequency]:
    """Return HTTP status codes, as in Mercator's Table 2."""
    rows = [(_code(code), count) for code, count in found.statuses]
    theirs = {_code(code): count for code, count in papers.MERCATOR_STATUSES.items()}
    return _shares(rows, theirs, papers.MERCATOR_ANSWERS)


def media_types(found: Survey) -> list[Frequency]:
    """Return media types of whole answers, as in Mercator's Table 3."""
    rows = [(name or "(none)", count) for name, count in found.media_types]
    return _shares(rows, papers.MERCATOR_MEDIA_TYPES, papers.MERCATOR_DOCUMENTS)


def _shares(rows: Rows, theirs: dict[str, int], their_total: int) -> list[Frequency]:
    """Return our commonest rows, then those that only the paper has."""
    total = sum(count for _, count in rows)
    ours: dict[str, int] = dict(rows[:ROWS])
    names = [*ours, *(name for name in theirs if name not in ours)][: ROWS + len(theirs)]
    return [
        Frequency(
            name,
            ours.get(name, 0),
            _share(ours.get(name, 0), total),
            share_text(theirs[name] / their_total) if name in theirs else "",
        )
        for name in names
    ]


def _code(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)


def _share(part: float, whole: float) -> str:
    return share_text(part / whole) if whole else ""


def _ratio(above: float, below: float) -> str:
    return number(above / below) if below else ""


def _times(above: float, below: float) -> str:
    return f"1 : {number(above / below)}" if below else ""
