"""The record of each pay-level domain: one Drum of counts, and a list of names.

STAR writes how many other domains link to a domain, BEAST how far its URLs are planned ahead, the loop how many pages
were fetched. STAR and BEAST ask for records with a batch of URLs, and get both back at a merge. The paper keeps
in-degree and budget in the same way (IRLbot, section 5.2, Figure 3). BEAST's slot is here too, and not in an array in
memory, because there is no end of domains.

Invariant: all counts only grow, so that updates add up in any order.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import U64, URLS, Kind, domain_names, keep, numbers, u64
from fyke.core.messages import OK
from fyke.disk.drum import Drum
from fyke.disk.operations import Combine, Op, Values
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

RECORD = np.dtype(
    [
        ("in_degree", "<u4"),  # other domains that link to it, each counted once
        ("urls", "<u4"),  # distinct URLs met
        ("fetched", "<u4"),  # pages that were fetched whole
        ("ended", "<u4"),  # visits that ended, whatever came of them
        ("slot", "<u8"),  # where BEAST's plan for it ends: queue number x 2^32 plus the used part of that queue
    ]
)
NAMES = pa.schema([("domain", pa.uint64()), ("name", pa.string())])


class Domains:
    """The record of every domain met, by the key of its name."""

    def __init__(self, store: Store, memory_bytes: int, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._drum = Drum(
            store,
            "domains",
            saved.get("records"),
            value=RECORD,
            aux=URLS,
            combine=Combine.ADD,
            memory_bytes=memory_bytes,
        )
        self._names = DiskQueue(store, "domain-names", NAMES, saved.get("names"))
        self._asked = int(saved.get("asked", 0))
        self._ended: list[pa.RecordBatch] = []  # visits not counted in records yet
        self._ended_rows = 0

    def __repr__(self) -> str:
        return f"Domains({len(self._drum)} domains)"

    def __len__(self) -> int:
        return len(self._drum)

    @property
    def pending(self) -> int:
        """Number of URLs and updates that wait for a merge."""
        return self._drum.pending

    @property
    def unchecked_urls(self) -> int:
        """Number of URLs that wait for the record of their domain."""
        return self._asked

    @property
    def full(self) -> bool:
        """True if enough waits for a merge."""
        return self._drum.full

    def stored(self, urls: pa.RecordBatch) -> Values:
        """Return the records [n] (dtype `RECORD`) of the domains of `urls` as of the last merge. Reads the disk."""
        return self._drum.stored(u64(urls, "domain"))

    def ask(self, urls: pa.RecordBatch) -> None:
        """Let `urls` (schema `URLS`) wait for the records of their domains."""
        self._drum.check(u64(urls, "domain"), aux=urls)
        self._asked += urls.num_rows

    def add(self, domains: U64, **counts: npt.ArrayLike) -> None:
        """Add to the records of `domains` (uint64[n]): fields of `RECORD`, each n numbers or one for all."""
        self._drum.update(domains, _records(len(domains), counts))

    def note_ended(self, ended: pa.RecordBatch, most_rows: int) -> None:
        """Note that visits ended (schema `ENDED`). They are counted once there are `most_rows`."""
        self._ended.append(ended)
        self._ended_rows += ended.num_rows
        if self._ended_rows >= most_rows:
            self.count_ended()

    def count_ended(self) -> None:
        """Count the visits that ended in the records."""
        if not self._ended:
            return
        ended = pa.concat_batches(self._ended)
        ended = ended.filter(pc.invert(ended.column("again")))  # they were counted at their first visit
        domains, places = np.unique(u64(ended, "domain"), return_inverse=True)
        pages = (numbers(ended, "outcome") == OK) & (numbers(ended, "kind") != Kind.LISTING)
        fetched = np.bincount(places, pages, len(domains)).astype(np.uint32)
        self.add(domains, ended=np.bincount(places, minlength=len(domains)), fetched=fetched)
        self._ended, self._ended_rows = [], 0

    def link(self, domains: U64, links: npt.NDArray[np.integer]) -> None:
        """Add `links` [n] linking domains to `domains` (uint64[n]); their records come out of the next merge.

        They come as rows without a URL, whose key 0 tells them from the rows of `ask`.
        """
        count = len(domains)
        keys = np.repeat(domains, 2)
        operations = np.tile(np.array([Op.UPDATE, Op.CHECK], np.uint8), count)
        values = np.repeat(_records(count, {"in_degree": links}), 2)
        self._drum.submit(keys, operations, values, _blank(2 * count))

    def merge(self) -> Iterator[tuple[pa.RecordBatch, U64, Values, int]]:
        """Yield the URLs of `ask`, their domains uint64[n], records [n] (dtype `RECORD`), and the drum's bucket."""
        self._asked = 0
        for answers in self._drum.merge():
            assert answers.aux is not None
            assert answers.values is not None
            yield answers.aux, answers.keys, answers.values, answers.bucket

    def name(self, urls: pa.RecordBatch) -> None:
        """Remember the names of the domains of `urls`, which are new."""
        domains, first = np.unique(u64(urls, "domain"), return_index=True)
        names = domain_names(urls.take(pa.array(first)))
        self._names.put(pa.record_batch([pa.array(domains), pa.array(names, pa.string())], schema=NAMES))

    def name_new(self, urls: pa.RecordBatch, domains: U64) -> None:
        """Remember the names of those of `domains` (uint64[n], the domains of `urls`) that are new. Reads the disk."""
        new = domains[self._drum.values_of(domains)["urls"] == 0]
        if len(new):
            self.name(urls.filter(pa.array(np.isin(u64(urls, "domain"), new))))

    def of(self, domain: int) -> Values | None:
        """Return the record of one domain, updates that wait included; None if it was never met. Reads the disk."""
        found, value = self._drum.get(domain)
        return value if found else None

    def in_degrees(self, domains: U64) -> npt.NDArray[np.uint32]:
        """Return how many other domains link to each of `domains` (uint64[n]), updates that wait included. Reads the
        disk."""
        unique, of = np.unique(domains, return_inverse=True)
        found: npt.NDArray[np.uint32] = self._drum.values_of(unique)["in_degree"][of]
        return found

    def unchecked(self) -> Iterator[pa.RecordBatch]:
        """Yield URLs that wait for the record of their domain."""
        for _, _, urls in self._drum.scan_pending():
            if urls is not None:
                yield keep(urls, u64(urls, "key") != 0)

    def named(self) -> Iterator[tuple[list[str], Values]]:
        """Yield names of domains with their records [n], in batches, in the order in which they were met."""
        for batch in self._names.scan():
            yield batch.column("name").to_pylist(), self._drum.values_of(u64(batch, "domain"))

    def state(self) -> dict[str, Any]:
        self.count_ended()
        return {"records": self._drum.state(), "names": self._names.state(), "asked": self._asked}

    def close(self) -> None:
        self._drum.close()
        self._names.close()


def waiting_urls(records: Values) -> npt.NDArray[np.int64]:
    """Return how many URLs of domains with these `records` [n] wait: int64[n]."""
    waiting: npt.NDArray[np.int64] = np.maximum(records["urls"].astype(np.int64) - records["ended"], 0)
    return waiting


def _records(count: int, counts: Mapping[str, npt.ArrayLike]) -> Values:
    records = np.zeros(count, RECORD)
    for name, values in counts.items():
        records[name] = values
    return records


def _blank(count: int) -> pa.RecordBatch:
    """Return `count` empty rows of the schema `URLS`."""
    columns = [
        pa.array([b""] * count, pa.binary())
        if pa.types.is_binary(field.type)
        else pa.array(np.zeros(count, field.type.to_pandas_dtype()))
        for field in URLS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=URLS)
