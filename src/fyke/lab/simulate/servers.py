"""How the virtual servers answer: from which address, how fast, how much, or not at all.

`VirtualWeb` calls it for each batch of visits that begins. Most small domains share addresses, as on shared hosting;
the fullest address has thousands of hosts. Giants and farms have addresses of their own.

Invariant: the answer to a visit depends on its URL and the time, never on earlier visits.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fyke.lab.simulate.chance import F64, I64, dice, high, low, spread
from fyke.lab.simulate.domain_sizes import DomainSizes
from fyke.lab.simulate.link_targets import PageNumbers
from fyke.lab.simulate.spec import VirtualWebSpec

_ADDRESSES, _HEALTH, _SPEED, _TIMES = 4, 5, 6, 7
SHARED_SHARE = 0.7  # of honest domains, on shared hosting
DOMAINS_PER_SHARED_ADDRESS = 40
OWN_ADDRESSES = 64  # of each giant
FARM_ADDRESSES = 64  # of each farm
TIME_SIGMA, SIZE_SIGMA = 0.5, 1.0
CONNECT_TIMEOUT_S = 15.0
REFUSAL_S = 0.05
_KIND = 1 << 40  # keeps the numbers of shared, own, giant and farm addresses apart


class VisitEnd(IntEnum):
    """How a visit ends."""

    PAGE = 0
    WEARY = 1  # 503
    DEAD = 2  # no answer to a connect


class ServerAnswers(NamedTuple):
    """The answers to n visits."""

    end: npt.NDArray[np.uint8]  # a `VisitEnd`
    duration_s: F64
    size_bytes: I64


class VirtualServers:
    """The servers of the web that `spec` describes; time begins at `start`."""

    def __init__(self, spec: VirtualWebSpec, domains: DomainSizes, start: float) -> None:
        self._spec = spec
        self._domains = domains
        self._weary_until = start + spec.weary_s
        self._shared = max(1, spec.domains // DOMAINS_PER_SHARED_ADDRESS)

    def addresses(self, domain: I64, host: I64) -> I64:
        """Return a number for each host's address: int64[n]."""
        chance = dice(self._spec.seed, _ADDRESSES, domain)
        shared = (high(chance) ** 2 * self._shared).astype(np.int64)  # low addresses get the most domains
        address = np.where(low(chance) < SHARED_SHARE, shared, _KIND + domain)
        giant = np.isin(domain, self._domains.giants)
        address[giant] = 2 * _KIND + domain[giant] * OWN_ADDRESSES + host[giant] % OWN_ADDRESSES
        farm = (domain - self._domains.honest) // max(1, self._spec.farm_domains)
        spam = self._domains.is_spam(domain)
        return np.where(spam, 3 * _KIND + farm * FARM_ADDRESSES + host % FARM_ADDRESSES, address)

    def answers(self, pages: PageNumbers, host: I64, now: F64 | float) -> ServerAnswers:
        """Return the answers to visits that begin at `now`."""
        spec = self._spec
        rolls = dice(spec.seed, _TIMES, *pages)
        slow = high(dice(spec.seed, _SPEED, pages.domain)) < spec.slow_share
        duration_s = np.where(slow, spec.slow_download_s, spec.download_s) * spread(rolls, TIME_SIGMA)
        size_bytes = spec.page_bytes * spread(rolls << np.uint64(12), SIZE_SIGMA)
        end = self._ends(pages.domain, host, now)
        duration_s[end == VisitEnd.WEARY] = REFUSAL_S
        duration_s[end == VisitEnd.DEAD] = CONNECT_TIMEOUT_S
        size_bytes[end != VisitEnd.PAGE] = 0
        return ServerAnswers(end, duration_s, size_bytes.astype(np.int64))

    def _ends(self, domain: I64, host: I64, now: F64 | float) -> npt.NDArray[np.uint8]:
        spec = self._spec
        chance = high(dice(spec.seed, _HEALTH, domain, host))
        chance[self._domains.is_spam(domain)] = 1.0
        end = np.full(len(domain), VisitEnd.PAGE, np.uint8)
        end[(chance < spec.dead_share + spec.weary_share) & (now < self._weary_until)] = VisitEnd.WEARY
        end[chance < spec.dead_share] = VisitEnd.DEAD
        return end
