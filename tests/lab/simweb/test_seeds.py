"""Mistakes in `fyke web` are one line."""

import pytest

from commands import told


@pytest.mark.parametrize("seed", ["-1", str(1 << 63)])
def test_a_seed_that_no_web_has(seed: str) -> None:
    told(2, ["web", "--seed", seed], ["--seed"])
