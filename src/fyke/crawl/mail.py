"""What is on its way to the frontier: links and outcomes, gathered until a message is worth its cost.

The loop puts in what the harvest found, page by page, and takes out messages of thousands of rows: a message of
64 rows costs ten times as much a row as one of 4,096. Most links repeat, so a bounded cache stands in front
(Mercator's cache of popular URLs): a link that was sent lately is not sent again, unless it is the first from
this domain to that one, since STAR counts who links to whom.

The filters see a link only once then. So whether a link is wanted may depend on its URL, its kind and its depth,
and on nothing else (`fyke.core.plugins.UrlFilter`); and when the scope grows, the cache is emptied.

Invariant: what was put in is in the next messages, or was in an earlier one with the same URL, kind and depth.
"""

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import Protocol

import numpy as np
import pyarrow as pa

from fyke.core.batches import EMPTY, Kind, url_batch
from fyke.core.messages import Links, Outcomes, Rules, ended_batch, learned_batch, links_of
from fyke.core.outcomes import Outcome
from fyke.core.urls import Locator
from fyke.core.visits import Visit

MESSAGE_ROWS = 4096  # links, enough for a message
MOST_ENDED = 256  # outcomes, the same
_KEY, _DOMAIN = itemgetter(1), itemgetter(3)


class LinkCache:
    """Links sent lately, about `limit` of them."""

    def __init__(self, limit: int, *, by_depth: bool) -> None:
        """`by_depth`: whether the same link is another one at another depth."""
        self._limit = limit
        self._by_depth = by_depth
        self._keys: dict[tuple[int, int], set[int]] = {}  # by kind and depth
        self._targets: dict[int, set[int]] = {}  # domains that pages of a domain link to
        self._held = 0

    def new(self, found: Sequence[Locator], *, domain: int, depth: int, kind: int) -> Sequence[Locator]:
        """Those of `found`, on a page of `domain`, that must be sent."""
        if self._held > self._limit:
            self.clear()
        keys = self._keys.setdefault((kind, depth if self._by_depth else 0), set())
        targets = self._targets.setdefault(domain, set())
        new_domains = set(map(_DOMAIN, found)) - targets
        if not new_domains and keys.issuperset(map(_KEY, found)):
            return ()
        fresh = [at for at in found if at[1] not in keys or at[3] in new_domains]
        self._held += len(new_domains) - len(keys)
        targets |= new_domains
        keys.update(map(_KEY, fresh))
        self._held += len(keys)
        return fresh

    def clear(self) -> None:
        """Forget all: every link is sent again."""
        self._keys.clear()
        self._targets.clear()
        self._held = 0


