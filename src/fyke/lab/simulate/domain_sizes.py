"""The virtual domains: number of pages and hosts of each, and which are giants or belong to a farm.

`VirtualWeb` makes them once; the modules for links and servers read them. They and the domains' keys are all memory
of the virtual web: two numbers a domain here.

Invariant: pages of an honest domain are numbered from 0, its home page, to `pages - 1`; a spam domain has no last
page.
"""

import numpy as np
import numpy.typing as npt

from fyke.lab.simulate.chance import I64, dice, high, spread
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.texts import MOST_HOSTS, MOST_PAGES

_SIZES, _HOSTS = 1, 2
_BLOCK = 1 << 16
MULTI_HOST_SHARE = 0.1  # of honest domains, with several hosts
MOST_ORDINARY_HOSTS = 64
LEAST_HOST_PAGES = 16  # of a domain with several hosts


class DomainSizes:
    """The sizes of all domains of the web that `spec` describes."""

    def __init__(self, spec: VirtualWebSpec) -> None:
        self._spec = spec
        self.honest = spec.domains
        self.pages = np.empty(spec.domains, np.uint32)
        self.hosts = np.empty(spec.domains, np.uint32)
        for start in range(0, spec.domains, _BLOCK):
            part = slice(start, min(start + _BLOCK, spec.domains))
            ranks = np.arange(part.start, part.stop, dtype=np.int64)
            self.pages[part] = self._sizes(ranks)
            self.hosts[part] = self._host_counts(ranks)
        self.giants = giants(spec)
        self.pages[self.giants] = spec.giant_pages
        self.hosts[self.giants] = min(max(1, spec.giant_pages // spec.giant_host_pages), MOST_HOSTS)

    def __repr__(self) -> str:
        return f"DomainSizes({self.honest} honest of {self.total_pages} pages, {self._spec.spam_domains} in farms)"

    @property
    def total_pages(self) -> int:
        """Number of pages of all honest domains."""
        return int(self.pages.sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.pages.nbytes + self.hosts.nbytes

    def is_spam(self, domain: I64) -> npt.NDArray[np.bool_]:
        """Return which domains belong to a farm: bool[n]."""
        return domain >= self.honest

    def host_of(self, domain: I64, page: I64) -> I64:
        """Return the number of each page's host within its domain: int64[n]."""
        spam = self.is_spam(domain)
        if not spam.any():
            return self._honest_host_of(domain, page)
        host = page // self._spec.spam_host_pages % MOST_HOSTS
        honest = np.flatnonzero(~spam)
        host[honest] = self._honest_host_of(domain[honest], page[honest])
        return host

    def _honest_host_of(self, domain: I64, page: I64) -> I64:
        """Return each page's host: a host has a stretch of pages, and most domains have one host."""
        hosts = self.hosts[domain].astype(np.int64)
        host = np.zeros_like(page)
        several = np.flatnonzero(hosts > 1)
        host[several] = page[several] * hosts[several] // self.pages[domain[several]]
        return host

    def _sizes(self, ranks: I64) -> npt.NDArray[np.uint32]:
        spec = self._spec
        popular = (spec.domains / (ranks + 1)) ** spec.size_growth
        pages = spec.size_scale * popular * spread(dice(spec.seed, _SIZES, ranks), spec.size_sigma)
        return np.clip(pages, 1, min(MOST_PAGES, 2**32 - 1)).astype(np.uint32)

    def _host_counts(self, ranks: I64) -> npt.NDArray[np.uint32]:
        rolls = dice(self._spec.seed, _HOSTS, ranks)
        chance = high(rolls)
        many = 2 + (chance / MULTI_HOST_SHARE * (MOST_ORDINARY_HOSTS - 2)).astype(np.uint32)
        filled = np.minimum(many, self.pages[ranks] // LEAST_HOST_PAGES)
        return np.where(chance < MULTI_HOST_SHARE, np.maximum(filled, 1), 1).astype(np.uint32)


def giants(spec: VirtualWebSpec) -> I64:
    """Return the numbers of the giant domains: popular ones, at growing distances."""
    ranks = np.unique((1.6 ** np.arange(1, spec.giants + 1)).astype(np.int64)) - 1
    return ranks[ranks < spec.domains]
