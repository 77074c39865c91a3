"""Webs to measure crawlers on: what a machine of one's own can be made to look like.

A web is made once, from a seed, into a folder outside the repository; then nginx serves it, under names and addresses
of its own, to a crawler that is told nothing of it. Each asks something else:

- `plain`: 20 KB a page, 60 links, most of which are met again in another spelling. What does a page cost?
- `today`: real documents of 174 KB, compressed, over HTTPS and HTTP/2, on 1,000 hosts. What do pages cost as they are?
- `endless`: like `plain`, and no link is ever met twice. What is left when no cache helps?

`alone` gives the web a network of its own, `serving` brings it up. Invariant: a web is the same for the same seed and
number of pages; its size on disk is bounded by the latter.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

SEED = 2026
SMALLEST = 600  # pages
FORBIDDEN = "/private/"
ROBOTS = f"User-agent: *\nDisallow: {FORBIDDEN}\n"


@dataclass(frozen=True, slots=True)
class Web:
    """What is known of a web before it is made."""

    name: str
    pages: int  # that are fetched in a full race
    first_page: str  # the URL from which all others are reached
    version: int  # raised when the same seed gives other bytes, so that no old folder is taken for it
    make: Callable[[Path, int, int], list[str]]  # (folder, pages, seed): write the files; the names of its hosts
    settings: Callable[[Path, Mapping[str, str]], str]  # (folder, addresses by host): what nginx is told of its hosts
    tls: bool = False  # certificates are those of folder/ca.pem
    writer: str = ""  # a module that, run with the folder, writes what nginx hands on to it


def cache_folder() -> Path:
    """Where webs are kept when nobody says."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fyke-webs"


def made(web: Web, pages: int, into: Path | None = None, seed: int = SEED) -> Path:
    """The folder of `web` with `pages` pages, made now unless it is there: whole, or not at all."""
    kept = into or cache_folder()
    folder = kept / f"{web.name}-{pages}-{seed}-v{web.version}"
    if folder.is_dir():
        return folder
    kept.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{web.name}-", dir=kept))
    try:
        (unfinished / "hosts").write_text("\n".join(web.make(unfinished, pages, seed)))
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():  # else somebody else made the same one meanwhile
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def size_of(web: Web, pages: int | None) -> int:
    """How large to make `web` for a race over `pages` pages: a short one has a small web."""
    return max(SMALLEST, min(pages or web.pages, web.pages))


def hosts_of(folder: Path) -> list[str]:
    """The names of the hosts of the web made in `folder`."""
    return (folder / "hosts").read_text().split()