class Outbox:
    """Messages for the frontier in the making."""

    def __init__(self, cache: LinkCache) -> None:
        self._cache = cache
        self._found: list[tuple[Sequence[Locator], int, int, int, int]] = []  # links; via, source, depth, kind
        self._rows = 0
        self._batches: list[Links] = []
        self._ended: list[tuple[Visit, Outcome]] = []
        self._learned: list[tuple[str, Rules, float]] = []
        self.links = 0  # ever put in, sent or not

    def __repr__(self) -> str:
        return f"Outbox({self._rows} links, {len(self._ended)} outcomes)"

    @property
    def waiting(self) -> int:
        """Links that were not taken out yet."""
        return self._rows

    @property
    def full(self) -> bool:
        """Whether there is enough for a message, or something that is waited for."""
        return self._rows >= MESSAGE_ROWS or len(self._ended) >= MOST_ENDED or bool(self._learned)

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._rows or self._ended or self._learned)

    def put_links(self, found: Sequence[Locator], *, via: int, domain: int, depth: int, kind: int) -> None:
        """The page with key `via`, of `domain` (0 for none), links to `found`, `depth` links from a seed."""
        self.links += len(found)
        if kind == Kind.SEED:  # where a seed redirects to: the scope grows
            self._cache.clear()
        fresh = self._cache.new(found, domain=domain, depth=depth, kind=kind)
        if fresh:
            self._found.append((fresh, via, domain, depth, kind))
            self._rows += len(fresh)

    def put_columns(self, links: Links) -> None:
        """Links that are columns already."""
        self.links += links.urls.num_rows
        self._batches.append(links)
        self._rows += links.urls.num_rows

    def put_ended(self, visit: Visit, outcome: Outcome) -> None:
        """`visit` is over, and all that came of it was handed on."""
        self._ended.append((visit, outcome))

    def put_learned(self, origin: str, rules: Rules, until: float) -> None:
        """What the robots.txt of `origin` says until `until` (unix seconds)."""
        self._learned.append((origin, rules, until))

    def take_links(self) -> Links:
        """All links that wait, as one message."""
        batches, self._batches, self._rows = self._batches, [], 0
        if self._found:
            groups, self._found = self._found, []
            found, *columns = zip(*groups, strict=True)
            counts = [len(group) for group in found]
            via, source, depth, kind = (np.repeat(np.array(column, np.uint64), counts) for column in columns)
            urls = url_batch(list(chain.from_iterable(found)), via=via, depth=depth, kind=kind)
            batches.append(Links(urls, source))
        return links_of(batches)

    def take_outcomes(self) -> Outcomes:
        """All outcomes that wait, as one message."""
        outcomes = Outcomes(ended_batch(self._ended), learned_batch(self._learned))
        self._ended, self._learned = [], []
        return outcomes

    def forget_links(self) -> None:
        """The scope grew: links sent lately are sent again."""
        self._cache.clear()


class Post(Protocol):
    """What takes out of what the loop moves what is for other agents."""

    @property
    def lent(self) -> bool: ...

    @property
    def quiet(self) -> bool: ...

    def rules_room(self, here: int) -> int: ...

    def post(self, links: Links, outcomes: Outcomes, now: float) -> tuple[Links, Outcomes]: ...

    def route(self, visits: pa.RecordBatch, now: float) -> pa.RecordBatch: ...

    def refuse(self, visits: pa.RecordBatch) -> pa.RecordBatch: ...

    def flush(self) -> None: ...

    def send(self, now: float, *, idle: bool) -> None: ...

    def owns(self, address: str) -> bool: ...

    def own_seeds(self, seeds: Sequence[Locator]) -> Sequence[Locator]: ...

    def give_back(self, urls: pa.RecordBatch, now: float) -> pa.RecordBatch: ...

    def block(self, host: int) -> pa.RecordBatch: ...

    def unblock(self, host: int) -> None: ...

    def close(self) -> None: ...


class Alone:
    """The post of a crawl with one agent (`fyke.crawl.post` has that of many): there is nobody else."""

    lent = False
    quiet = True

    def rules_room(self, here: int) -> int:
        """How many more origins may be asked for their rules."""
        return here

    def post(self, links: Links, outcomes: Outcomes, now: float) -> tuple[Links, Outcomes]:
        """All is for the shard that is here."""
        return links, outcomes

    def route(self, visits: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """All are made here."""
        return visits

    def refuse(self, visits: pa.RecordBatch) -> pa.RecordBatch:
        """All hosts are known here."""
        return visits

    def flush(self) -> None:
        """Nothing waits."""

    def send(self, now: float, *, idle: bool) -> None:
        """Nothing goes out."""

    def owns(self, address: str) -> bool:
        """Every address is asked from here."""
        return True

    def own_seeds(self, seeds: Sequence[Locator]) -> Sequence[Locator]:
        """All are of the shard that is here."""
        return seeds

    def give_back(self, urls: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """All are of the shard that is here."""
        return urls

    def block(self, host: int) -> pa.RecordBatch:
        """No visit waits here."""
        return EMPTY

    def unblock(self, host: int) -> None:
        """No visit waits here."""

    def close(self) -> None:
        """Nothing is open."""
