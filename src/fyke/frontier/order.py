"""Crawl orders, which give each URL a priority level.

`Ready` keeps a queue a level and drains the first ones faster, after Mercator's front queues (Najork and Heydon, 2001).
An order sees only URLs that their round let through (`fyke.frontier.beast`): reputation and politeness come before it.
A plug-in is a `CrawlOrder`; these are ours, by the names that `[frontier] order` takes.

Invariant: an order is a pure function of the rows, and every level lets something through.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import numbers, u64
from fyke.core.config import FrontierSection
from fyke.core.errors import ConfigurationError
from fyke.core.plugins import CrawlOrder, Numbers, load_plugin

LEVELS = 8
LAST = LEVELS - 1


class BreadthFirst:
    """In the order in which URLs were found."""

    def levels(self, urls: pa.RecordBatch) -> Numbers:
        return np.zeros(urls.num_rows, np.uint8)


class ByDepth:
    """By the number of links from a seed; from the seventh link on all alike."""

    def levels(self, urls: pa.RecordBatch) -> Numbers:
        levels: Numbers = np.minimum(numbers(urls, "depth"), LAST).astype(np.uint8)
        return levels


class ByInDegree:
    """By the number of domains that link to the URL's domain: a level for each factor of four."""

    def levels(self, urls: pa.RecordBatch) -> Numbers:
        steps = np.log2(numbers(urls, "in_degree").astype(np.float64) + 1) // 2
        levels: Numbers = (LAST - np.minimum(steps, LAST)).astype(np.uint8)
        return levels


class ByPattern:
    """By the first RE2 expression that the URL matches, a level each. URLs without a match come last."""

    def __init__(self, patterns: Sequence[str]) -> None:
        if not patterns or len(patterns) > LAST:
            raise ConfigurationError(f"order = patterns needs 1 to {LAST} order_patterns, not {len(patterns)}")
        self._patterns = patterns
        for pattern in patterns:
            try:
                pc.match_substring_regex(pa.array([b""]), pattern)
            except pa.ArrowInvalid as error:
                raise ConfigurationError(f"order_patterns {pattern!r}: {error}") from None

    def levels(self, urls: pa.RecordBatch) -> Numbers:
        levels = np.full(urls.num_rows, LAST, np.uint8)
        for level in reversed(range(len(self._patterns))):
            matches = pc.match_substring_regex(urls.column("url"), self._patterns[level])
            levels[matches.to_numpy(zero_copy_only=False)] = level
        return levels


class Random:
    """By the URL's key, which is as good as random, and the same in every run."""

    def levels(self, urls: pa.RecordBatch) -> Numbers:
        return u64(urls, "key") >> np.uint64(61)


def crawl_order(config: FrontierSection) -> CrawlOrder:
    """Return the order that `config` names. Raises ConfigurationError, PluginError."""
    match config.order:
        case "breadth-first":
            return BreadthFirst()
        case "depth":
            return ByDepth()
        case "in-degree":
            return ByInDegree()
        case "patterns":
            return ByPattern(config.order_patterns)
        case "random":
            return Random()
    plugin: CrawlOrder = load_plugin(config.order, "orders", CrawlOrder)
    return plugin
