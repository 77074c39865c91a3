"""URL-seen, as crawlers have built it: the structures of IRLbot's Table 1, and what people would use today.

Each file holds one structure behind `UrlSeen`, small and faithful, and says where it is simplified. They are here
to be measured beside `fyke.disk.Drum` on the same stream of links (`url_seen.stream`) with the same memory, and
to be held to the same law: what comes out are the links a plain set would call new, each once.

The law is one for all; only Bloom filters may break it, and only by losing URLs.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from fyke.core.batches import U64

Texts = Callable[[], pa.BinaryArray]


class UrlSeen(Protocol):
    """Made with a directory, the bytes of memory it may use, and how many keys it will hold in the end."""

    filled_by: Literal["key", "text"]  # the order in which a table is filled fastest
    persistent: bool  # whether another process finds it again in its directory

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None: ...

    def fill(self, keys: U64, texts: Texts) -> None:
        """Remember links that are new, handed in sorted; `texts` makes their URLs, if they are needed at all."""

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        """Take links in, and give those that are known by now to be new: of this call or of earlier ones."""

    def finish(self) -> Iterator[pa.BinaryArray]:
        """The new links that are still owed."""

    def close(self) -> None:
        """Write what must last, and give files back."""
