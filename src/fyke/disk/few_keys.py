"""May a key be in a table? While the table has few keys, memory holds them all, and no other key need be looked up.

A page may name thousands of unknown hosts, and looking up each in an SQLite table takes 6 us.
"""

from collections.abc import Iterable
from itertools import islice

MOST_KEYS = 1 << 15  # 5 MB
ANY = -1  # in place of the number of keys held: any key may be in the table


class FewKeys:
    """The keys of a table's rows. Invariant: every key in the table is `in` it."""

    def __init__(self, keys: Iterable[int], most: int) -> None:
        """Hold `keys` if there are at most `most`, and no key if there are more."""
        self._most = most
        self._keys: set[int] | None = set(islice(keys, most + 1))
        self._let_go()

    def __repr__(self) -> str:
        return f"FewKeys({'too many' if self._keys is None else len(self._keys)})"

    def __contains__(self, key: int) -> bool:
        """Return whether `key` may be in the table."""
        return self._keys is None or key in self._keys

    def add(self, key: int) -> None:
        """Add the `key` of a row that is in the table, or will be."""
        if self._keys is not None:
            self._keys.add(key)
            self._let_go()

    def _let_go(self) -> None:
        if self._keys is not None and len(self._keys) > self._most:
            self._keys = None
