"""What remembering costs: IRLbot's model of disk checks (Lee et al., WWW 2008, sections 4.2 to 4.5).

For those who size a machine before a crawl; nothing in the crawl calls it. An *overhead* is the bytes moved
on disk per byte of URL that comes in. Sizes are in bytes, speeds in bytes a second. `Drum` differs from the
modelled one as its module says: what it reads twice comes from the page cache, which the model does not count.
"""

from dataclasses import dataclass

BUFFER_BYTES = 256e3  # M; the paper's figures follow from decimal units


@dataclass(frozen=True, slots=True)
class Crawl:
    """What is to be crawled, with the paper's values (section 4.5) where it gives them."""

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
    def table_bytes(self) -> float:
        """2UH + pHn: twice the mean size of the table over the crawl."""
        return self.key_bytes * (2 * self.keys_at_start + self.unique_share * self.links)


def mercator_b_overhead(crawl: Crawl, ram_bytes: float) -> float:
    """Of Mercator's batch disk check with `ram_bytes` of memory; Theorem 1, equation (1)."""
    entry = crawl.key_bytes + crawl.pointer_bytes
    return 2 * crawl.table_bytes * entry / (crawl.url_bytes * ram_bytes) + 2 + crawl.unique_share


def polybot_overhead(crawl: Crawl, ram_bytes: float) -> float:
    """Of Polybot's tree of whole URLs; Theorem 1, equation (2)."""
    compressed = crawl.url_bytes * crawl.url_compression
    table = compressed * (2 * crawl.keys_at_start + crawl.unique_share * crawl.links)
    entry = crawl.url_bytes + 4 * crawl.pointer_bytes
    return 2 * table * entry / (crawl.url_bytes * ram_bytes) + crawl.unique_share


def drum_overhead(crawl: Crawl, ram_bytes: float, disk_bytes: float, buffer_bytes: float = BUFFER_BYTES) -> float:
    """Of DRUM with `disk_bytes` for buckets and a buffer `buffer_bytes` for each open file; Theorem 2, equation (5)."""
    key, url = crawl.key_bytes, crawl.url_bytes
    entry = key + crawl.pointer_bytes
    if ram_bytes**2 < 8 * buffer_bytes * disk_bytes * entry / (key + url):
        quadratic = 8 * buffer_bytes * entry * crawl.table_bytes / (url * ram_bytes**2)
    else:
        quadratic = (key + url) * crawl.table_bytes / (url * disk_bytes)
    return quadratic + least_overhead(crawl)


def least_overhead(crawl: Crawl) -> float:
    """Of the best method that keeps both keys and URLs on disk: 2 + p + 2H/b; section 4.4."""
    return 2 + crawl.unique_share + 2 * crawl.key_bytes / crawl.url_bytes


def optimal_disk_bytes(crawl: Crawl, ram_bytes: float, buffer_bytes: float = BUFFER_BYTES) -> float:
    """The space for buckets that memory can just fill; equation (6)."""
    entry = crawl.key_bytes + crawl.pointer_bytes
    return ram_bytes**2 * (crawl.key_bytes + crawl.url_bytes) / (8 * buffer_bytes * entry)


def sustained_pages_s(crawl: Crawl, overhead: float, disk_bytes_s: float) -> float:
    """Pages a second that a disk of `disk_bytes_s` keeps up with; Theorem 3, equation (7)."""
    return disk_bytes_s / (overhead * crawl.url_bytes * crawl.links_per_page)
