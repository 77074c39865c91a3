"""What follows from each answer to the question for robots.txt: RFC 9309, section 2.3."""

from email.utils import formatdate

import pytest

from fyke.core.outcomes import Outcome
from fyke.core.urls import robots_url
from fyke.core.visits import Exchange, Purpose, Visit
from fyke.fetcher.robots import (
    FIRST_RETRY_S,
    LONGEST_RETRY_S,
    MAX_REDIRECTS,
    MIN_TTL_S,
    RobotsState,
    redirect_of,
    rules_from,
)

NOW = 1_000_000_000.0
DAY = 86400.0
ORIGIN = "http://foo.bar:80"
BODY = b"User-agent: *\nDisallow: /x\n"
FAILURES = set(Outcome) - {Outcome.OK, Outcome.TOO_LARGE, Outcome.REDIRECTED, Outcome.CLIENT_ERROR}


def exchange(outcome=Outcome.OK, status=200, *headers: str, url="http://foo.bar/robots.txt", detail="") -> Exchange:
    visit = Visit(url, 0, 0, 0, purpose=Purpose.ROBOTS, robots_of=ORIGIN)
    head = f"HTTP/1.1 {status} x\r\n" + "".join(f"{line}\r\n" for line in headers) + "\r\n"
    return Exchange(visit, outcome, NOW, 0.1, status=status, head=head.encode(), detail=detail)


def record_of(answer, body=BODY, previous=None):
    return rules_from(answer, body, now=NOW, previous=previous)


def test_an_answer_brings_its_rules():
    record = record_of(exchange())
    assert (record.origin, record.state, record.body) == (ORIGIN, RobotsState.RULES, BODY)
    assert not record.rules("fyke").verdict("/x").allowed and record.rules("fyke").verdict("/y").allowed
    assert record.rules("fyke") is record.rules("fyke")
    assert record.fresh(NOW + DAY - 1) and not record.fresh(NOW + DAY)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_a_client_error_allows_all(status):
    record = record_of(exchange(Outcome.CLIENT_ERROR, status))
    assert record.state is RobotsState.ALLOW_ALL and record.rules("fyke").verdict("/x").allowed
    assert str(status) in record.reason and record.body == b""


@pytest.mark.parametrize("outcome", sorted(FAILURES - {Outcome.ADDRESS_REFUSED, Outcome.UNSUPPORTED}))
def test_everything_else_forbids_all_until_retried(outcome):
    record = record_of(exchange(outcome, 0, detail="it broke"))
    assert record.state is RobotsState.DISALLOW_ALL
    verdict = record.rules("fyke").verdict("/y")
    assert not verdict.allowed and "it broke" in verdict.line_text
    assert record.expires_at == NOW + FIRST_RETRY_S


@pytest.mark.parametrize(
    ("outcome", "status", "detail", "reason"),
    [
        (Outcome.BROKEN_OFF, 200, "end of response with 9 bytes missing", "end of response with 9 bytes missing"),
        (Outcome.THROTTLED, 200, "it takes long to unfold", "it takes long to unfold"),
        (Outcome.SERVER_ERROR, 500, "", "the server answered 500"),
        (Outcome.TIMED_OUT, 0, "", "timed_out"),
    ],
)
def test_why_there_are_no_rules_is_said_by_what_went_wrong(outcome, status, detail, reason):
    """Not by the status of an answer that broke off, which was 200."""
    assert record_of(exchange(outcome, status, detail=detail)).reason == f"robots.txt could not be fetched: {reason}"


def test_no_status_but_2xx_brings_rules():
    assert record_of(exchange(Outcome.OK, 304)).state is RobotsState.DISALLOW_ALL
    assert record_of(exchange(Outcome.CLIENT_ERROR, 429)).state is RobotsState.DISALLOW_ALL
    assert record_of(exchange(Outcome.OK, 0)).state is RobotsState.RULES  # ftp has no status of this kind
    assert record_of(exchange(Outcome.TOO_LARGE, 200)).state is RobotsState.RULES  # its beginning counts


def test_retries_are_further_and_further_apart_but_not_beyond_the_longest():
    record, waits = None, []
    for _ in range(40):
        record = record_of(exchange(Outcome.SERVER_ERROR, 500), previous=record)
        waits.append(record.expires_at - NOW)
    assert waits[:4] == [FIRST_RETRY_S * 2**n for n in range(4)]
    assert waits == sorted(waits) and waits[-1] == LONGEST_RETRY_S
    assert record_of(exchange(), previous=record).failures == 0


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("120", 120),
        ("5", FIRST_RETRY_S),
        ("99999999999999", DAY),
        (formatdate(NOW + 600, usegmt=True), 600),
        ("soon", 30),
    ],
)
def test_the_server_says_when_to_come_back(value, wait):
    record = record_of(exchange(Outcome.THROTTLED, 503, f"Retry-After: {value}"))
    assert record.expires_at == NOW + wait


