"""The floor is measured: a crawl with its rooms, and each part by itself."""

import subprocess
import sys
from pathlib import Path

import pytest
from webs.alone import can_go_alone

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.mark.skipif(not can_go_alone(), reason="this system gives nobody a network of its own")
def test_the_parts_and_the_whole(tmp_path: Path) -> None:
    command = [sys.executable, BENCHES / "floor.py", "plain", "--pages", "600", "--into", tmp_path]
    told = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert "plain: 600 pages" in told
    for part in ("lexbor's tree", "**sum**", "**Fyke**", "ours", "parsing", "archive and tables"):
        assert f"| {part} |" in told, told
