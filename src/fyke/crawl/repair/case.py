"""What a repair knows of the crawl it mends, and what it has changed so far.

Made by `fyke.crawl.repair`, shared by the repairs of the archive and of the tables.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

from fyke.archive.checksum import checksum_path
from fyke.archive.directory import CrawlDirectory
from fyke.archive.mending import DamagedFolder
from fyke.core.telling import Tell
from fyke.disk import manifest as manifests
from fyke.disk.manifest import Manifest


class Note(NamedTuple):
    """What was done about a file, or (`lost`) what is lost of it; `again` if its contents are fetched again."""

    place: str
    what: str
    lost: bool = False
    again: bool = False


class Case:
    """The crawl in `directory`. Work goes on in `scratch`; `progress` is told how far it is."""

    def __init__(self, directory: CrawlDirectory, scratch: Path, progress: Tell) -> None:
        self.directory = directory
        self.folder = directory.path
        self.scratch = scratch
        self.progress = progress
        self.aside = DamagedFolder(directory.path)
        self.manifest: Manifest | None = None  # the newest whole one
        self.changed: dict[str, Any] = {}  # states of the tables and the archive
        self.mended = False

    @property
    def state(self) -> dict[str, Any]:
        """The states in that manifest."""
        return {} if self.manifest is None else self.manifest.participants

    @property
    def fell_back(self) -> bool:
        """True if a newer manifest was not whole, or may be gone."""
        shard = self.directory.shard
        newest = manifests.numbers(shard)[0] if self.manifest is not None else 0
        return self.manifest is not None and (self.manifest.number != newest or bool(manifests.lone(shard)))

    def place(self, path: Path) -> str:
        """Return `path` as people read it."""
        return self.directory.place(path)

    def drop_checksum(self, path: Path) -> None:
        """Put the checksum of a file that changed aside."""
        if os.path.lexists(checksum_path(path)):
            self.aside.move_here(checksum_path(path))
