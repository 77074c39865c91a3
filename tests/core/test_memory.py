"""Memory of processes may be added up: what they share is not counted for each."""

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fyke.core.memory import GAUGE_S, PAGE_BYTES, MemoryGauge, memory_bytes, peak_memory_bytes, roomy, taken

SHARED = 64 << 20
READER = f"""
import mmap, sys
from fyke.core.memory import memory_bytes
before = memory_bytes()
with open(sys.argv[1], "rb") as file:
    shared = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
for at in range(0, len(shared), {PAGE_BYTES}):
    shared[at]
print("ready", flush=True)
sys.stdin.readline()
print(memory_bytes() - before, flush=True)
sys.stdin.readline()
"""


def test_what_is_shared_is_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.write_bytes(os.urandom(SHARED))
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    grown = []
    for told in ("ready", ""):
        for reader in readers:
            assert reader.stdin is not None and reader.stdout is not None
            if not told:
                reader.stdin.write("\n")
                reader.stdin.flush()
                grown.append(int(reader.stdout.readline()))
            else:
                assert reader.stdout.readline().strip() == told
    for reader in readers:
        reader.communicate("\n")
    assert 0.8 * SHARED < sum(grown) < 1.5 * SHARED


def test_what_is_had_alone_is_counted_whole() -> None:
    before = memory_bytes()
    own = mmap.mmap(-1, SHARED)
    own.write(os.urandom(SHARED))
    assert 0.9 * SHARED < memory_bytes() - before < 1.5 * SHARED
    assert peak_memory_bytes() >= memory_bytes() * 0.9


def test_a_gauge_is_read_again_after_a_while_and_when_the_clock_was_set_back() -> None:
    gauge = MemoryGauge()
    before = gauge.read(100.0)
    own = mmap.mmap(-1, SHARED)
    own.write(os.urandom(SHARED))
    assert gauge.read(100.0 + GAUGE_S / 2) == before
    assert gauge.read(100.0 + GAUGE_S) - before > 0.9 * SHARED
    own.close()
    assert gauge.read(99.0) - before < 0.1 * SHARED


TRIMMED = """
import sys
from fyke.core.memory import Trimmer, _resident_bytes, give_back
give_back()
trimmer = Trimmer()
before = _resident_bytes()
large = bytearray(300_000_000)
trimmer.trim()
del large  # what was held when it was called says nothing of what lies free later
held = [bytearray(2000) for _ in range(100_000)]
grown = _resident_bytes() - before
held = held[::1000]  # what outlives the others lies between them
left = _resident_bytes() - before
trimmer.trim()
print(grown, left, _resident_bytes() - before, len(held))
"""


def test_what_lies_free_between_blocks_is_given_back() -> None:
    told = subprocess.run([sys.executable, "-c", TRIMMED], capture_output=True, text=True, check=True)
    grown, left, trimmed, _ = map(int, told.stdout.split())
    assert grown > 180_000_000 and left > 0.9 * grown
    assert trimmed < 0.1 * grown


LOADED = """
import re
from pathlib import Path
import fyke.crawl.run
from fyke.core.memory import let_go_of_libraries
def of_files():
    return int(re.search(r"RssFile:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = of_files()
let_go_of_libraries()
print(before, of_files())
import pyarrow.compute as pc
print(pc.sort_indices([3, 1, 2]).to_pylist())
"""


def test_what_libraries_are_read_for_is_let_go() -> None:
    told = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    kilobytes, order = told.stdout.splitlines()
    before, after = map(int, kilobytes.split())
    assert after < before / 3
    assert order == "[1, 2, 0]"


@pytest.mark.parametrize("size", [0, 1000, 1 << 20, 3 << 20])
def test_a_roomy_buffer_has_what_was_written(size: int) -> None:
    for most_bytes in (0, 2 << 20):
        whole = roomy(most_bytes)
        for _ in range(size // 1000):
            whole.write(b"x" * 1000)
        assert taken(whole) == b"x" * (size // 1000 * 1000)
