"""The URLs of a crawl's pages by their keys, on disk.

Built once below the scratch folder of an export of links, then asked for the sources of each batch. Links come in the
order of their pages, so the places read lie together. Invariant: memory holds one range of keys while building, and the
answers of one batch while asking.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64
from fyke.core.sorting import looked_up
from fyke.disk.ranges import Buckets, append, mapped, ranges_for
from fyke.export.selection import RANGE_ROWS
from fyke.export.source import Source
from fyke.export.staging import writing

_PLACE = np.dtype([("key", "<u8"), ("begin", "<u8"), ("length", "<u4")])


class Addresses:
    """The URLs of the pages of `source`; files below `scratch`, made if they are not there."""

    def __init__(self, source: Source, scratch: Path) -> None:
        self._texts, self._keys, self._places = (scratch / f"urls.{what}" for what in ("text", "keys", "places"))
        done = scratch / "urls.whole"
        if not done.exists():
            with writing(scratch):
                scratch.mkdir(exist_ok=True)
                for path in (self._texts, self._keys, self._places):
                    path.unlink(missing_ok=True)
                self._build(source, scratch)
                done.touch()
        self._text = mapped(self._texts, np.uint8)
        self._key = mapped(self._keys, np.uint64)
        self._place = mapped(self._places, _PLACE)

    def __repr__(self) -> str:
        return f"Addresses({len(self._key)} pages)"

    def _build(self, source: Source, scratch: Path) -> None:
        buckets = Buckets(scratch, "urls", _PLACE, ranges_for(source.until.pages, RANGE_ROWS))
        position = 0
        with self._texts.open("wb") as texts:
            for batch in source.rows("pages", ["key", "url"]):
                urls = [url.encode() for url in batch.column("url").to_pylist()]
                rows = np.empty(len(urls), _PLACE)
                rows["key"] = batch.column("key").to_numpy()
                rows["length"] = [len(url) for url in urls]
                rows["begin"] = position + np.cumsum(rows["length"], dtype=np.uint64) - rows["length"]
                texts.write(b"".join(urls))
                position += int(rows["length"].sum(dtype=np.uint64))
                buckets.add(rows["key"].copy(), rows)
        for some in buckets:
            ordered = np.sort(some, order="key", kind="stable")
            append(self._keys, ordered["key"])
            append(self._places, ordered)
        buckets.close()

    def of(self, keys: U64) -> pa.Array:
        """Return the URL of each of `keys`, strings[n]; null for a key of no page."""
        different, where = np.unique(keys, return_inverse=True)
        found = pa.array([self._one(at) for at in looked_up(self._key, different).tolist()], pa.string())
        return found.take(pa.array(where))

    def _one(self, place: int) -> str | None:
        if place < 0:
            return None
        _, begin, length = self._place[place].tolist()
        return self._text[begin : begin + length].tobytes().decode()
