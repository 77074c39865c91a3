"""Memory is set by the configuration, not by the crawl: the small version of `benches/flat_memory.py`."""

from flat_memory import compare


def test_memory_is_flat() -> None:
    """More than twice the URLs, the same memory within a fifth, and below 400 MB."""
    (_, few, low), (_, many, high) = compare(1500, 6500)
    assert many > 2 * few
    assert high < 1.2 * low and high < 400
