"""Links and outcomes for other shards: gathered until a letter is worth its cost, or has waited for long enough.

The office puts in what the loop moves, and takes back what is for this shard. Invariant: what was put in is in a
letter, or in the next `flush`.
"""

from collections import defaultdict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.archive.division import Division
from fyke.core.batches import Mask, keep, u64
from fyke.core.messages import NONE_ENDED, NONE_LEARNED, NONE_PUT_OFF, Links, Outcomes, links_of
from fyke.core.urls import locate
from fyke.crawl.mail import MESSAGE_ROWS
from fyke.crawl.post import columns
from fyke.crawl.post.dealings import Mail
from fyke.crawl.post.mailbag import Mailbag

LINGER_S = 0.2  # that links and outcomes wait for others to the same shard


class Outgoing:
    """What the agent `me` has for the shards of others."""

    def __init__(self, me: int, division: Division, mailbag: Mailbag) -> None:
        self._me = me
        self._division = division
        self._mailbag = mailbag
        self._links: defaultdict[int, list[Links]] = defaultdict(list)
        self._ended: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._learned: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._put_off: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        self.rows = 0  # of all these
        self._since = 0.0  # when the first of them came

    def __repr__(self) -> str:
        return f"Outgoing({self.rows} rows)"

    def put_links(self, links: Links, known_to_all: Mask, now: float) -> Links:
        """Take what of `links` is for other shards, and for each of them the rows that are `known_to_all`; returns
        those of this shard."""
        shards = self._division.shards_of(u64(links.urls, "domain"))
        for shard in range(self._division.shards):
            mask = (shards == shard) | known_to_all
            if shard != self._me and mask.any():
                self._links[shard].append(Links(keep(links.urls, mask), links.sources[mask]))
                self._note(int(mask.sum()), now)
        ours = shards == self._me
        return Links(keep(links.urls, ours), links.sources[ours])

    def put_ended(self, ended: pa.RecordBatch, shards: npt.NDArray[np.int64], now: float) -> pa.RecordBatch:
        """Take the rows of `ended` whose `shards` are others; returns those of this one."""
        for shard in np.unique(shards[shards != self._me]).tolist():
            rows = keep(ended, shards == shard)
            self._ended[shard].append(rows)
            self._note(rows.num_rows, now)
        return keep(ended, shards == self._me)

    def put_off(self, visits: pa.RecordBatch, shards: npt.NDArray[np.int64], now: float) -> pa.RecordBatch:
        """The same for visits that come back."""
        for shard in np.unique(shards[shards != self._me]).tolist():
            rows = keep(visits, shards == shard)
            self._put_off[shard].append(rows)
            self._note(rows.num_rows, now)
        return keep(visits, shards == self._me)

    def put_learned(self, learned: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """The same for rules."""
        domains = [locate(f"{origin.decode()}/").domain for origin in learned.column("origin").to_pylist()]
        shards = self._division.shards_of(np.array(domains, np.uint64))
        for shard in np.unique(shards[shards != self._me]).tolist():
            self._learned[shard].append(keep(learned, shards == shard))
            self._note(1, now)
        return keep(learned, shards == self._me)

    def _note(self, rows: int, now: float) -> None:
        if not self.rows:
            self._since = now
        self.rows += rows

    def due(self, now: float, *, idle: bool) -> bool:
        """Whether it is time for a `flush`: what is little lingers, unless this agent is `idle`."""
        return bool(self.rows) and (idle or self.rows >= MESSAGE_ROWS or now - self._since >= LINGER_S)

    def flush(self) -> None:
        """Put all that waits into letters."""
        for shard, links in self._links.items():
            self._mailbag.keep(shard, Mail.LINKS, columns.links_sealed(links_of(links)))
        for shard in self._ended.keys() | self._learned.keys() | self._put_off.keys():
            ended, learned, put_off = self._ended[shard], self._learned[shard], self._put_off[shard]
            outcomes = Outcomes(
                pa.concat_batches(ended) if ended else NONE_ENDED,
                pa.concat_batches(learned) if learned else NONE_LEARNED,
                pa.concat_batches(put_off) if put_off else NONE_PUT_OFF,
            )
            self._mailbag.keep(shard, Mail.OUTCOMES, columns.outcomes_sealed(outcomes))
        for waiting in (self._links, self._ended, self._learned, self._put_off):
            waiting.clear()
        self.rows = 0
