"""Links and outcomes for other shards: gathered until a letter is worth its cost, or has waited for long enough.

The office puts in what the loop moves, and takes back the rows of this shard. Invariant: every row that was put in is
in a letter, or in the next `flush`.
"""

from collections import defaultdict

import numpy as np
import pyarrow as pa

from fyke.archive.division import Division
from fyke.core.batches import U64, Mask, keep, u64
from fyke.core.messages import Links, Outcomes, links_of
from fyke.core.urls import locate
from fyke.crawl.outbox import MESSAGE_ROWS
from fyke.crawl.post import columns
from fyke.crawl.post.dealings import Mail
from fyke.crawl.post.mailbag import Mailbag

LINGER_S = 0.2  # that rows wait for others to the same shard


class Outgoing:
    """Rows of agent `me` for the shards of others."""

    def __init__(self, me: int, division: Division, mailbag: Mailbag) -> None:
        self._me = me
        self._division = division
        self._mailbag = mailbag
        self._links: defaultdict[int, list[Links]] = defaultdict(list)
        self._outcomes: defaultdict[int, dict[str, list[pa.RecordBatch]]] = defaultdict(dict)  # by part
        self.rows = 0
        self._since = 0.0  # when the first of them came

    def __repr__(self) -> str:
        return f"Outgoing({self.rows} rows)"

    def put_links(self, links: Links, known_to_all: Mask, now: float) -> Links:
        """Take the rows of `links` for other shards, and for each of them the rows `known_to_all`; return those of this
        one."""
        shards = self._division.shards_of(u64(links.urls, "domain"))
        for shard in range(self._division.shards):
            mask = (shards == shard) | known_to_all
            if shard != self._me and mask.any():
                self._links[shard].append(links.keep(mask))
                self._note(int(mask.sum()), now)
        return links.keep(shards == self._me)

    def put(self, part: str, rows: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """Take the `rows` of this part of `Outcomes` for other shards; return those for this one."""
        shards = self._division.shards_of(_domains_of(rows))
        for shard in np.unique(shards[shards != self._me]).tolist():
            theirs = keep(rows, shards == shard)
            self._outcomes[shard].setdefault(part, []).append(theirs)
            self._note(theirs.num_rows, now)
        return keep(rows, shards == self._me)

    def _note(self, rows: int, now: float) -> None:
        if not self.rows:
            self._since = now
        self.rows += rows

    def due(self, now: float, *, idle: bool) -> bool:
        """Return whether it is time for a `flush`: few rows linger, unless this agent is `idle`."""
        return bool(self.rows) and (idle or self.rows >= MESSAGE_ROWS or now - self._since >= LINGER_S)

    def flush(self) -> None:
        """Put all waiting rows into letters."""
        for shard, parts in self._outcomes.items():
            if delayed := parts.pop("delayed", None):
                self._keep_outcomes(shard, {"delayed": delayed})  # before the links that they are about
        for shard, links in self._links.items():
            self._keep_links(shard, links_of(links))
        for shard, parts in self._outcomes.items():
            if parts:
                self._keep_outcomes(shard, parts)
        self._links.clear()
        self._outcomes.clear()
        self.rows = 0

    def _keep_outcomes(self, shard: int, parts: dict[str, list[pa.RecordBatch]]) -> None:
        outcomes = Outcomes(**{part: pa.concat_batches(rows) for part, rows in parts.items()})
        self._mailbag.keep(shard, Mail.OUTCOMES, columns.outcomes_sealed(outcomes))

    def _keep_links(self, shard: int, links: Links) -> None:
        if links.fixed is not None and links.fixed.any():
            self._mailbag.keep(shard, Mail.FIXED, columns.links_sealed(links.keep(links.fixed)))
            links = links.keep(~links.fixed)
        if links.urls.num_rows:
            self._mailbag.keep(shard, Mail.LINKS, columns.links_sealed(links))


def _domains_of(rows: pa.RecordBatch) -> U64:
    """Return the domains to whose shards rows of a part of `Outcomes` go: uint64[n]; of rules, the domain of their
    origin."""
    if "domain" in rows.schema.names:
        return u64(rows, "domain")
    origins = rows.column("origin").to_pylist()
    return np.array([locate(f"{origin.decode()}/").domain for origin in origins], np.uint64)
