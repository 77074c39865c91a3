"""Is a key in a table, as far as memory knows? While the keys are few, it does: of another nothing need be read.

A page may name thousands of hosts that nobody has met, and to look each up in an SQLite table takes 6 us.
"""

from collections.abc import Iterable
from itertools import islice

MOST_KEYS = 1 << 15  # 5 MB
ANY = -1  # in place of how many are held: any key may be in the table


class FewKeys:
    """The keys of a table's rows. Invariant: a key that was put is one that may be there."""

    def __init__(self, keys: Iterable[int], most: int) -> None:
        """At most `most` of them are held; of more, none is."""
        self._most = most
        self._keys: set[int] | None = set(islice(keys, most + 1))
        self._let_go()

    def __repr__(self) -> str:
        return f"FewKeys({'too many' if self._keys is None else len(self._keys)})"

    def __contains__(self, key: int) -> bool:
        """Whether `key` may be in the table."""
        return self._keys is None or key in self._keys

    def add(self, key: int) -> None:
        """A row with this `key` is in the table, or is to be."""
        if self._keys is not None:
            self._keys.add(key)
            self._let_go()

    def _let_go(self) -> None:
        if self._keys is not None and len(self._keys) > self._most:
            self._keys = None
