"""Real documents to make pages of: Debian's `erlang-doc` and `scala-doc`, some 4,500 files of HTML.

`today` calls it before the bench goes into its own network. They are taken from their installed folders, or
downloaded once, by the ordinary tools, into the folder of webs, without root.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from webs import cache_folder

PACKAGES = ("erlang-doc", "scala-doc")
_FOLDERS = ("usr/share/doc/erlang-doc", "usr/share/doc/scala-2.11/api")
SMALLEST_BYTES, LARGEST_BYTES, FEWEST_LINKS = 20_000, 700_000, 30
_HREF = re.compile(rb'(<a\b[^>]{0,500}?\bhref=")([^"]*)(")', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """A file of real HTML; `links` is its number of `<a href="…">`."""

    file: Path
    size: int
    links: int

    def cut(self) -> tuple[list[bytes], list[bytes]]:
        """Return the pieces around the targets of its links, and the targets: one piece more than targets."""
        parts = _HREF.split(self.file.read_bytes())
        around = [parts[0] + parts[1], *(parts[n - 1] + parts[n] + parts[n + 1] for n in range(4, len(parts) - 3, 4))]
        return [*around, parts[-2] + parts[-1]], parts[2::4]


def documents() -> list[Document]:
    """Return all documents that are fit to be pages of today's size, always in the same order."""
    found = []
    for folder in _folders():
        for file in sorted(folder.rglob("*.html")):
            if file.is_file() and SMALLEST_BYTES <= file.stat().st_size <= LARGEST_BYTES:
                content = file.read_bytes()
                links = len(_HREF.findall(content))
                if links >= FEWEST_LINKS:
                    found.append(Document(file, len(content), links))
    return found


def at_hand() -> list[Path]:
    """Return their folders on this machine; empty if they must be downloaded."""
    for root in (Path("/"), _kept()):
        folders = [root / folder for folder in _FOLDERS]
        if all(folder.is_dir() for folder in folders):
            return folders
    return []


def _kept() -> Path:
    return cache_folder() / "documents"


def _folders() -> list[Path]:
    if not at_hand():
        _download(_kept())
    return at_hand()


def _download(into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["apt-get", "download", "-qq", *PACKAGES], cwd=into, check=True)
        for package in into.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, into], check=True)
            package.unlink()
    except (OSError, subprocess.CalledProcessError) as error:
        names = " and ".join(PACKAGES)
        raise SystemExit(
            f"{error}: today's web is made of Debian's {names}; install them, or run it on Debian"
        ) from None
