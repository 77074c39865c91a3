"""Memory is set by the configuration, not by the crawl: the small version of `benches/flat_memory.py`."""

import gzip
from contextlib import ExitStack
from pathlib import Path

from flat_memory import compare

from crawl.runs import crawl, settings
from crawl.small_site import small_site


def test_memory_is_flat() -> None:
    """More than twice the URLs, the same memory within a fifth, and below 400 MB."""
    (_, few, low), (_, many, high) = compare(1500, 6500)
    assert many > 2 * few
    assert high < 1.2 * low and high < 400


def test_bombs_go_off_one_by_one(tmp_path: Path) -> None:
    """Bodies of little that unfold to much come from many servers at once, and are not unfolded at once."""
    bomb = gzip.compress(bytes(100 << 20))
    answer = (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, bomb)
    peaks = []
    for count in (1, 12):
        with ExitStack() as serving:
            sites = [serving.enter_context(small_site(host=f"127.0.0.{40 + number}")) for number in range(count)]
            for site in sites:
                site.answers["/"] = answer
            run = crawl(tmp_path / str(count), settings(tmp_path), *(site.url for site in sites))
        assert run.status == 0 and run.summary["pages"] == count, run.errors
        peaks.append(run.summary["peak_memory_bytes"])
    assert peaks[1] < 1.2 * peaks[0], peaks
