"""Names that keys stand for, noted as they come and looked up in sorted order later.

Link analysis uses it for domains. Names go to a file in the scratch folder, most of them once; a look-up reads it
through. Bounded: memory holds the names of one look-up, and about `REMEMBERED` keys to tell repeats by.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import U64
from fyke.disk.files import writing

REMEMBERED = 1 << 18

_SCHEMA = pa.schema([("key", pa.uint64()), ("name", pa.string())])


class NameStore:
    """Keys and names, kept below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "names.arrow"
        self._seen: set[int] = set()
        with writing(self._path):
            self._file = pa.OSFile(str(self._path), "wb")
            self._writer: Any = pa.ipc.new_stream(self._file, _SCHEMA)

    def __repr__(self) -> str:
        return f"NameStore({str(self._path)!r})"

    def add(self, keys: U64, names: list[str]) -> None:
        """Note `names` with their keys."""
        fresh = {key: name for key, name in zip(keys.tolist(), names, strict=True) if key not in self._seen}
        if not fresh:
            return
        if len(self._seen) > REMEMBERED:
            self._seen.clear()
        self._seen.update(fresh)
        with writing(self._path):
            self._writer.write_batch(pa.RecordBatch.from_pydict({"key": fresh.keys(), "name": fresh.values()}, _SCHEMA))

    def of(self, keys: U64) -> pa.Array:
        """Return the name of each of the sorted `keys` (one at least), all noted before. Nothing can be added
        afterwards."""
        if self._writer is not None:
            self._writer.close()
            self._file.close()
            self._writer = None
        wanted = pa.array(keys)
        places = np.zeros(len(keys), np.int64)
        found: list[pa.Array] = []
        count = 0
        with pa.OSFile(str(self._path)) as file:
            for batch in pa.ipc.open_stream(file):
                known = batch.filter(pc.is_in(batch.column("key"), wanted))
                places[np.searchsorted(keys, known.column("key").to_numpy())] = count + np.arange(known.num_rows)
                found.append(known.column("name"))
                count += known.num_rows
        return pa.chunked_array(found, pa.string()).combine_chunks().take(pa.array(places))
