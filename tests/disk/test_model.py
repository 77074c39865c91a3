"""The model against the paper's own tables."""

import pytest

from fyke.disk.model import (
    Crawl,
    drum_overhead,
    least_overhead,
    mercator_b_overhead,
    optimal_disk_bytes,
    polybot_overhead,
    sustained_pages_s,
)

GB = 1e9
TRUNCATED = 0.011  # the paper cuts digits off rather than round
TABLE_2 = [  # R = 1 GB, D = 4.39 TB: pages, Mercator-B, Polybot, DRUM
    (800e6, 11.6, 69, 2.26),
    (8e9, 93, 663, 2.35),
    (80e9, 917, 6_610, 3.3),
    (800e9, 9_156, 66_082, 12.5),
    (8e12, 91_541, 660_802, 104),
]
TABLE_3 = [  # D = D(n): pages, R in GB, Mercator-B, DRUM
    (800e6, 4, 4.48, 2.30),
    (8e9, 4, 25, 2.7),
    (80e9, 4, 231, 3.3),
    (800e9, 4, 2_290, 3.3),
    (8e12, 4, 22_887, 8.1),
    (800e6, 8, 3.29, 2.30),
    (8e9, 8, 13.5, 2.7),
    (80e9, 8, 116, 3.3),
    (800e9, 8, 1_146, 3.3),
    (8e12, 8, 11_444, 3.7),
]


@pytest.mark.parametrize(("pages", "mercator_b", "polybot", "drum"), TABLE_2)
def test_table_2(pages: float, mercator_b: float, polybot: float, drum: float) -> None:
    crawl = Crawl(pages)
    assert mercator_b_overhead(crawl, GB) == pytest.approx(mercator_b, rel=TRUNCATED)
    assert polybot_overhead(crawl, GB) == pytest.approx(polybot, rel=TRUNCATED)
    assert drum_overhead(crawl, GB, 4.39e12) == pytest.approx(drum, rel=TRUNCATED)


@pytest.mark.parametrize(("pages", "ram_gb", "mercator_b", "drum"), TABLE_3)
def test_table_3(pages: float, ram_gb: int, mercator_b: float, drum: float) -> None:
    crawl = Crawl(pages)
    disk_bytes = max(crawl.unique_share * crawl.key_bytes * crawl.links, 1e12)
    assert mercator_b_overhead(crawl, ram_gb * GB) == pytest.approx(mercator_b, rel=0.01)
    assert drum_overhead(crawl, ram_gb * GB, disk_bytes) == pytest.approx(drum, rel=0.02)


def test_what_the_text_says() -> None:
    crawl = Crawl(8e12)
    assert least_overhead(crawl) == pytest.approx(2.256, abs=0.001)
    assert optimal_disk_bytes(crawl, GB) == pytest.approx(4.39 * 2**40, rel=0.01)  # the one binary figure
    disk_bytes = crawl.unique_share * crawl.key_bytes * crawl.links
    drum = sustained_pages_s(crawl, drum_overhead(crawl, 8 * GB, disk_bytes), 101.25e6)
    mercator_b = sustained_pages_s(crawl, mercator_b_overhead(crawl, 8 * GB), 101.25e6)
    assert drum == pytest.approx(4192, rel=0.02)
    assert mercator_b == pytest.approx(1.4, abs=0.05)
