"""The budget that a domain has earned, by how many other domains link to it.

STAR, Spam Tracking and Avoidance through Reputation: IRLbot (Lee et al., WWW 2008), section 5.2 and Figure 3. Spammers
can make hosts and pages without end, but each pay-level domain costs them. So the number of *other domains* that link
to a domain counts. The frontier hands in which domains link to which, as links come, and asks for the budgets of new
URLs. Differs from the paper:

- In-neighbours are not kept with each domain but as keys of pairs in a Drum of their own, `edges`. One check+update
  tells whether a pair is new, and a domain with a million neighbours has no longer record than another.
- The paper raises the first 10,000 of 33 million domains. Here it is the first hundredth of the domains met, and 10,000
  at most: a reputation is to be among the first of many, also in a crawl that has not met many yet.
- The ranking is kept in memory, 10,000 in-degrees of eight bytes and their domains. A budget depends on the in-degree,
  on that array and on how many domains were met.

Invariant: the in-degree of a domain is the number of distinct other domains in accepted links to it, up to what waits
for a merge; the ranking holds the highest of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import EMPTY, U64, Kind, numbers, u64, with_column
from fyke.core.mixing import GOLDEN
from fyke.core.plugins import BudgetFunction, Shares
from fyke.core.slices import Steps
from fyke.disk.drum import Drum
from fyke.disk.operations import Values
from fyke.disk.store import Store
from fyke.frontier.budgets import MOST_URLS
from fyke.frontier.domains import Domains
from fyke.frontier.sizes import SIZES, Sizes

EDGE = pa.schema([("target", pa.uint64())])
_PLACE = np.dtype([("domain", "<u8"), ("in_degree", "<u8")])


class Ranking:
    """The `sizes.ranked` domains that most others link to."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None, sizes: Sizes = SIZES) -> None:
        self._store = store
        self._most, self._met_a_place = sizes.ranked, sizes.met_a_place
        saved = state or {}
        self._file = str(saved.get("file", ""))
        self._places = store.array(self._file, _PLACE, int(saved.get("count", 0)))
        self._sorted: U64 = np.sort(self._places["in_degree"])
        self._changed = False

    def note(self, domains: U64, in_degrees: npt.NDArray[np.integer]) -> None:
        """Note that `domains` (uint64[n], distinct) have these `in_degrees` [n] now."""
        stay = self._places[~np.isin(self._places["domain"], domains)]
        come = np.zeros(len(domains), _PLACE)
        come["domain"], come["in_degree"] = domains, in_degrees
        places = np.concatenate([stay, come])
        if len(places) > self._most:
            places = places[np.argpartition(places["in_degree"], len(places) - self._most)[-self._most :]]
        self._places = places
        self._sorted = np.sort(places["in_degree"])
        self._changed = True

    def standing(self, in_degree: npt.NDArray[np.integer], met: int) -> Shares:
        """Return the share of the other first places that hold less than each `in_degree` [n]: float64[n], in [0, 1].

        `met` domains give the number of first places. With fewer than two there is nobody to stand above.
        """
        places = min(self._most, met // self._met_a_place)
        first = self._sorted[max(0, len(self._sorted) - places) :]
        below = np.searchsorted(first, in_degree.astype(np.uint64))
        return np.minimum(below / max(1, places - 1), 1.0) if places > 1 else np.zeros(len(in_degree))

    def rank(self, in_degree: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Return 1 for the highest in-degree, equal ones alike, and 0 below the ranking: int64[n]."""
        above = len(self._sorted) - np.searchsorted(self._sorted, in_degree.astype(np.uint64), side="right")
        lowest = self._sorted[0] if len(self._sorted) else np.uint64(1)
        return np.where(in_degree >= lowest, above + 1, 0)

    def state(self) -> dict[str, Any]:
        if self._changed:
            self._file = self._store.write_array("ranking", self._places, self._file)
            self._changed = False
        return {"file": self._file, "count": len(self._places)}


class Star:
    """The known part of the domain graph, and the budgets that follow from it."""

    def __init__(
        self,
        store: Store,
        domains: Domains,
        function: BudgetFunction,
        default_urls: int,
        memory_bytes: int,
        state: Mapping[str, Any] | None = None,
        sizes: Sizes = SIZES,
    ) -> None:
        saved = state or {}
        self._domains = domains
        self._function = function
        self._default = min(default_urls, MOST_URLS)
        self.failures: Counter[str] = Counter()  # batches for which the plug-in raised or gave nonsense
        self._edges = Drum(store, "edges", saved.get("edges"), aux=EDGE, memory_bytes=memory_bytes)
        self.ranking = Ranking(store, saved.get("ranking"), sizes)

    def __repr__(self) -> str:
        return f"Star({len(self._edges)} edges, {self._domains!r})"

    @property
    def edges(self) -> int:
        """Number of pairs of a domain and one that it is known to link to."""
        return len(self._edges)

    def link(self, sources: U64, targets: U64) -> None:
        """Note that pages of the domains `sources` (uint64[n]) link to pages of `targets` (uint64[n])."""
        other = (sources != targets) & (sources != 0)
        keys, first = np.unique(_pair_keys(sources[other], targets[other]), return_index=True)
        if len(keys):
            self._edges.check_update(keys, aux=pa.record_batch([pa.array(targets[other][first])], schema=EDGE))

    @property
    def full(self) -> bool:
        """True if enough pairs wait for a merge."""
        return self._edges.full

    @property
    def pending(self) -> int:
        """Number of pairs that wait for a merge."""
        return self._edges.pending

    def count(self) -> Steps[bool]:
        """Add new pairs to the in-degrees of their targets; the next `merge` ranks them. Returns whether there were
        any."""
        before = len(self._edges)
        for new in self._edges.merge_unique():
            self._domains.link(*np.unique(u64(new, "target"), return_counts=True))
            yield
        return len(self._edges) > before

    def merge(self) -> Iterator[tuple[pa.RecordBatch, Values, int]]:
        """Yield for each merged lot its URLs, with budget and in-degree filled in, their domains' records [n], and the
        bucket.

        A lot may be without a URL. All URLs of a domain come with one bucket, and buckets come one after the other.
        """
        for urls, domains, records, bucket in self._domains.merge():
            asked = u64(urls, "key") != 0
            self._rank(domains[~asked], records[~asked])
            records = records.compress(asked)
            yield self.weighed(urls.filter(pa.array(asked)), records) if asked.any() else EMPTY, records, bucket

    def _rank(self, domains: U64, records: Values) -> None:
        if len(domains):
            unique, last = np.unique(domains[::-1], return_index=True)
            self.ranking.note(unique, records["in_degree"][::-1][last])

    def weighed(self, urls: pa.RecordBatch, records: Values) -> pa.RecordBatch:
        """Return `urls` with budget and in-degree by the `records` [n] of their domains. Remembers the names of new
        domains."""
        new = records["urls"] == 0
        if new.any():
            self._domains.name(urls.filter(pa.array(new)))
        budgets = self.budgets(u64(urls, "domain"), records["in_degree"])
        seeds = numbers(urls, "kind") == Kind.SEED  # a person asked for them: no policy keeps them out
        budgets = np.where(seeds, np.maximum(budgets, self._default), budgets)
        return with_column(with_column(urls, "budget", budgets), "in_degree", records["in_degree"])

    def budgets(self, domains: U64, in_degree: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Return the URLs a round for `domains` (uint64[n]) with these in-degrees [n]: integers [n], or the default if
        the function gives no sound number."""
        degrees = in_degree.astype(np.uint64)
        standing = self.ranking.standing(degrees, len(self._domains))
        try:
            budgets = np.asarray(self._function.budgets(domains, degrees, standing)).astype(np.float64)
        except Exception:  # noqa: BLE001 - a plug-in may raise anything; it then favours nobody
            budgets = np.zeros(0)
        if budgets.shape != in_degree.shape:
            budgets = np.full(in_degree.shape, -1.0)
        sound = (budgets >= 0) & (budgets <= MOST_URLS)
        if not sound.all():
            self.failures[type(self._function).__name__] += 1
        return np.where(sound, budgets, self._default).astype(np.uint16)

    def state(self) -> dict[str, Any]:
        return {"edges": self._edges.state(), "ranking": self.ranking.state()}

    def close(self) -> None:
        self._edges.close()


def _pair_keys(sources: U64, targets: U64) -> U64:
    """Return a uniform key for each ordered pair: uint64[n]. Both are hashes; the product tells a -> b from b -> a."""
    return (sources * GOLDEN) ^ targets
