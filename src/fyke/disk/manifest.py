"""One checkpoint as a file: `manifest-00000042.json`, with a digest inside.

Written by `Snapshot.make_durable`, read when a shard is opened. A manifest is *whole* if its digest fits
and every file it names is there, at least as long as recorded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fyke.core.errors import OtherVersion
from fyke.disk.files import allowed, read_whole, verify_file
from fyke.disk.sealed import sealed, unsealed
from fyke.disk.store import Digests, State

FORMAT = 3  # of a shard's files and of what rooms keep in a manifest; increase it when they change
NAME = re.compile(r"manifest-(\d{8,})\.json")
TORN_NAME = re.compile(r"manifest-(\d{8,})\.json\.(?:part|tmp)")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Names, lengths and states at one instant."""

    number: int
    files: dict[str, int] = field(default_factory=dict)  # name -> length in bytes
    participants: dict[str, State] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    digests: Digests = field(default_factory=dict)  # of the files

    @property
    def name(self) -> str:
        return f"manifest-{self.number:08}.json"

    def encode(self) -> bytes:
        """Return the text of the file, in a canonical form so that the digest can be taken again."""
        body = {
            "format": FORMAT,
            "number": self.number,
            "files": self.files,
            "participants": self.participants,
            "counters": self.counters,
            "digests": self.digests,
        }
        return sealed("manifest", body)


BEGUN = Manifest(0)  # an empty file, written before the first manifest so that no manifest is ever alone


def numbers(directory: Path) -> list[int]:
    """Return the numbers of the manifests in `directory`, newest first, without that of `BEGUN`."""
    return [number for number in numbers_with_begun(directory) if number != BEGUN.number]


def numbers_with_begun(directory: Path) -> list[int]:
    """Return the numbers of the manifests in `directory`, newest first, with that of `BEGUN`."""
    found = (NAME.fullmatch(path.name) for path in directory.iterdir())
    return sorted((int(match[1]) for match in found if match), reverse=True)


def lone(directory: Path) -> int:
    """Return the number of the only manifest in `directory`, so another is gone; 0 if there are two or none."""
    found = numbers_with_begun(directory)
    is_lone = (
        len(found) == 1 and numbers_with_begun(directory) == found
    )  # a live crawl may write one during the listing
    return found[0] if is_lone else 0


def load(directory: Path, number: int) -> Manifest | None:
    """Return the manifest `number`, or None if it is not whole."""
    manifest = read(directory, number)
    return manifest if manifest is not None and not any(lacking(directory, manifest)) else None


def read(directory: Path, number: int) -> Manifest | None:
    """Return the manifest `number`, whose files may be gone or too short, or None if it is damaged. Raises
    DirectoryError if it may not be read, and OtherVersion: going back to an older one would lose its data."""
    path = directory / Manifest(number).name
    try:
        with allowed(path):
            data = read_whole(path)
        body = unsealed("manifest", data)
        if body["format"] != FORMAT:
            raise OtherVersion(
                f"{path} has format {body['format']}, this Fyke reads {FORMAT}: an unreleased state of Fyke or a later"
                " version wrote it; begin anew in another folder, or use the Fyke that wrote it; an archive in warc/"
                " can still be read with other tools"
            )
        manifest = Manifest(body["number"], body["files"], body["participants"], body["counters"], body["digests"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return manifest if manifest.number == number else None


def lacking(directory: Path, manifest: Manifest) -> Iterator[str]:
    """Yield the files of `manifest` that are gone or shorter than it says."""
    for name, length in manifest.files.items():
        try:
            if (directory / name).stat().st_size < length:
                yield name
        except FileNotFoundError:
            yield name


def verify(directory: Path, manifest: Manifest, name: str) -> None:
    """Read the file `name` of `manifest`. Raises StateDamaged if a byte changed."""
    verify_file(directory / name, manifest.digests.get(name, []))
