"""The near-duplicates that the index found, as a column beside the table of pages.

Read by the formats that hold text, if `fyke index` made the table `near`. Invariant: an export sees that table as it
was when its column was made, even if an index is made meanwhile; memory holds one range of keys.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.archive.lost import require_of_index
from fyke.archive.reading import scan_table
from fyke.archive.table_files import parquet_path
from fyke.core.sorting import looked_up
from fyke.disk.ranges import Buckets, ranges_for
from fyke.export.selection import RANGE_ROWS
from fyke.export.source import Source
from fyke.export.staging import column_once

_ROW = np.dtype([("key", "<u8"), ("value", "<u8")])  # value: a row of the pages table, or the key of the near page


def near_column(source: Source, scratch: Path) -> npt.NDArray[np.uint64]:
    """Return for each row of the pages table the key of the page that its page is near, or 0: uint64[rows].

    A file below `scratch` that is made once. Raises DiskFull, StateDamaged.
    """

    def fill(column: npt.NDArray[np.uint64]) -> None:
        ranges = ranges_for(source.until.pages, RANGE_ROWS)
        near, rows = (Buckets(scratch, name, _ROW, ranges) for name in ("near", "rows"))
        require_of_index(parquet_path(source.path, "near", 0))
        for batch in scan_table(source.path, "near", ["key", "near_of"]):
            _add(near, batch.column(0).to_numpy(), batch.column(1).to_numpy())
        begin = 0
        for batch in source.rows("pages", ["key"]) if near.rows else ():
            _add(rows, batch.column(0).to_numpy(), np.arange(begin, begin + batch.num_rows))
            begin += batch.num_rows
        for some, others in zip(rows, near, strict=True):
            others = others[np.argsort(others["key"])]
            places = looked_up(others["key"], some["key"])
            found = places >= 0
            column[some["value"][found]] = others["value"][places[found]]
        for buckets in (near, rows):
            buckets.close()

    rows = source.until.pages
    found: npt.NDArray[np.uint64] = column_once(scratch / f"near-{rows}", np.uint64, rows, fill)
    return found


def _add(buckets: Buckets, keys: npt.NDArray[np.uint64], values: npt.NDArray[Any]) -> None:
    rows = np.empty(len(keys), _ROW)
    rows["key"], rows["value"] = keys, values
    buckets.add(keys, rows)
