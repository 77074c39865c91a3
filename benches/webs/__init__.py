"""Webs to measure crawlers on: what a single machine can be made to look like.

A web is made once, from a seed, into a folder outside the repository. Then nginx serves it, under its own names and
addresses, to a crawler that is told nothing of it. Each web asks another question:

- `plain`: 20 KB a page, 60 links, most of which are met again in another spelling. What does a page cost?
- `broad`: a new host with every third page. What does a host cost?
- `today`: real documents of 174 KB, compressed, over HTTPS and HTTP/2, on 1,000 hosts. What do real pages cost?
- `endless`: like `plain`, but no link is ever met twice. What is left if no cache helps?

`alone` gives the web its own network, `serving` brings it up. Invariant: a web is the same for the same seed and
number of pages. Bounded: its size on disk grows with the number of pages only.
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
    """The description of a web before it is made."""

    name: str
    pages: int  # fetched in a full race
    first_page: str  # the URL from which all others are reached
    version: int  # raised if the same seed gives other bytes, so that an old folder is not reused
    make: Callable[[Path, int, int], list[str]]  # (folder, pages, seed): write the files; return the names of its hosts
    settings: Callable[[Path, Mapping[str, str]], str]  # (folder, addresses by host): settings of nginx
    tls: bool = False  # certificates are those of folder/ca.pem
    writer: str = ""  # a module that, run with the folder, writes the pages that nginx asks of it


def cache_folder() -> Path:
    """Return the default folder of webs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fyke-webs"


def made(web: Web, pages: int, into: Path | None = None, seed: int = SEED) -> Path:
    """Return the folder of `web` with `pages` pages; make it unless it is there, whole or not at all."""
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
        if not folder.is_dir():  # otherwise another process made the same one meanwhile
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def size_of(web: Web, pages: int | None) -> int:
    """Return how many pages `web` shall have for a race over `pages` pages: a short race has a small web."""
    return max(SMALLEST, min(pages or web.pages, web.pages))


def hosts_of(folder: Path) -> list[str]:
    """Return the names of the hosts of the web made in `folder`."""
    return (folder / "hosts").read_text().split()
