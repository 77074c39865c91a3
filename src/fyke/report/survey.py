"""A crawl in numbers: what the report shows, counted in a few passes over the tables.

`fyke.report.page` calls it. Every number is of rows that a checkpoint holds. Bounded: the result has a bounded size,
whatever a server sent: lists are cut, and the rest of them counted.
"""

from dataclasses import dataclass, fields
from typing import Any

from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES
from fyke.report.sql import Questions, Rows

MEDIA_TYPES = 40
DEEPEST = 40
WORST_HOSTS = 10
STRETCHES = 60  # about as many points in time

_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
_DAY_S = 86400
_SECONDS = "epoch_us(fetched_at) / 1e6"
_OK = f"outcome = '{Outcome.OK}'"
_ANSWERED = " or ".join(f"outcome = '{outcome}'" for outcome in Outcome if outcome.answered)
_NOT_ASKED = (Outcome.ROBOTS_FORBADE, Outcome.ROBOTS_UNREACHABLE, Outcome.HOST_RETIRED, Outcome.UNSUPPORTED)
_ASKED = f"outcome not in ({', '.join(repr(outcome.value) for outcome in _NOT_ASKED)})"
_FAILED = f"not ({_ANSWERED}) and {_ASKED}"
_HTML = f"media_type in ({', '.join(map(repr, sorted(HTML_TYPES)))})"
_PACKED = f"{_OK} and body_bytes < 0.9 * content_bytes"


@dataclass(frozen=True, slots=True)
class VisitTotals:
    """Sums over all visits; times in unix seconds, sizes in bytes. A number without pages to count is 0."""

    visits: int
    asked: int  # visits for which a request was tried
    answered: int  # of these, with an answer
    pages: int  # whole: outcome ok
    html: int
    links: int
    begin_s: float
    end_s: float
    body_bytes: int
    content_bytes: int
    html_bytes: int
    packed: int  # pages that came compressed
    packed_body_bytes: int
    packed_content_bytes: int
    middling: int  # pages of 1 to 32 KiB
    bodies: int  # of pages, that are not empty
    distinct: int  # of these
    url_bytes: float  # mean, without the scheme
    archive_bytes: int  # of response records


@dataclass(frozen=True, slots=True)
class Hosts:
    """How hosts and domains share the crawl. 90% of domains have at most `pages_90` pages, 99% at most `pages_99`."""

    hosts: int
    domains: int
    largest: int
    largest_name: str
    pages_90: int
    pages_99: int
    slowest: Rows  # host, answers, mean seconds, longest seconds
    failing: Rows  # host, failures, visits, commonest outcome


@dataclass(frozen=True, slots=True)
class Survey:
    """Counts of the pages table."""

    totals: VisitTotals
    hosts: Hosts
    width_s: int  # of a stretch
    stretches: Rows  # begin in seconds after `begin_s`, pages, visits
    outcomes: Rows  # outcome, visits
    statuses: Rows  # code, answers
    media_types: Rows  # media type, pages
    sizes: Rows  # floor of the binary logarithm of bytes (-1: empty), HTML pages, other pages
    depths: Rows  # depth, pages


def survey(questions: Questions) -> Survey:
    """Count the pages table."""
    totals = _totals(questions)
    width_s = _width(totals.end_s - totals.begin_s)
    replied = f"status > 0 and starts_with(url, 'http') and ({_ANSWERED})"

    def grouped(what: str, where: str, *columns: str, order: str = "2 desc, 1", limit: int = 100) -> Rows:
        sql = f"select {what}, count(*) from pages where {where} group by 1 order by {order} limit {limit}"
        return questions.ask(sql, pages=columns)

    return Survey(
        totals=totals,
        hosts=_hosts(questions),
        width_s=width_s,
        stretches=questions.ask(
            f"select floor(({_SECONDS} - ?) / ?)::bigint, count(*) filter ({_OK}), count(*) from pages"
            " group by 1 order by 1",
            totals.begin_s,
            width_s,
            pages=["fetched_at", "outcome"],
        ),
        outcomes=grouped("outcome", "true", "outcome"),
        statuses=grouped("status", replied, "status", "url", "outcome"),
        media_types=grouped("media_type", _OK, "media_type", "outcome", limit=MEDIA_TYPES),
        sizes=questions.ask(
            "select case when content_bytes > 0 then floor(log2(content_bytes))::int else -1 end,"
            f" count(*) filter ({_HTML}), count(*) filter (not ({_HTML})) from pages where {_OK} group by 1 order by 1",
            pages=["content_bytes", "media_type", "outcome"],
        ),
        depths=grouped(f"least(depth, {DEEPEST})", _OK, "depth", "outcome", order="1"),
    )


