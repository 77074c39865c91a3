"""The tests of this folder need the sets of `oracles`; where there are none at all, they are skipped."""

import pytest

from conformance.oracles import ORACLES


@pytest.fixture(scope="session", autouse=True)
def _oracles() -> None:
    if not ORACLES.is_dir():
        pytest.skip(f"there are no test sets of others at {ORACLES}; FYKE_ORACLES names their folder")
