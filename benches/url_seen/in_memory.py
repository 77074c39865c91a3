"""All keys in memory: WebCrawler (1994), UbiCrawler (2002), WebBase (2001).

IRLbot's Table 1 lists them as keeping URL-seen in RAM, whole or site by site; section 3.2 names the consequence:
"URLs that do not fit in memory are discarded".

- Faithful: a hash table, an answer at once, no disk.
- Simplified: one table instead of one a site, and 64-bit hashes instead of URLs, which flatters it.

A Python set takes some 60 to 100 bytes a key, so 512 MB hold about six million.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from fyke.core.batches import U64
from url_seen import Texts


class InMemory:
    """A set."""

    filled_by = "key"
    persistent = False

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None:
        self._seen: set[int] = set()

    def fill(self, keys: U64, texts: Texts) -> None:
        self._seen.update(keys.tolist())

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        new, seen = [], self._seen
        for place, key in enumerate(keys.tolist()):
            if key not in seen:
                seen.add(key)
                new.append(place)
        yield texts.take(pa.array(new, pa.int64()))

    def finish(self) -> Iterator[pa.BinaryArray]:
        yield from ()

    def close(self) -> None:
        self._seen.clear()
