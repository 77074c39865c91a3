"""A crawl by several agents keeps the laws of one (`benches/agent_laws.py` runs them large)."""

from pathlib import Path

import pytest
from agent_laws import exact_law, kill_law, politeness_law

pytestmark = pytest.mark.timeout(240)


def test_each_page_once_whatever_the_number_of_agents(tmp_path: Path) -> None:
    """Begun with one, gone on with three, ended with two: each page is archived once, none is missing."""
    found = exact_law(tmp_path, 160, 12, [1, 3, 2], 110, odd=False)
    assert found.lawful, str(found)


def test_agents_and_supervisor_may_be_killed(tmp_path: Path) -> None:
    """On a tree, where a lost link is a lost page."""
    found = kill_law(tmp_path, 300, 16, 2, ["agent", "supervisor", "agent"], 200)
    assert found.lawful, str(found)
    assert found.deaths == 3


def test_politeness_holds_over_agents_that_die(tmp_path: Path) -> None:
    """By host and by address, as the servers saw it."""
    found = politeness_law(tmp_path, 150, 40, 8, 2, 200)
    assert not found.early, found.early[:5]
    assert not found.missing
    assert found.deaths == 2