DATE = f"Date: {formatdate(NOW - 50, usegmt=True)}"


@pytest.mark.parametrize(
    ("headers", "ttl"),
    [
        ([], DAY),
        (["Cache-Control: max-age=7200"], 7200),
        (["Cache-Control: public, Max-Age=7200", "Age: 200"], 7000),
        (["Cache-Control: max-age=999999999"], DAY),
        (["Cache-Control: max-age=0"], MIN_TTL_S),
        (["Cache-Control: no-cache"], MIN_TTL_S),
        (["Cache-Control: max-age=nonsense"], MIN_TTL_S),
        (["Cache-Control: must-revalidate"], DAY),
        ([f"Expires: {formatdate(NOW + 7200, usegmt=True)}"], 7200),
        ([f"Expires: {formatdate(NOW + 7200, usegmt=True)}", DATE], 7250),
        (["Expires: 0"], MIN_TTL_S),
        (["Cache-Control: max-age=7200", "Expires: 0"], 7200),
    ],
)
def test_rules_are_believed_as_long_as_the_server_says_within_bounds(headers, ttl):
    assert record_of(exchange(Outcome.OK, 200, *headers)).expires_at == NOW + ttl


def test_redirects_are_followed_five_times_across_authorities():
    answer = exchange(Outcome.REDIRECTED, 301, "Location: https://www.foo.bar/robots.txt#x")
    for hops in range(MAX_REDIRECTS):
        assert redirect_of(answer, hops) == "https://www.foo.bar/robots.txt"
    assert redirect_of(answer, MAX_REDIRECTS) is None
    assert record_of(answer).state is RobotsState.ALLOW_ALL


@pytest.mark.parametrize(
    "location", ["ftp://foo.bar/robots.txt", "http://foo.bar:25/robots.txt", "javascript:x", "http://", "mailto:a@b"]
)
def test_a_redirect_to_nowhere_is_given_up(location):
    assert redirect_of(exchange(Outcome.REDIRECTED, 302, f"Location: {location}"), 0) is None


def test_rules_at_an_address_that_is_refused_are_unknown_but_where_the_site_itself_is():
    """What a redirect leads to might forbid something; a site that is refused is asked for no page either."""
    answer = exchange(Outcome.ADDRESS_REFUSED, 0, detail="it is not public")
    assert record_of(answer).state is RobotsState.ALLOW_ALL
    answer.visit.depth = 1
    assert record_of(answer).state is RobotsState.DISALLOW_ALL
    assert "it is not public" in record_of(answer).reason


def test_rules_at_a_port_of_another_protocol_are_unknown():
    """It is refused as private addresses are."""
    answer = exchange(Outcome.REDIRECTED, 302, "Location: http://foo.bar:25/robots.txt")
    assert record_of(answer).state is RobotsState.DISALLOW_ALL and "port 25" in record_of(answer).reason
    answer.visit.depth = MAX_REDIRECTS
    assert record_of(answer).state is RobotsState.ALLOW_ALL  # there are too many of them in any case
    for location in ("ftp://foo.bar/robots.txt", "javascript:x", "http://", "mailto:a@b"):
        answer = exchange(Outcome.REDIRECTED, 302, f"Location: {location}")
        assert record_of(answer).state is RobotsState.ALLOW_ALL, location


def test_an_origin_that_cannot_be_asked_is_not_asked_again_and_again():
    """Each of its pages ends for the same reason. What a redirect leads to might forbid something."""
    answer = exchange(Outcome.UNSUPPORTED, 0, detail="cannot be requested: Bad hostname")
    assert record_of(answer).state is RobotsState.ALLOW_ALL
    answer.visit.depth = 1
    assert record_of(answer).state is RobotsState.DISALLOW_ALL


def test_a_redirect_may_be_relative():
    assert redirect_of(exchange(Outcome.REDIRECTED, 302, "Location: /r.txt"), 0) == "http://foo.bar/r.txt"
    assert redirect_of(exchange(), 0) is None


def test_where_robots_txt_is():
    assert robots_url("http://foo.bar:80") == "http://foo.bar/robots.txt"
    assert robots_url("https://[::1]:8443") == "https://[::1]:8443/robots.txt"
    with pytest.raises(ValueError, match="origin"):
        robots_url("nonsense")
