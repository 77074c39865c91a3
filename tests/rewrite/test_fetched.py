"""Pages of a crawl, sorted by site on disk."""

import gc
import os
from pathlib import Path

import pytest

from disks import grow, small_disk
from fyke.core.errors import DiskFull
from fyke.rewrite.fetched import places, sites
from search.archives import Answer, Archive


def test_a_full_disk(tmp_path: Path) -> None:
    """It is said of the folder, and nothing is left there."""
    with small_disk(tmp_path / "disk", "1m") as disk:
        made = Archive(disk / "crawl")
        for number in range(8):
            made.visit(f"http://a.example/{number}", Answer(f"<title>{number}</title><main><p>{number}</p></main>"))
        made.close()
        there = sorted(disk.rglob("*"))
        rest = os.statvfs(disk)
        (disk / "other").write_bytes(bytes(rest.f_bavail * rest.f_frsize))
        for read in (sites, places):
            with pytest.raises(DiskFull, match=f"cannot write {disk}.*free some space"):
                list(read(disk / "crawl"))
        (disk / "other").unlink()
        assert sorted(disk.rglob("*")) == there
        grow(disk)
        assert sum(len(pages) for _, pages in sites(disk / "crawl")) == 8
        gc.collect()  # what failed has files open until then, and the disk goes
