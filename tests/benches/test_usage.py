"""Every bench says what it is for and how it is asked."""

import runpy
import sys
from pathlib import Path

import pytest

BENCHES = [path for path in (Path(__file__).parents[2] / "benches").glob("*.py") if "__main__" in path.read_text()]


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.stem)
def test_a_bench_answers_help(bench: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [str(bench), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(bench), run_name="__main__")
    assert not ended.value.code
    said = capsys.readouterr().out
    assert said.startswith("usage:") and len(said.splitlines()) > 5
