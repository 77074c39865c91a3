"""Memory is set by the configuration, not by the crawl: the small version of `benches/flat_memory.py`."""

from flat_memory import compare


def test_memory_is_flat() -> None:
    """Three and a half times the URLs, the same memory within a fifth, and below 400 MB."""
    (_, few, low), (_, many, high) = compare(1700, 6000)
    assert many > 2.5 * few
    assert high < 1.2 * low and high < 400
