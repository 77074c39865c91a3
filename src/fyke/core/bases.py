"""The bases of links: what of a page's URL goes before a plain link, and the keys of hosts.

Used by `fyke.core.resolve`. No link is remembered, only the keys of hosts.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fyke.core.urls import MAX_URL_BYTES, canonical, host_keys, split

LONGEST_ROOT = 255  # bytes; no name in the DNS is longer

# A base: its root, its path up to the last slash, and its file.
_BASE = re.compile(r"((([a-z][a-z0-9+.-]*):)//[^/?#\\]+)(/(?:[^?#\\]*/)?)([^/?#\\]*)(?:[?#][!-~]*)?")
# A canonical root: the last label of its host is not a number, and no label is encoded.
PLAIN_ROOT = re.compile(r"https?://((?:(?!xn--)[a-z0-9][a-z0-9-]*\.)*(?!xn--)[a-z][a-z0-9-]*)")
_PLAIN_PATH = re.compile(r"(?:/(?!\.)[A-Za-z0-9_~!$&()*+,;=@.-]*)+")  # canonical below a canonical root


class Joined(NamedTuple):
    """The links of pages, resolved as far as they are plain."""

    urls: list[bytes]  # empty if not plain
    keys: npt.NDArray[np.uint64]  # of host and domain, a row each
    others: list[tuple[int, str, int]]  # links for a parser: number, link, page
    cut: set[int]  # pages whose last links were dropped


class Base(NamedTuple):
    """The base of a page's links. `folder` is empty if only a parser can resolve against it."""

    url: str
    scheme: bytes = b""
    root: bytes = b""
    folder: bytes = b""
    file: bytes = b""  # the whole URL without its query
    keys: tuple[int, int] = (0, 0)  # of host and domain

    def above(self, ups: int) -> bytes:
        """Return the folder `ups` levels up, or the root's."""
        folder = self.folder
        while ups and len(folder) > len(self.root) + 1:
            folder = folder[: folder.rindex(b"/", 0, -1) + 1]
            ups -= 1
        return folder


def base_of(url: str, schemes: frozenset[str]) -> Base:
    """Return the base at `url`, one that needs a parser if the scheme is not in `schemes`."""
    match = _BASE.fullmatch(url) if url.isascii() and len(url) <= MAX_URL_BYTES else None
    if match is None:
        return Base(url)
    root, scheme, name, path, file = match.groups()
    whole = f"{root}{path}{file}"
    keys = keys_of_root(root.encode()) if len(root) <= LONGEST_ROOT else None
    tidy = keys is not None and (_PLAIN_PATH.fullmatch(whole, len(root)) or canonical(whole) == whole)
    if name not in schemes or keys is None or not tidy:
        return Base(url)
    return Base(url, scheme.encode(), root.encode(), f"{root}{path}".encode(), whole.encode(), keys)


def keys_of_bases(bases: Sequence[Base], hrefs_of: Sequence[Sequence[str]]) -> npt.NDArray[np.uint64]:
    """Return for each link the keys of its page's host and domain."""
    keys = np.array([base.keys for base in bases], np.uint64).reshape(-1, 2)
    return np.repeat(keys, [len(hrefs) for hrefs in hrefs_of], axis=0)


@lru_cache(maxsize=1 << 14)
def keys_of_root(root: bytes) -> tuple[int, int] | None:
    """Return the keys of host and domain, None if `root` is not canonical scheme, host and port."""
    text = root.decode()
    if plain := PLAIN_ROOT.fullmatch(text):
        return host_keys(plain[1])
    return host_keys(split(url).host) if canonical(url := f"{text}/") == url else None
