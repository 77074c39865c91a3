"""The soak's judge forgives what a crawler cannot know, and nothing more."""

import sys
from pathlib import Path

import pytest

from fyke.lab.simweb.ledger import LedgerRow, table_of

BENCHES = Path(__file__).parents[2] / "benches"
DELAY_S = 1.0


@pytest.fixture
def too_soon(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(BENCHES)
    yield __import__("soak_laws").too_soon
    sys.modules.pop("soak_laws")


def asked(arrived: float, ended: float, status: int = 200) -> LedgerRow:
    return LedgerRow(arrived, ended, "http", "127.0.0.9", 1, "a.example", f"/{arrived}", "fyke", status, 1)


@pytest.mark.parametrize(
    ("status", "stalls", "is_excused"),
    [
        (0, [(9.0, 10.5)], True),
        (0, [(9.9, 10.5)], False),
        (0, [(9.0, 9.5)], False),
        (0, [(10.6, 12.0)], False),
        (0, [], False),
        (200, [(9.0, 10.5)], False),
    ],
    ids=["noted late", "a little late", "stalled before", "stalled after", "never stalled", "answered in whole"],
)
def test_what_came_after_a_request_that_was_broken_off(too_soon, status, stalls, is_excused) -> None:
    rows = table_of([asked(8.0, 10.5, status), asked(10.8, 10.9)])
    assert (too_soon(rows, DELAY_S, {}, [], stalls) == []) == is_excused