def _totals(questions: Questions) -> VisitTotals:
    counted: dict[str, tuple[str, ...]] = {
        f"select count(*), count(*) filter ({_ASKED}), count(*) filter ({_ANSWERED}), count(*) filter ({_OK}),"
        f" count(*) filter ({_OK} and {_HTML}), sum(links), min({_SECONDS}), max({_SECONDS} + duration_s),"
        f" sum(body_bytes), sum(content_bytes) filter ({_OK}), sum(content_bytes) filter ({_OK} and {_HTML}),"
        f" count(*) filter ({_PACKED}), sum(body_bytes) filter ({_PACKED}), sum(content_bytes) filter ({_PACKED}),"
        f" count(*) filter ({_OK} and content_bytes between 1024 and 32767) from pages":
        ("outcome", "media_type", "links", "fetched_at", "duration_s", "body_bytes", "content_bytes"),
        f"select count(*), count(distinct fingerprint) from pages where {_OK} and fingerprint > 0":
        ("outcome", "fingerprint"),
        "select avg(strlen(url) - strpos(url, '://') - 2), sum(warc_length) from pages": ("url", "warc_length"),
    }  # fmt: skip
    values: list[Any] = []
    for sql, columns in counted.items():
        values += questions.ask(sql, pages=columns)[0]
    kinds: list[Any] = [field.type for field in fields(VisitTotals)]
    return VisitTotals(*(kind(value or 0) for kind, value in zip(kinds, values, strict=True)))


def _width(span_s: float) -> int:
    """Return the length of a stretch, so that there are about `STRETCHES` of them."""
    wanted = span_s / STRETCHES
    return next((width for width in _WIDTHS_S if width >= wanted), int(-(-wanted // _DAY_S)) * _DAY_S)


def _hosts(questions: Questions) -> Hosts:
    """Count by host and by domain, in tables that DuckDB may move to disk."""
    questions.ask(
        f"create table by_host as select host, any_value(domain) as domain, count(*) as visits, count(*) filter ({_OK})"
        f" as pages, count(*) filter ({_FAILED}) as failures, mode(outcome) filter ({_FAILED}) as reason,"
        f" count(*) filter ({_ANSWERED}) as answers, avg(duration_s) filter ({_ANSWERED}) as mean_s,"
        f" max(duration_s) filter ({_ANSWERED}) as longest_s from pages group by host",
        pages=["host", "domain", "outcome", "duration_s"],
    )
    questions.ask("create table by_domain as select domain, sum(pages)::ubigint as pages from by_host group by domain")
    ((hosts,),) = questions.ask("select count(*) from by_host")
    ((domains, p90, p99),) = questions.ask(
        "select count(*), quantile_disc(pages, 0.9), quantile_disc(pages, 0.99) from by_domain"
    )
    largest = questions.ask("select domain, pages from by_domain order by pages desc, domain limit 1") or [("", 0)]
    slowest = questions.ask(
        "select host, answers, mean_s, longest_s from by_host where answers >= 3 order by mean_s desc, host limit ?",
        WORST_HOSTS,
    )
    failing = questions.ask(
        "select host, failures, visits, reason from by_host where failures > 0 order by failures desc, host limit ?",
        WORST_HOSTS,
    )
    return Hosts(hosts, domains, largest[0][1], largest[0][0], p90 or 0, p99 or 0, slowest, failing)
