"""Every outcome has its cost; a server's wish to wait is read, and bounded."""

import dataclasses
import time
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.config import PolitenessSection
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Purpose, Visit, visit_to
from fyke.fetcher.faults import FAULTS, MAX_RETRY_AFTER_S, FaultPolicy, Wait, is_of_page, retry_after

NOW = 1_700_000_000.0


def asking(value: str, *fields: str) -> Exchange:
    lines = ("HTTP/1.1 503 Busy", f"Retry-After: {value}", *fields, "\r\n")
    head = "\r\n".join(lines).encode("latin-1", "replace")
    return Exchange(Visit("http://site.test/", 0, 0, 0), Outcome.THROTTLED, 0.0, 0.0, head=head)


def test_every_outcome_has_a_row():
    assert set(FAULTS) == set(Outcome)


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        FAULTS[Outcome.OK] = FAULTS[Outcome.TIMED_OUT]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        FAULTS[Outcome.OK].retry = True  # type: ignore[misc]


def test_an_answer_never_costs_the_host_and_a_costly_fault_makes_it_wait():
    for outcome, fault in FAULTS.items():
        assert not (outcome.answered and fault.costs_host), outcome
        assert not fault.costs_host or fault.wait is Wait.FAILURE, outcome
    assert FAULTS[Outcome.THROTTLED].wait is Wait.THROTTLE


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("  7 ", 7.0),
        ("3.5", 3.5),
        ("+4", 4.0),
        ("4 seconds", 4.0),
        ("30s", 30.0),
        ("1, 5", 5.0),
        ("1, soon", None),
        ("999999999999999999999", MAX_RETRY_AFTER_S),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tue, 14 Nov 2023 22:14:20", 60.0),
        ("Tue, 14 Nov 2000 22:14:20 GMT", 0.0),
        ("Tue, 14 Nov 9999 22:14:20 GMT", MAX_RETRY_AFTER_S),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("Tue, 99 Nov 2023 99:99:99 GMT", None),
    ],
)
def test_retry_after(value, wait):
    assert retry_after(asking(value), NOW) == wait


@pytest.mark.parametrize(
    ("values", "wait"), [(("0", "20"), 20.0), (("20", "0"), 20.0), (("soon", "7"), 7.0), (("soon", "-1"), None)]
)
def test_of_several_the_longest_counts(values, wait):
    assert retry_after(asking("\r\nRetry-After: ".join(values)), NOW) == wait


def test_retry_after_not_asked_for():
    exchange = Exchange(Visit("http://site.test/", 0, 0, 0), Outcome.OK, 0.0, 0.0, head=b"HTTP/1.1 200 OK\r\n\r\n")
    assert retry_after(exchange, NOW) is None


@given(st.text(max_size=40).filter(lambda text: "\n" not in text))
def test_retry_after_is_never_negative_nor_endless(value):
    wait = retry_after(asking(value), NOW)
    assert wait is None or 0 <= wait <= MAX_RETRY_AFTER_S


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_retry_after_reads_dates(when):
    when = when.replace(microsecond=0)
    expected = min(max(when.timestamp() - NOW, 0.0), MAX_RETRY_AFTER_S)
    assert retry_after(asking(format_datetime(when, usegmt=True)), NOW) == expected


@pytest.mark.parametrize("zone", ["UTC", "UTC-14", "UTC+12"])
@pytest.mark.parametrize("form", ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"])
def test_every_form_of_date_is_in_utc(form, zone, monkeypatch):
    said = time.strftime(form, time.gmtime(NOW + 60))
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        assert retry_after(asking(said), NOW) == 60.0
    time.tzset()


@given(wait_s=st.integers(0, 80_000), slow_s=st.integers(0, 10**9))
def test_a_date_is_read_by_the_clock_that_the_server_shows(wait_s, slow_s):
    then = NOW - slow_s
    shown = f"Date: {formatdate(then, usegmt=True)}"
    assert retry_after(asking(formatdate(then + wait_s, usegmt=True), shown), NOW) == wait_s
    assert retry_after(asking(str(wait_s), shown), NOW) == wait_s


@given(until_s=st.integers(0, 80_000), fast_s=st.integers(0, 10**9))
def test_a_clock_that_is_ahead_makes_no_rest_shorter(until_s, fast_s):
    shown = f"Date: {formatdate(NOW + fast_s, usegmt=True)}"
    assert retry_after(asking(formatdate(NOW + until_s, usegmt=True), shown), NOW) == until_s


@given(
    said=st.lists(st.sampled_from(sorted(set(Outcome) - {Outcome.OK})), max_size=20),
    last=st.sampled_from([Outcome.SERVER_ERROR, Outcome.THROTTLED, Outcome.TIMED_OUT]),
)
def test_each_fault_in_a_row_doubles_the_rest_and_one_success_takes_that_back(said: list[Outcome], last: Outcome):
    politeness = PolitenessSection()
    policy = FaultPolicy(politeness)
    first_s = policy.wait_s(last, policy.faults(last, 0, 0), 0, None)
    faults = in_a_row = 0
    for outcome in [*said, last]:
        faults = policy.faults(outcome, faults, 0)
        in_a_row = in_a_row + 1 if FAULTS[outcome].wait is not Wait.NONE else 0
    assert policy.wait_s(last, faults, 0, None) == min(first_s * 2.0 ** (in_a_row - 1), politeness.max_sleep_s)
    faults = policy.faults(last, policy.faults(Outcome.OK, faults, 0), 0)
    assert policy.wait_s(last, faults, 0, None) == first_s


def test_the_wait_is_what_retry_after_says():
    policy = FaultPolicy(PolitenessSection())
    assert policy.wait_s(Outcome.THROTTLED, 0, 0, 86400.0) == 86400
    assert policy.wait_s(Outcome.THROTTLED, 0, 0, 60.0) == 60


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.THROTTLED}))
def test_what_is_asked_for_makes_no_rest_shorter(outcome):
    policy = FaultPolicy(PolitenessSection())
    usual_s = policy.wait_s(outcome, 3, 1, None)
    assert policy.wait_s(outcome, 3, 1, 0.0) == usual_s
    assert policy.wait_s(outcome, 3, 1, 80000.0) == max(usual_s, 80000.0)


@pytest.mark.parametrize("truncated", ["", "disconnect"])
@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
@pytest.mark.parametrize("protocol", ["", "http/1.1", "ftp", "gopher"])
@pytest.mark.parametrize("purpose", list(Purpose))
def test_what_broke_off_is_a_fault_of_the_page_if_it_had_begun(
    truncated: str, head: bytes, protocol: str, purpose: Purpose
) -> None:
    """A head that was none begins no page."""
    visit = visit_to("http://there.test/", purpose=purpose)
    exchange = Exchange(visit, Outcome.BROKEN_OFF, 0.0, 1.0, head=head, truncated=truncated)
    exchange.effective_protocol = protocol
    begun = truncated and (head or protocol) and purpose is Purpose.PAGE
    assert is_of_page(exchange) is bool(begun)
