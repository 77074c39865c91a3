"""The audit finds what was planted, and nothing else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fyke.lab.simweb import AuditRule, LedgerRow, audit_politeness, table_of


def row(arrived, ended, host="a.sim", server="127.1.0.1", path="/", retry_after_s=0.0, status=200):
    return LedgerRow(arrived, ended, "http", server, 1, host, path, "fyke", status, 1, retry_after_s)


def rules(rows, **due):
    due = {"host_delay_s": 1.0} | due
    return [(one.rule, one.arrived) for one in audit_politeness(table_of(rows), **due)]


def test_nothing_asked_nothing_found():
    assert rules([]) == []
    assert rules([row(1, 2)]) == []
    assert rules([row(1, 2), row(3, 4), row(5, 6)]) == []


def test_host_delay_runs_from_the_end():
    assert rules([row(1, 2), row(2.5, 3)]) == [(AuditRule.HOST_DELAY, 2.5)]
    assert rules([row(1, 2), row(2.5, 3, host="b.sim", server="127.1.0.2")]) == []


def test_overlap_is_found_behind_a_short_request():
    assert rules([row(1, 9), row(12, 13)]) == []
    long_one = [row(1, 9), row(2, 2.5), row(5, 6)]
    assert rules(long_one) == [(AuditRule.OVERLAP, 2), (AuditRule.OVERLAP, 5)]
    assert [one.gap_s for one in audit_politeness(table_of(long_one), 1.0)] == [-7.0, -4.0]


def test_order_of_rows_does_not_matter():
    rows = [row(5, 6), row(1, 9), row(2, 2.5)]
    assert rules(rows) == rules(rows[::-1]) == [(AuditRule.OVERLAP, 2), (AuditRule.OVERLAP, 5)]


def test_download_delay_has_a_factor_and_a_ceiling():
    rows = [row(0, 1), row(6, 7)]
    assert rules(rows, delay_factor=10) == [(AuditRule.DOWNLOAD_DELAY, 6)]
    assert rules(rows, delay_factor=10, delay_ceiling_s=5) == []


def test_crawl_delay_counts_once_robots_was_read():
    rows = [row(0, 1), row(3, 4, path="/robots.txt"), row(6, 7), row(12, 13), row(16, 17)]
    assert rules(rows, crawl_delays={"a.sim": 5.0}) == [(AuditRule.CRAWL_DELAY, 6), (AuditRule.CRAWL_DELAY, 16)]
    assert rules(rows, crawl_delays={"b.sim": 5.0}) == []
    broken_off = row(-3, -2, path="/robots.txt", status=0)
    assert rules([broken_off, *rows[1:]], crawl_delays={"a.sim": 5.0}) == rules(rows, crawl_delays={"a.sim": 5.0})
    assert rules([broken_off, row(0, 1)], crawl_delays={"a.sim": 5.0}) == []


def test_retry_after_holds_over_other_requests():
    rows = [row(0, 1, retry_after_s=10), row(4, 5), row(11.5, 12)]
    assert rules(rows) == [(AuditRule.RETRY_AFTER, 4)]
    rows = [row(0, 1, retry_after_s=10), row(8, 9), row(10.5, 11)]
    assert rules(rows, host_delay_s=0) == [(AuditRule.RETRY_AFTER, 8), (AuditRule.RETRY_AFTER, 10.5)]


def test_address_delay_runs_from_arrival_to_arrival():
    rows = [row(0, 3), row(1.0, 4, host="b.sim"), row(1.5, 5, host="c.sim")]
    assert rules(rows, address_delay_s=0.8) == [(AuditRule.ADDRESS_DELAY, 1.5)]
    assert rules(rows, address_delay_s=0.52, slack_s=0.05) == []


def test_a_violation_says_what_was_due():
    (found,) = audit_politeness(table_of([row(0, 1), row(1.25, 2, path="/x")]), 1.0)
    assert found.place == "a.sim" and found.path == "/x"
    assert found.gap_s == 0.25 and found.due_s == 1.0


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 3)), min_size=2, max_size=40), st.data())
def test_planted_among_polite_ones(steps, data):
    clock, rows = 100.0, []
    for wait, length in steps:
        clock += 1.001 + wait
        rows.append(row(clock, clock + length))
        clock += length
    assert rules(rows) == []
    place = data.draw(st.integers(1, len(rows) - 1))
    moved = rows[place - 1].ended + 0.5
    rows[place] = rows[place]._replace(arrived=moved, ended=moved)
    assert (AuditRule.HOST_DELAY, moved) in rules(rows)


def test_many_rows_of_one_host():
    count = 200_000
    rng = np.random.default_rng(1)
    table = table_of([row(0, 0.1)]).take(np.zeros(count, np.int64))
    arrived = np.arange(count, dtype=np.float64)
    table = table.set_column(0, "arrived", [arrived]).set_column(1, "ended", [arrived + rng.random(count) / 2])
    assert audit_politeness(table, 0.4) == []
