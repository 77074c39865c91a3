"""URL-seen, as crawlers have built it: the structures of IRLbot's Table 1, and those that people would use today.

Each file holds one structure behind `UrlSeen`, small and faithful, and says where it is simplified. They are measured
beside `fyke.disk.Drum` on the same stream of links (`url_seen.stream`) with the same memory, and held to the same
law: each link that a plain set would call new comes out, once. Only Bloom filters may break it, and only by losing
URLs.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from fyke.core.batches import U64

Texts = Callable[[], pa.BinaryArray]


class UrlSeen(Protocol):
    """A structure, made with a directory, the bytes of memory it may use, and the number of keys it will hold."""

    filled_by: Literal["key", "text"]  # the order in which a table is filled fastest
    persistent: bool  # whether another process finds it again in its directory

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None: ...

    def fill(self, keys: U64, texts: Texts) -> None:
        """Remember new links, handed in sorted; `texts` makes their URLs, if they are needed at all."""

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        """Take links in; yield links of this or earlier calls that are now known to be new."""

    def finish(self) -> Iterator[pa.BinaryArray]:
        """Yield the new links that are still owed."""

    def close(self) -> None:
        """Write everything that must last, and close the files."""
