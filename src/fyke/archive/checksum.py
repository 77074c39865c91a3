"""A checksum beside every file that is finished: `<file>.xxh3`, a line that `xxhsum --check` reads.

gzip and Parquet have checksums of their own, but not over headers, footers and padding. Written when a file is
finished, read by `fyke.archive.check`.
"""

from pathlib import Path

import xxhash

from fyke.disk.files import allowed, open_file, read_whole, written_whole

SUFFIX = ".xxh3"
CHUNK_BYTES = 1 << 20
MOST_OF_LINE = 1 << 10
OTHER_BYTES = "its bytes do not match its checksum"


def checksum_path(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def file_hash(path: Path) -> str:
    """Return the xxh3-64 of the file's bytes, 16 hexadecimal digits. Raises OSError; DirectoryError if it may not be
    read."""
    state = xxhash.xxh3_64()
    with allowed(path), open_file(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            state.update(chunk)
    return state.hexdigest()


def checksum_line(name: str, digest: str) -> str:
    """Return the line beside the file `name` with the hash `digest`, in the form of BSD's tools."""
    return f"XXH3 ({name}) = {digest}\n"


def line_holds(line: str, name: str, digest: str) -> bool:
    """Return whether `line` gives `digest` for the file `name`."""
    return line == checksum_line(name, digest)


def write_checksum(source: Path, target: Path) -> None:
    """Write the checksum of `source` beside `target` and under its name. Raises OSError, DiskFull, DirectoryError."""
    line = checksum_line(target.name, file_hash(source))
    with written_whole(checksum_path(target), synced=False) as part:
        part.write_text(line, encoding="utf-8")


def recorded_line(path: Path) -> str:
    """Return the text of the checksum file beside `path`. Raises as `file_hash`."""
    with allowed(checksum_path(path)):
        return read_whole(checksum_path(path), MOST_OF_LINE).decode("utf-8", "replace")


def is_gone(path: Path) -> bool:
    """Return whether the file was finished and is gone: only its checksum is left, and nobody is writing the file."""
    written = path.with_name(path.name + ".part").exists()
    return checksum_path(path).exists() and not written and not path.exists()


def checksum_holds(path: Path) -> bool | None:
    """Return whether the bytes of `path` are as they were finished; None if there is no checksum."""
    found = file_hash(path)
    try:
        return line_holds(recorded_line(path), path.name, found)
    except FileNotFoundError:
        return None
    except OSError:  # a folder under its name, or a disk that cannot read it
        return False
