"""Where do the bodies of kept letters lie? In files of the shard's store; a file goes when all letters in it went.

A body that was just put is in memory until it was read once: most letters are sent at once and never again. Invariant:
a body in the drawer at a checkpoint is in the files that the checkpoint names.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from fyke.disk import frames
from fyke.disk.files import Appender
from fyke.disk.store import Store

FILE_BYTES = 16 << 20
MEMORY_BYTES = 16 << 20  # of unread bodies


class Drawer:
    """The bodies of the letters that a shard keeps, in the files `mail-*.seg` of its store."""

    def __init__(self, store: Store, kept: Iterable[Any]) -> None:
        """`kept` are the places of bodies that an earlier run put."""
        self._store = store
        self._letters: Counter[str] = Counter(name for name, _ in kept)  # in each file
        self._name = ""
        self._file: Appender | None = None
        self._fresh: dict[tuple[str, int], bytes] = {}
        self._fresh_bytes = 0

    def __repr__(self) -> str:
        return f"Drawer({self._letters.total()} letters in {len(self._letters)} files)"

    def put(self, body: bytes) -> list[Any]:
        """Keep `body`; return its place, which JSON can hold."""
        if self._file is None or self._file.length >= FILE_BYTES:
            self.close()
            self._name, self._file = self._store.create("mail", "seg")
        place = (self._name, self._file.length)
        for piece in frames.encode_bytes(body):
            self._file.write(piece)
        self._letters[self._name] += 1
        if self._fresh_bytes + len(body) <= MEMORY_BYTES:
            self._fresh[place] = body
            self._fresh_bytes += len(body)
        return list(place)

    def get(self, place: list[Any]) -> bytes:
        """Return the body at `place`. Raises StateDamaged."""
        name, offset = place
        body = self._fresh.pop((name, offset), None)
        if body is not None:
            self._fresh_bytes -= len(body)
            return body
        with self._store.read(name) as reader:
            return frames.decode_bytes(reader, offset)

    def drop(self, places: Iterable[list[Any]]) -> None:
        """Let go of the bodies at `places`."""
        for name, offset in places:
            body = self._fresh.pop((name, offset), b"")
            self._fresh_bytes -= len(body)
            self._letters[name] -= 1
            if not self._letters[name] and name != self._name:
                self._retire(name)

    def _retire(self, name: str) -> None:
        del self._letters[name]
        self._store.retire(name)

    def close(self) -> None:
        """Give the file back; a later body begins another."""
        if self._file is not None:
            self._file.close()
            name, self._name, self._file = self._name, "", None
            if not self._letters[name]:
                self._retire(name)
