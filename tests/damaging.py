"""Files as they must not be."""

from pathlib import Path


def damage(path: Path, how: str, share: float) -> None:
    """Make of the file at `path` what `how` says; `share` of it stays as it was."""
    data = path.read_bytes()
    at = int(share * len(data))
    path.unlink()
    if how == "directory":
        path.mkdir()
    elif how == "flip":
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
    elif how == "cut":
        path.write_bytes(data[:at])
    elif how == "empty":
        path.touch()
