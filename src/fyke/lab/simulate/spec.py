"""The parameters of a virtual web, named.

The caller of a simulation (`fyke simulate`, benches, tests) gives a spec to `VirtualWeb`. A page is made of the spec
and its number alone, so the same spec is the same web after a restart.
"""

import math
from dataclasses import dataclass

from fyke.core.errors import ConfigurationError
from fyke.lab.simulate.texts import MOST_DOMAINS

GIANTS = 12
LEAST_CHANGE_DAYS, MOST_CHANGE_DAYS = 0.001, 100_000  # medians


@dataclass(frozen=True, slots=True)
class VirtualWebSpec:
    """A web of honest domains in order of falling popularity, with spam farms behind them."""

    seed: int = 1
    domains: int = 200_000  # honest ones; domain 0 is the most popular
    links_per_page: int = 15
    popularity: float = 1.1  # exponent of Zipf's law by which links choose a domain
    size_scale: float = 8.0  # median pages of the least popular domain
    size_growth: float = 0.75  # a domain's size grows with this power of domains / rank
    size_sigma: float = 1.2  # of the lognormal noise on sizes
    giants: int = GIANTS  # honest domains with millions of pages on many hosts
    giant_pages: int = 5_000_000
    giant_host_pages: int = 500  # pages on each of a giant's hosts
    branching: float = 1.25  # mean number of deeper pages of its domain that an honest page links to
    outward_share: float = 0.25  # of an honest page's links, to other domains
    deep_share: float = 0.05  # of links to other domains, to any page instead of the home page
    farms: int = 133
    farm_domains: int = 3  # domains that each farm has paid for
    spammed_share: float = 0.01  # of honest domains, open for anybody to write, with links left by a farm
    spam_entry: float = 0.9  # of such a domain's links to other domains, into that farm
    spam_branching: float = 4.0  # mean number of never-seen pages of its own domain that a spam page links to
    spam_cousins: int = 1  # never-seen pages of other domains of its farm that a spam page links to
    spam_camouflage: int = 5  # links of a spam page to honest domains
    spam_host_pages: int = 16  # pages on each of a spam domain's hosts, which never end
    dead_share: float = 0.01  # of honest hosts, without an answer to a connect
    weary_share: float = 0.01  # of honest hosts, with a 503 during the first `weary_s`
    weary_s: float = 300.0  # from the first second of the crawl
    slow_share: float = 0.05  # of domains, on slow servers
    download_s: float = 0.3  # median time of a download
    slow_download_s: float = 4.0
    page_bytes: int = 20_000  # median
    change_days: float = 0.0  # median time between changes of a page; 0: pages never change
    bursty_share: float = 0.3  # of changing pages, in bursts
    listed_share: float = 0.6  # of domains in a web that changes: the home page lists when the other pages changed

    def __post_init__(self) -> None:
        honest = self.outward_links + math.ceil(self.branching) + 2
        spam = math.ceil(self.spam_branching) + self.spam_cousins + self.spam_camouflage + 1
        if self.links_per_page < max(honest, spam):
            raise ConfigurationError(f"{self.links_per_page} links a page are too few for the kinds of links there are")
        if self.change_days and not LEAST_CHANGE_DAYS <= self.change_days <= MOST_CHANGE_DAYS:
            span = f"{LEAST_CHANGE_DAYS} to {MOST_CHANGE_DAYS:,}"
            raise ConfigurationError(f"pages that change every {self.change_days:g} days: write {span} days, or 0")
        if not 0 < self.all_domains < MOST_DOMAINS:
            raise ConfigurationError(f"{self.all_domains} domains: a virtual web has 1 to {MOST_DOMAINS - 1:,}")

    @property
    def spam_domains(self) -> int:
        """Number of domains in all farms; they are numbered after the honest ones."""
        return self.farms * self.farm_domains

    @property
    def all_domains(self) -> int:
        return self.domains + self.spam_domains

    @property
    def outward_links(self) -> int:
        """Number of links from an honest page to other domains."""
        return round(self.links_per_page * self.outward_share)
