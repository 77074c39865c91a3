"""The number of sitemaps that the indexes of each host have named: a bound on what one host may have read.

Asked by `fyke.harvest.binder` for each page that names some. Bounded: `hosts` are counted at a time.
"""

from collections import Counter
from collections.abc import Mapping

DEEPEST_SITEMAP = 3  # indexes above a sitemap; sitemaps.org allows one
MOST_SITEMAPS = 50_000  # named by all indexes of one host
INDEXING_HOSTS = 10_000  # counted at a time


class NamedSitemaps:
    """A number by the key of each host, so that no chain of indexes is endless. Beyond `hosts`, those that named few
    are forgotten."""

    def __init__(self, saved: Mapping[str, int], most: int = MOST_SITEMAPS, hosts: int = INDEXING_HOSTS) -> None:
        self._named = Counter({int(host): count for host, count in saved.items()})
        self._most = most
        self._hosts = hosts

    def admitted(self, host: int, found: int, level: int) -> int:
        """Return how many of the next `found` may be read. `level` indexes lie between them and a robots.txt, seed or
        page."""
        if level > DEEPEST_SITEMAP:
            return 0
        admitted = min(found, max(0, self._most - self._named[host]))
        self._named[host] += admitted
        if len(self._named) > self._hosts:
            self._named = Counter(dict(self._named.most_common(self._hosts // 2)))
        return admitted

    def clear(self) -> None:
        """Count anew, because all indexes are read again."""
        self._named.clear()

    def state(self) -> dict[str, int]:
        """Return what a checkpoint records."""
        return {str(host): count for host, count in self._named.items()}
