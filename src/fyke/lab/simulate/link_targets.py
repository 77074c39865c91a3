"""Where the links of a virtual page lead.

- Honest pages link to navigation (home page and sections, which every page repeats), to deeper pages of the site, to
  pages met before, and to other domains: by Zipf's law over their popularity, to the home page or any page. Each page
  except the home page is below one with a lower number, so all of a site can be reached. A few outward links lead into
  a spam farm.
- Spam pages link to never-seen pages on never-seen hosts of their own domain and of other domains of their farm, to
  home pages of the farm, and to honest domains as camouflage. Every page of a farm brings more of these, without end.

`VirtualWeb` calls it. Invariant: every page has `links_per_page` links, and they are the same each time.
"""

import math
from typing import NamedTuple

import numpy as np

from fyke.core.batches import U64
from fyke.core.mixing import mixed
from fyke.lab.simulate.chance import F64, I64, dice, dice_each, high, low
from fyke.lab.simulate.domain_sizes import DomainSizes
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.texts import MOST_PAGES

_LINKS, _SPAMMED = 3, 8
SECTIONS = 12  # pages at the top of a site that its navigation leads to
_ENTRY_BITS = np.uint64(0xFFFF)


class PageNumbers(NamedTuple):
    """Pages by number of the domain and number within it: int64[...] each."""

    domain: I64
    page: I64


class LinkStructure:
    """The links of the web that `spec` describes, over its `domains`."""

    def __init__(self, spec: VirtualWebSpec, domains: DomainSizes) -> None:
        self._spec = spec
        self._domains = domains
        self._entry = np.uint64(round(spec.spam_entry * 2**16) if spec.spam_domains else 0)

    def targets(self, pages: PageNumbers) -> tuple[I64, PageNumbers]:
        """Return rows of `pages`, honest ones first, and the pages they link to: int64[n], int64[n, links_per_page]."""
        spam = self._domains.is_spam(pages.domain)
        rows = np.concatenate([np.flatnonzero(~spam), np.flatnonzero(spam)])
        split = len(rows) - int(spam.sum())
        domain = np.empty((len(rows), self._spec.links_per_page), np.int64)
        page = np.empty_like(domain)
        for part, fill in ((slice(0, split), self._honest), (slice(split, None), self._spam)):
            some = rows[part]
            if len(some):
                fill(PageNumbers(pages.domain[some], pages.page[some]), PageNumbers(domain[part], page[part]))
        return rows, PageNumbers(domain, page)

    # --- honest pages

    def _honest(self, sources: PageNumbers, into: PageNumbers) -> None:
        spec = self._spec
        size = self._domains.pages[sources.domain].astype(np.int64)
        rolls = dice_each(dice(spec.seed, _LINKS, *sources), spec.links_per_page)
        outward = slice(0, spec.outward_links)
        deeper = slice(outward.stop, outward.stop + math.ceil(spec.branching))
        inward = slice(deeper.stop, spec.links_per_page)
        abroad = PageNumbers(into.domain[:, outward], into.page[:, outward])
        self._outward(rolls[:, outward], abroad)
        if self._entry:
            self._enter(rolls[:, outward], sources.domain, abroad)
        into.domain[:, deeper.start :] = sources.domain[:, None]
        into.page[:, inward] = _known(rolls[:, inward], sources.page, size)
        below = _below(sources.page, spec.branching)
        into.page[:, deeper] = np.where(below < size[:, None], below, 0)

    def _outward(self, rolls: U64, into: PageNumbers) -> None:
        """Fill `into` with links to other domains, by popularity; `rolls` is uint64[n, k]."""
        into.domain[:] = domain = self._popular(low(rolls))
        into.page[:] = self._anywhere(high(rolls), domain)

    def _enter(self, rolls: U64, sources: I64, into: PageNumbers) -> None:
        """Put in the links that farms left on honest pages; all of one domain lead to one farm domain."""
        spec = self._spec
        mark = dice(spec.seed, _SPAMMED, sources)
        spammed = np.flatnonzero(high(mark) < spec.spammed_share)
        rows, columns = np.nonzero((rolls[spammed] & _ENTRY_BITS) < self._entry)
        rows = spammed[rows]
        into.domain[rows, columns] = self._domains.honest + _chosen(low(mark[rows]), spec.spam_domains)
        into.page[rows, columns] = _chosen(low(mixed(rolls[rows, columns])), 2**32)

    def _popular(self, chance: F64) -> I64:
        """Return domains by Zipf's law: the inverse of its cumulative distribution, as if ranks were continuous."""
        count, exponent = float(self._spec.domains), self._spec.popularity
        if exponent == 1.0:
            rank = (count + 1) ** chance
        else:
            power = 1.0 - exponent
            rank = (1.0 + chance * ((count + 1) ** power - 1.0)) ** (1.0 / power)
        return np.minimum(rank.astype(np.int64) - 1, self._spec.domains - 1)

    def _anywhere(self, chance: F64, domain: I64) -> I64:
        """Return the home page of each domain, or with probability `deep_share` any page of it."""
        deep = self._spec.deep_share
        if not deep:
            return np.zeros(chance.shape, np.int64)
        place = np.maximum((chance - (1.0 - deep)) / deep, 0.0)
        return (place * self._domains.pages[domain]).astype(np.int64)

    # --- spam pages

    def _spam(self, sources: PageNumbers, into: PageNumbers) -> None:
        spec = self._spec
        rolls = dice_each(dice(spec.seed, _LINKS, *sources), spec.links_per_page)
        own = slice(0, math.ceil(spec.spam_branching))
        farm = slice(own.stop, own.stop + spec.spam_cousins)
        outward = slice(farm.stop, farm.stop + spec.spam_camouflage)
        homes = slice(outward.stop, spec.links_per_page)
        first = self._first_of_farm(sources.domain)
        into.domain[:, own] = sources.domain[:, None]
        into.page[:, own] = _below(sources.page, spec.spam_branching) % MOST_PAGES
        into.domain[:, farm] = first[:, None] + _chosen(high(rolls[:, farm]), spec.farm_domains)
        into.page[:, farm] = (rolls[:, farm] % np.uint64(MOST_PAGES)).view(np.int64)
        self._outward(rolls[:, outward], PageNumbers(into.domain[:, outward], into.page[:, outward]))
        into.domain[:, homes] = first[:, None] + _chosen(high(rolls[:, homes]), spec.farm_domains)
        into.page[:, homes] = 0

    def _first_of_farm(self, domain: I64) -> I64:
        honest, size = self._domains.honest, self._spec.farm_domains
        return honest + (domain - honest) // size * size


def _known(rolls: U64, page: I64, size: I64) -> I64:
    """Return pages of the same site that were probably met before: top sections, or pages with a lower number."""
    chance = high(rolls)
    top = chance * np.minimum(size, SECTIONS)[:, None]
    earlier = chance * (page + 1)[:, None]
    navigation = np.arange(rolls.shape[1]) % 2 == 0
    return np.where(navigation, top, earlier).astype(np.int64)


def _below(page: I64, branching: float) -> I64:
    """Return the numbers of the pages directly below each of `page` (int64[n]): int64[n, k], 0 in unused places.

    The page above `c` is `c / branching`, rounded down, so each page except the home page is below exactly one other.
    """
    first = np.maximum(np.ceil(page * branching), 1).astype(np.int64)
    end = np.ceil((page + 1) * branching).astype(np.int64)
    numbers = first[:, None] + np.arange(math.ceil(branching))
    return np.where(numbers < end[:, None], numbers, 0)


def _chosen(chance: F64, limit: int) -> I64:
    return (chance * limit).astype(np.int64)
