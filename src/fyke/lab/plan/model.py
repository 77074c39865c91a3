"""The cost of remembering: IRLbot's model of disk checks and budgets (Lee et al., WWW 2008, sections 4.2 to 4.5, 6.2).

`fyke.lab.plan` calls it, to size a machine before a crawl; nothing in the crawl does. An *overhead* is the bytes
moved on disk per byte of incoming URL. Sizes are in bytes, speeds in bytes a second. `Drum` differs from the modelled
one as its module says: the data it reads twice comes from the page cache, which the model does not count.

Invariant: each function is the equation it cites; the tests compare it with every figure that the paper prints of it.
"""

import math
from dataclasses import dataclass

BUFFER_BYTES = 256e3  # M, for each open file; the paper's figures follow from decimal units
READ_BYTES = 32e6  # Delta, the least bucket that is read efficiently


@dataclass(frozen=True, slots=True)
class Workload:
    """The crawl in numbers, with the paper's values (section 4.5) as defaults."""

    pages: float  # N
    links_per_page: float = 59.0  # l
    unique_share: float = 1 / 9  # p
    keys_at_start: float = 100e6  # U
    url_bytes: float = 110.0  # b
    key_bytes: float = 8.0  # H
    pointer_bytes: float = 4.0  # P
    url_compression: float = 0.05  # q, of Polybot's URLs; not in the text, but Table 2 follows from it

    @property
    def links(self) -> float:
        """n, the URLs that are checked."""
        return self.links_per_page * self.pages

    @property
    def entry_bytes(self) -> float:
        """H + P: a key, and the pointer to its URL."""
        return self.key_bytes + self.pointer_bytes

    @property
    def table_bytes(self) -> float:
        """2UH + pHn: twice the mean size of the table over the crawl."""
        return self.key_bytes * (2 * self.keys_at_start + self.unique_share * self.links)


def mercator_b_overhead(crawl: Workload, ram_bytes: float) -> float:
    """Return the overhead of Mercator's batch disk check with `ram_bytes` of memory; Theorem 1, equation (1)."""
    return 2 * crawl.table_bytes * crawl.entry_bytes / (crawl.url_bytes * ram_bytes) + 2 + crawl.unique_share


def polybot_overhead(crawl: Workload, ram_bytes: float) -> float:
    """Return the overhead of Polybot's tree of whole URLs; Theorem 1, equation (2)."""
    compressed = crawl.url_bytes * crawl.url_compression
    table = compressed * (2 * crawl.keys_at_start + crawl.unique_share * crawl.links)
    entry = crawl.url_bytes + 4 * crawl.pointer_bytes
    return 2 * table * entry / (crawl.url_bytes * ram_bytes) + crawl.unique_share


def drum_overhead(crawl: Workload, ram_bytes: float, disk_bytes: float) -> float:
    """Return the overhead of DRUM with `disk_bytes` of buckets; Theorem 2, equation (5)."""
    key, url = crawl.key_bytes, crawl.url_bytes
    entry = key + crawl.pointer_bytes
    if ram_bytes**2 < 8 * BUFFER_BYTES * disk_bytes * entry / (key + url):
        quadratic = 8 * BUFFER_BYTES * entry * crawl.table_bytes / (url * ram_bytes**2)
    else:
        quadratic = (key + url) * crawl.table_bytes / (url * disk_bytes)
    return quadratic + least_overhead(crawl)


def least_ram_bytes(crawl: Workload) -> float:
    """Return the least memory for which Theorem 2 holds: with less, no bucket fills a read. 2 Delta (1 + P/H)."""
    return 2 * READ_BYTES * (1 + crawl.pointer_bytes / crawl.key_bytes)


def least_overhead(crawl: Workload) -> float:
    """Return the overhead of the best method that keeps both keys and URLs on disk: 2 + p + 2H/b; section 4.4."""
    return 2 + crawl.unique_share + 2 * crawl.key_bytes / crawl.url_bytes


def optimal_disk_bytes(crawl: Workload, ram_bytes: float) -> float:
    """Return the space for buckets that memory can just fill; equation (6)."""
    return ram_bytes**2 * (crawl.key_bytes + crawl.url_bytes) / (8 * BUFFER_BYTES * crawl.entry_bytes)


def sufficient_ram_bytes(crawl: Workload, disk_bytes: float) -> float:
    """Return the memory that can just fill `disk_bytes` of buckets; equation (6) solved for R."""
    return math.sqrt(8 * BUFFER_BYTES * disk_bytes * crawl.entry_bytes / (crawl.key_bytes + crawl.url_bytes))


def sustained_pages_s(crawl: Workload, overhead: float, disk_bytes_s: float) -> float:
    """Return the pages a second that a disk of `disk_bytes_s` keeps up with; Theorem 3, equation (7)."""
    return disk_bytes_s / (overhead * crawl.url_bytes * crawl.links_per_page)


@dataclass(frozen=True, slots=True)
class Budgets:
    """A crawl under domain budgets, with the paper's values (section 6.2) as defaults."""

    pages: float  # N
    pages_s: float = 3_100.0  # S
    unique_links_per_page: float = 6.5  # L; Theorems 1 to 3 also count the repeated links
    url_bytes: float = 110.0  # b
    mean_budget_pages: float = 11.0  # E[B]
    domains: float = 33e6  # V, seen in one pass through the URLs over budget

    @property
    def passes(self) -> float:
        """alpha_N: how often all budgets together go into the crawl, at least 1; equation (9)."""
        return max(1.0, self.pages / (self.mean_budget_pages * self.domains))


def naive_budget_bytes_s(budgets: Budgets) -> float:
    """Return the least disk speed if one queue holds all URLs over budget and is reread; Theorem 4, equation (8)."""
    return 2 * budgets.pages_s * budgets.url_bytes * budgets.passes * (budgets.unique_links_per_page - 1)


def beast_bytes_s(budgets: Budgets) -> float:
    """Return the least disk speed for BEAST's doubling queues; Theorem 5, equation (10)."""
    passes = budgets.passes
    reads = 2 * passes / (1 + passes) * (budgets.unique_links_per_page - 1) + 1
    return 2 * budgets.pages_s * budgets.url_bytes * reads


def beast_limit_bytes_s(budgets: Budgets) -> float:
    """Return the speed that BEAST never exceeds, however large the crawl: 2Sb(2L - 1), Theorem 5's limit."""
    return 2 * budgets.pages_s * budgets.url_bytes * (2 * budgets.unique_links_per_page - 1)


def beast_queues(budgets: Budgets) -> int:
    """Return the number of queues in the last stage of the crawl; equation (11)."""
    return 1 << (math.ceil(math.log2(budgets.passes + 1)) - 1)
