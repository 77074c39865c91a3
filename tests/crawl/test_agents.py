"""A crawl by several agents keeps the laws of one (`benches/agent_laws.py` runs them large)."""

from pathlib import Path

import pytest
from agent_laws import exact_law, kill_law, politeness_law

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("odd", [False, True], ids=["plain", "lively"])
def test_each_page_once_whatever_the_number_of_agents(tmp_path: Path, odd: bool) -> None:
    """Begun with one, gone on with five, ended with two: each page is archived once, none is missing."""
    found = exact_law(tmp_path, 300, 18, [1, 5, 2], 110, odd=odd)
    assert found.lawful, str(found)


def test_agents_and_supervisor_may_be_killed(tmp_path: Path) -> None:
    found = kill_law(tmp_path, 400, 24, 3, ["agent", "agent", "supervisor", "agent"], 200)
    assert found.lawful, str(found)
    assert found.deaths == 4


def test_politeness_holds_over_agents_that_die(tmp_path: Path) -> None:
    """By host and by address, as the servers saw it."""
    found = politeness_law(tmp_path, 260, 60, 10, 3, 200)
    assert not found.early, found.early[:5]
    assert not found.missing
    assert found.deaths == 3
