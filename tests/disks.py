"""File systems of a test's own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


@contextmanager
def hiding_deleted() -> Iterator[None]:
    """Every file system as NFS and FUSE make them: a file that is open when it is deleted stays under another name
    until it is closed."""
    unlink, close = os.unlink, os.close
    hidden: dict[int, Path] = {}

    def hide(path: Path | str, *, dir_fd: int | None = None) -> None:
        folder = Path() if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}").readlink()
        whole = (folder / path).absolute()
        opened = [int(link.name) for link in Path("/proc/self/fd").iterdir() if _target(link) == whole]
        if opened:
            hidden[opened[0]] = whole.rename(f"{whole}.hidden")
        else:
            unlink(path, dir_fd=dir_fd)

    def let_go(descriptor: int) -> None:
        close(descriptor)
        if descriptor in hidden:
            unlink(hidden.pop(descriptor))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "unlink", hide)
        patched.setattr(os, "close", let_go)
        yield


def _target(link: Path) -> Path | None:
    with suppress(OSError):  # it was closed since
        return link.readlink()
    return None


def grow(disk: Path) -> None:
    """Make it one of 100 MB."""
    subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)
