"""The model against the paper's own tables and examples, and the laws that its theorems state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_tables import Printed, figures, table_2, table_3

from fyke.lab.plan.model import (
    READ_BYTES,
    Budgets,
    Workload,
    beast_bytes_s,
    beast_limit_bytes_s,
    beast_queues,
    drum_overhead,
    least_overhead,
    least_ram_bytes,
    mercator_b_overhead,
    naive_budget_bytes_s,
    optimal_disk_bytes,
    sufficient_ram_bytes,
)

GB = 1e9
PAGES = st.floats(min_value=1e3, max_value=1e15)
HALF_A_PERCENT_OFF = "4.4, optimal D for R = 1 GB, TB"  # 4.37 TiB by equation (6); `Printed.differs` tells more


@pytest.mark.parametrize("printed", figures(), ids=lambda printed: printed.where)
def test_every_printed_figure(printed: Printed) -> None:
    """Rounded or cut off, to the last digit that the paper prints; one figure is half a percent off."""
    if printed.where == HALF_A_PERCENT_OFF:
        assert not printed.agrees and printed.differs
        assert printed.computed == pytest.approx(float(printed.digits), rel=0.006)
    else:
        assert printed.agrees, printed


def test_no_cell_is_left_out() -> None:
    assert len(list(table_2())) == 5 * 3
    assert len(list(table_3())) == 5 * 4
    assert [printed.where for printed in figures() if printed.differs] == [HALF_A_PERCENT_OFF]


def test_agreement_is_to_the_last_digit() -> None:
    assert Printed("cut", "93", 93.9996).agrees
    assert Printed("rounded", "69", 68.7).agrees
    assert not Printed("one more", "94.0", 93.8996).agrees
    assert not Printed("one less", "92", 93.0001).agrees


@given(pages=PAGES, ram_gb=st.floats(0.1, 1000))
def test_both_cases_of_theorem_2_meet_at_the_optimal_disk(pages: float, ram_gb: float) -> None:
    crawl, ram_bytes = Workload(pages), ram_gb * GB
    disk_bytes = optimal_disk_bytes(crawl, ram_bytes)
    by_memory = drum_overhead(crawl, ram_bytes, disk_bytes * 1.001)
    assert drum_overhead(crawl, ram_bytes, disk_bytes * 0.999) == pytest.approx(by_memory, rel=0.003)
    assert drum_overhead(crawl, ram_bytes, disk_bytes * 1000) == by_memory  # more disk than memory can fill is no use


@given(pages=PAGES, ram_gb=st.floats(0.1, 1000), disk_tb=st.floats(0.01, 1000))
def test_drum_is_never_below_the_least_overhead(pages: float, ram_gb: float, disk_tb: float) -> None:
    crawl = Workload(pages)
    drum = drum_overhead(crawl, ram_gb * GB, disk_tb * 1e12)
    assert drum > least_overhead(crawl)
    assert drum_overhead(crawl, 2 * ram_gb * GB, 2 * disk_tb * 1e12) < drum
    assert mercator_b_overhead(Workload(2 * pages), ram_gb * GB) > mercator_b_overhead(crawl, ram_gb * GB)


@given(ram_gb=st.floats(0.1, 1000))
def test_memory_that_suffices_is_the_optimal_disk_the_other_way_round(ram_gb: float) -> None:
    crawl = Workload(8e9)
    assert sufficient_ram_bytes(crawl, optimal_disk_bytes(crawl, ram_gb * GB)) == pytest.approx(ram_gb * GB)


def test_least_memory() -> None:
    """Half again as much as two reads, with keys of 8 bytes and pointers of 4."""
    assert least_ram_bytes(Workload(1e9)) == 3 * READ_BYTES


@given(pages=PAGES)
def test_beast_never_needs_more_than_its_limit(pages: float) -> None:
    budgets = Budgets(pages)
    limit_bytes_s = beast_limit_bytes_s(budgets)
    assert limit_bytes_s == pytest.approx(8.184e6)
    assert beast_bytes_s(Budgets(1)) <= beast_bytes_s(budgets) <= limit_bytes_s
    assert beast_bytes_s(Budgets(1)) == pytest.approx(2 * 3100 * 110 * 6.5)  # every unique URL written and read once
    assert beast_bytes_s(Budgets(1e18)) == pytest.approx(limit_bytes_s)


@given(pages=st.floats(1e9, 1e15))
def test_naive_budgets_cost_as_much_as_the_crawl_is_large(pages: float) -> None:
    assert naive_budget_bytes_s(Budgets(2 * pages)) == pytest.approx(2 * naive_budget_bytes_s(Budgets(pages)))


@given(pages=PAGES)
def test_queues_are_the_least_power_of_two_that_holds_half_the_passes(pages: float) -> None:
    budgets, queues = Budgets(pages), beast_queues(Budgets(pages))
    assert queues & (queues - 1) == 0
    assert queues < budgets.passes + 1 <= 2 * queues or queues == budgets.passes == 1


def test_a_small_crawl_fits_its_budgets() -> None:
    budgets = Budgets(100e6)
    assert budgets.passes == 1
    assert beast_queues(budgets) == 1
