"""The bodies read before: a Drum that is told late (`fyke.disk.late`).

The harvest asks it for the pages of a turn. It answers at once, because a page that waited for a merge would have to be
read again from the archive.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fyke.core.pages import Page
from fyke.core.urls import key_of
from fyke.disk.late import LateDrum
from fyke.disk.store import Store
from fyke.harvest.headers import said_of_links
from fyke.harvest.media import label_of

ENTRY_BYTES = 200  # of memory for each key until the Drum is told


class ContentSeen(LateDrum):
    """Every body read, by a key of its bytes and of the place where the same bytes mean the same links."""

    def __init__(self, store: Store, memory_bytes: int, state: dict[str, Any] | None = None) -> None:
        super().__init__(store, "content", state, memory_bytes=memory_bytes, entry_bytes=ENTRY_BYTES)

    def known(self, keys: Sequence[int]) -> set[int]:
        """Return the `keys` that the Drum has. For those entered since it was told, ask `entered`."""
        self._make_room()
        held = self._drum.contains(np.array(keys, np.uint64)).tolist()
        return {key for key, there in zip(keys, held, strict=True) if there}

    def entered(self, key: int) -> bool:
        """Return whether `key` was entered since the Drum was told."""
        return key in self._new

    def enter(self, key: int) -> None:
        """Note that the body with `key` was read."""
        self._new[key] = True


def keys_of(page: Page) -> tuple[int, ...]:
    """Return the keys under which content-seen may know `page`: of its folder and of its whole path; none without a
    body."""
    if not page.fingerprint:
        return ()
    path, mark, _ = page.url.partition("?")
    folder = path[: path.rindex("/") + 1]
    means = f"{page.media_type} {label_of(page.exchange)} {said_of_links(page.exchange)}"
    # No path has a question mark, so the page `/a/` is not taken for the folder. The link `?` leads a page with a query
    # elsewhere, and a page without one to itself. So a body read with a query is not known without one.
    return tuple(page.fingerprint ^ key_of(f"{place} {means}") for place in (f"{folder}?{mark}", path))


def depends_on_name(page: Page, urls: Sequence[bytes]) -> bool:
    """Return whether any of the links `urls` in `page` would lead elsewhere from a page of another name in the folder.

    A link does if it keeps the whole path of its base, however written, except a link to the page itself.
    """
    targets = b"\n".join([b"", *urls, b""])
    if b"?" not in targets and "?" not in page.url and "?" not in page.links.base:
        return False
    for url in {page.url, page.links.base}:
        path, _, query = url.encode().partition(b"?")
        if b"\n%b?" % path in targets or (query and b"\n%b\n" % path in targets):
            return True
    return False
