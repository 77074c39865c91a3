"""File systems of a test's own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, *what: str) -> Iterator[Path]:
    """`what`, as `mount` takes it, at `folder` until the block ends; skips the test where nobody may mount."""
    folder.mkdir(exist_ok=True)
    if os.geteuid() or subprocess.run(["mount", *what, str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("may not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of that size, such as 8m."""
    with mounted(folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs") as disk:
        yield disk


def grow(disk: Path) -> None:
    """Make it one of 100 MB."""
    subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)
