"""A checksum beside every file that is finished: `<file>.xxh3`, a line that `xxhsum --check` reads.

gzip and Parquet have checksums of their own, but not over headers, footers and padding. Written by
whoever finishes a file, read by `fyke.archive.check`.
"""

from pathlib import Path

import xxhash

CHUNK_BYTES = 1 << 20


def checksum_path(path: Path) -> Path:
    return path.with_name(path.name + ".xxh3")


def file_hash(path: Path) -> str:
    """The xxh3-64 of the file's bytes, 16 hexadecimal digits."""
    state = xxhash.xxh3_64()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            state.update(chunk)
    return state.hexdigest()


def write_checksum(source: Path, target: Path) -> None:
    """The checksum of `source`, beside `target` and under its name."""
    checksum_path(target).write_text(f"XXH3_{file_hash(source)}  {target.name}\n", encoding="ascii")


def checksum_holds(path: Path) -> bool | None:
    """Whether the bytes of `path` are those that were finished; None when there is no checksum."""
    found = file_hash(path)
    try:
        line = checksum_path(path).read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    except OSError:  # a folder under its name, or a disk that cannot read it
        return False
    return line == f"XXH3_{found}  {path.name}\n"
