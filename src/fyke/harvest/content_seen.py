"""Which bodies were read before: a Drum that is told late (`fyke.disk.late`).

The harvest asks it for the pages of a turn. It answers at once, because a page that waits for a merge would have to
be read again from the archive.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fyke.core.urls import key_of
from fyke.core.visits import Page
from fyke.disk.late import LateDrum
from fyke.disk.store import Store
from fyke.harvest.headers import said_of_links
from fyke.harvest.media import label_of

ENTRY_BYTES = 200  # of memory, until the Drum is told


class ContentSeen(LateDrum):
    """Every body read, by a key made of its bytes and of the place where the same bytes mean the same links."""

    def __init__(self, store: Store, memory_bytes: int, state: dict[str, Any] | None = None) -> None:
        super().__init__(store, "content", state, memory_bytes=memory_bytes, entry_bytes=ENTRY_BYTES)

    def known(self, keys: Sequence[int]) -> set[int]:
        """Those of `keys` that were entered in the drum; what was entered since it was told, `entered` says."""
        self._make_room()
        held = self._drum.contains(np.array(keys, np.uint64)).tolist()
        return {key for key, there in zip(keys, held, strict=True) if there}

    def entered(self, key: int) -> bool:
        """Whether `key` was entered since the drum was told."""
        return key in self._new

    def enter(self, key: int) -> None:
        """The body with `key` was read."""
        self._new[key] = True


def places_of(page: Page) -> tuple[int, ...]:
    """The keys under which content-seen may know `page`: of its folder, and of its whole path; none without a body."""
    if not page.fingerprint:
        return ()
    path, mark, _ = page.url.partition("?")
    folder = path[: path.rindex("/") + 1]
    means = f"{page.media_type} {label_of(page.exchange)} {said_of_links(page.exchange)}"
    # No path has a question mark, so the page `/a/` itself is not taken for the folder. The link `?` leads a page with
    # a query elsewhere, and one without to itself: so what was read of the one is not known of the other.
    return tuple(page.fingerprint ^ key_of(f"{place} {means}") for place in (f"{folder}?{mark}", path))


def depends_on_name(page: Page, urls: Sequence[bytes]) -> bool:
    """Whether one of the links `urls` in `page` would lead elsewhere from a page of another name in the folder.

    Only a link that keeps the whole path of what it is relative to does, however it is written; one that leads to
    the page itself is none.
    """
    targets = b"\n".join([b"", *urls, b""])
    if b"?" not in targets and "?" not in page.url and "?" not in page.links.base:
        return False
    for url in {page.url, page.links.base}:
        path, _, query = url.encode().partition(b"?")
        if b"\n%b?" % path in targets or (query and b"\n%b\n" % path in targets):
            return True
    return False
