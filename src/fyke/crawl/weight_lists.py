"""Weights of pages as a person gives them: `revisit.weights` of the settings.

A CSV file with a line of names, or a Parquet file, with the columns `url` and `weight`. It is read when a crawl begins.
Invariant: memory holds 12 bytes a page, of `MOST` pages at most.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from fyke.archive.table_files import as_file
from fyke.core.batches import NO_KEYS
from fyke.core.errors import ConfigurationError
from fyke.core.urls import canonical, key_of
from fyke.frontier.weights import Weights

IN_DEGREE = "in-degree"
MOST = 1 << 22
COLUMNS = pa.schema([("url", pa.string()), ("weight", pa.float32())])


def read_weights(asked: str) -> Weights:
    """Return the weights that the setting `asked` for. Raises ConfigurationError for a file that has none, or too
    many."""
    if not asked or asked == IN_DEGREE:
        return Weights(by_in_degree=asked == IN_DEGREE)
    if not Path(asked).is_file():
        raise ConfigurationError(f"revisit.weights = {asked!r}: no such file; name a file, or write {IN_DEGREE!r}")
    keys, weights = [NO_KEYS], [np.empty(0, np.float32)]
    rows = 0
    try:
        for batch in _batches(Path(asked)):
            rows += batch.num_rows
            if rows > MOST:
                raise ConfigurationError(f"revisit.weights = {asked!r}: more than {MOST:,} rows; keep the heaviest")
            found = [canonical(url or "") for url in batch.column("url").to_pylist()]
            there = np.array([url is not None for url in found], np.bool_)
            keys.append(np.array([key_of(url) for url in found if url is not None], np.uint64))
            weights.append(batch.column("weight").to_numpy(zero_copy_only=False)[there])
    except (pa.ArrowException, KeyError, OSError) as error:
        reason = str(error).strip("'\"").partition("\n")[0]
        raise ConfigurationError(f"revisit.weights = {asked!r} cannot be read: {reason}") from None
    weighed = np.concatenate(weights)
    if not (np.isfinite(weighed) & (weighed >= 0)).all():
        raise ConfigurationError(f"revisit.weights = {asked!r}: every weight must be a number, 0 or more")
    return Weights(keys=np.concatenate(keys), weights=weighed)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with the columns `COLUMNS`; other columns are ignored."""
    if path.suffix == ".parquet":
        with pq.ParquetFile(as_file(path)) as file:
            for batch in file.iter_batches(columns=COLUMNS.names):
                batch.validate(full=True)  # texts may be no UTF-8
                yield batch.select(COLUMNS.names).cast(COLUMNS)
        return
    options = pa.csv.ConvertOptions(include_columns=COLUMNS.names, column_types=COLUMNS)
    with pa.csv.open_csv(path, convert_options=options) as lines:
        yield from lines
