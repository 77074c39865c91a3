"""Keys a second through a drum: `python benches/drum_merge.py [keys in the table] [links] [memory in MB]`.

Fills a table with random keys, then checks and updates links of which 89 % were met before (IRLbot's share),
each with a URL of 80 bytes as aux, and merges whenever the drum is full. Then merges 200 keys at a time, as for
a fetcher that starves, each into the large table and into one of 30,000 keys.
"""

import resource
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

from fyke.disk import Checkpoint, Drum

AUX = pa.schema([("url", pa.binary())])
URL_BYTES = 80
BATCH = 1 << 16
MET = 0.89


def keys_of(numbers: np.ndarray) -> np.ndarray:
    """Distinct uniform keys, uint64[n], for the numbers 0, 1, ...: splitmix64."""
    key = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


def links(count: int, table: int, random: np.random.Generator) -> tuple[np.ndarray, pa.RecordBatch, int]:
    """Keys and URLs of `count` links, when the first `table` numbers were met before; and how many were after."""
    met = random.random(count) < MET
    numbers = np.where(met, random.integers(0, max(1, table), count), table + np.cumsum(~met) - 1)
    offsets = np.arange(count + 1, dtype=np.int32) * URL_BYTES
    text = pa.py_buffer(random.bytes(count * URL_BYTES))
    url = pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), text])
    return keys_of(numbers), pa.RecordBatch.from_arrays([url], schema=AUX), table + int((~met).sum())


def fill(drum: Drum, count: int) -> None:
    for start in range(0, count, 1 << 20):
        drum.update(keys_of(np.arange(start, min(count, start + (1 << 20)))))
        if drum.full:
            drum.settle()
    drum.settle()


def crawl(drum: Drum, table: int, count: int, random: np.random.Generator) -> tuple[int, float, float]:
    """Unique URLs that came out, seconds to hand in, seconds to merge."""
    unique, submit_s, merge_s = 0, 0.0, 0.0
    for start in range(0, count, BATCH):
        keys, aux, table = links(min(BATCH, count - start), table, random)
        began = perf_counter()
        drum.check_update(keys, aux=aux)
        submit_s += perf_counter() - began
        if drum.full or start + BATCH >= count:
            began = perf_counter()
            unique += sum(batch.num_rows for batch in drum.merge_unique())
            merge_s += perf_counter() - began
    return unique, submit_s, merge_s


def small_merges(drum: Drum, random: np.random.Generator, times: int = 200) -> float:
    """Seconds of a merge of 200 keys."""
    spent = 0.0
    for _ in range(times):
        keys, aux, _ = links(200, len(drum), random)
        drum.check_update(keys, aux=aux)
        began = perf_counter()
        for _batch in drum.merge_unique():
            pass
        spent += perf_counter() - began
    return spent / times


def main(table: int = 50_000_000, count: int = 10_000_000, memory_mb: int = 256) -> None:
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory, Checkpoint(Path(directory)) as checkpoint:
        plain = Drum(checkpoint.store, "plain", memory_bytes=memory_mb << 20)
        began = perf_counter()
        fill(plain, table)
        spent = perf_counter() - began
        print(f"filled {len(plain):,} keys: {table / spent / 1e6:.1f} M keys/s")
        state = plain.state()
        drum = Drum(checkpoint.store, "seen", state, aux=AUX, memory_bytes=memory_mb << 20)
        unique, submit_s, merge_s = crawl(drum, table, count, random)
        print(f"{drum.statistics()}")
        print(f"{count:,} links, {unique:,} unique, {memory_mb} MB: {count / merge_s / 1e6:.2f} M keys/s to merge,")
        print(f"{count / (merge_s + submit_s) / 1e6:.2f} M keys/s with handing in and spilling")
        print(f"200 keys into {len(drum):,}: {1e3 * small_merges(drum, random):.2f} ms")
        little = Drum(checkpoint.store, "little", aux=AUX, memory_bytes=memory_mb << 20)
        little.update(keys_of(np.arange(30_000)))
        little.settle()
        print(f"200 keys into 30,000: {1e3 * small_merges(little, random):.2f} ms")
        print(f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
