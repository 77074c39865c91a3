"""Real documents to make pages of: what Debian's `erlang-doc` and `scala-doc` bring, some 4,500 files of HTML.

Called by `today`, before the bench goes into a network of its own. They are taken from where they are installed, or
downloaded once, by the ordinary tools, into the folder where webs are kept; nobody need be root for that.
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
    """A file of real HTML; `links` is how many `<a href="…">` it has."""

    file: Path
    size: int
    links: int

    def cut(self) -> tuple[list[bytes], list[bytes]]:
        """What is around the targets of its links, and these: one piece more than there are targets."""
        parts = _HREF.split(self.file.read_bytes())
        around = [parts[0] + parts[1], *(parts[n - 1] + parts[n] + parts[n + 1] for n in range(4, len(parts) - 3, 4))]
        return [*around, parts[-2] + parts[-1]], parts[2::4]


def documents() -> list[Document]:
    """All that are fit to be pages of today's size, always in the same order."""
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
    """Where they are on this machine; nothing when they must be downloaded."""
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
