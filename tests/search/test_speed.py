"""The small version of `benches/search_speed.py`: it runs, and both find the same."""

from pathlib import Path

from search_speed import measure


def test_search_speed(tmp_path: Path) -> None:
    figures = measure(300, tmp_path, queries=20)
    assert figures["fyke"]["pages_per_s"] > 10
    assert figures["fyke"]["found"] >= figures["fts5"]["found"] > 0
