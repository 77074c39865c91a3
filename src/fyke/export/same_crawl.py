"""Whose copy is it? `fyke copy` asks what a target holds before it writes there, so that no crawl replaces another's.

A crawl has no name of its own, so its files tell. Every archive file begins with a record that has a random id and a
date. The rest of a file may differ from its copy, because a crash or a repair may cut it. As long as a crawl has closed
no archive file, its tables of pages tell, which have the times of fetches. Before those, its settings and seeds tell.
Invariant: nothing is written here.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import obstore

from fyke.archive.checksum import SUFFIX, checksum_path, recorded_line
from fyke.archive.directory import CrawlDirectory, crawl_digest
from fyke.core.config import build
from fyke.core.errors import ConfigurationError, OtherCrawl
from fyke.disk.files import open_file

HEAD_BYTES = 256  # of an archive file, packed: they hold the id and the date of its first record
NAME_ANOTHER = "name another folder"


def require_own(directory: CrawlDirectory, target: str, store: Any, there: Mapping[str, int]) -> None:
    """Raise OtherCrawl if `store`, which has files of these sizes `there`, holds files of another crawl than
    `directory`, or is itself a crawl's directory."""
    if any(name.startswith("state/") and "/manifest-" in name for name in there):
        raise OtherCrawl(f"{target} is the directory of a crawl, not a copy of one: {NAME_ANOTHER}")
    if other := _of_another(directory.path, store, there):
        raise OtherCrawl(f"{target} holds another crawl ({other} there is not of this one): {NAME_ANOTHER}")


def _of_another(folder: Path, store: Any, there: Mapping[str, int]) -> str:
    """Return the name of a file in `store` that is not of the crawl in `folder`; empty if all are, or none tells."""
    warcs = _names(there, "warc/", ".warc.gz")
    ours = [name for name in warcs if (folder / name).is_file() or checksum_path(folder / name).is_file()]
    if warcs:
        others = (name for name in ours if not _is_sealed_alike(folder, store, name, there))
        differing = next((name for name in others if not _begins_alike(folder / name, store, name)), "")
        return differing or ("" if ours else warcs[0])
    if pages := _names(there, "tables/pages-", ".parquet"):
        return "" if any(_is_sealed_alike(folder, store, name, there) for name in pages) else pages[0]
    if "fyke.toml" not in there:
        return ""
    if "seeds.txt" in there and not _is_sealed_alike(folder, store, "seeds.txt", there):
        return "seeds.txt"
    return "" if _asks_the_same(CrawlDirectory(folder), store) else "fyke.toml"


def _names(there: Mapping[str, int], begin: str, end: str) -> list[str]:
    return sorted(name for name in there if name.startswith(begin) and name.endswith(end))


def _is_sealed_alike(folder: Path, store: Any, name: str, there: Mapping[str, int]) -> bool:
    """Return whether the file `name` has the same checksum here and there."""
    if f"{name}{SUFFIX}" not in there or not checksum_path(folder / name).is_file():
        return False
    return bytes(obstore.get(store, f"{name}{SUFFIX}").bytes()) == recorded_line(folder / name).encode()


def _begins_alike(path: Path, store: Any, name: str) -> bool:
    """Return whether the archive file at `path` begins with the same record as `name` in `store`."""
    if not path.is_file():
        return False
    with open_file(path) as file:
        head = file.read(HEAD_BYTES)
    return len(head) == HEAD_BYTES and bytes(obstore.get_range(store, name, start=0, length=HEAD_BYTES)) == head


def _asks_the_same(directory: CrawlDirectory, store: Any) -> bool:
    """Return whether the settings in `store` are those of the same crawl."""
    text = bytes(obstore.get(store, "fyke.toml").bytes()).decode("utf-8", "replace")
    try:
        theirs = build(tomllib.loads(text), "fyke.toml")
    except (ConfigurationError, ValueError, RecursionError):  # whatever it is, no run of this crawl wrote it
        return False
    return crawl_digest(theirs) == crawl_digest(directory.config())
