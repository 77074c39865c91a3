"""Lines that stand on several pages of a site: menus, notices, breadcrumbs.

Asked for each hit, so that its snippet says something of the page. The index has nothing of this: a few pages of a site
stand for all, because a line of every page is on these. Invariant: for one state of an index the answer for a site is
always the same.
"""

from collections import Counter
from functools import lru_cache

import tantivy

SAMPLE_PAGES = 8
SAMPLE_CHARS = 60_000  # of each
SITES_REMEMBERED = 500


class RepeatedLines:
    """Repeated lines of the sites in one state of an index."""

    def __init__(self, engine: tantivy.Searcher, schema: tantivy.Schema) -> None:
        self._engine = engine
        self._schema = schema
        self.on_host = lru_cache(maxsize=SITES_REMEMBERED)(self._on_host)

    def _on_host(self, host: int) -> frozenset[str]:
        """Return the lines that more than one of a few pages of `host`, by its key, have."""
        query = tantivy.Query.term_query(self._schema, "host", host)
        counts: Counter[str] = Counter()
        for _, address in self._engine.search(query, SAMPLE_PAGES, count=False).hits:
            counts.update(set(shown(self._engine.doc(address), "text")[:SAMPLE_CHARS].split("\n")))
        return frozenset(line for line, pages in counts.items() if pages > 1)


def shown(page: tantivy.Document, field: str) -> str:
    """Return a text of a page as it is shown; `field` is one of `fyke.search.schema.SHOWN`."""
    return bytes(page.get_first(f"shown_{field}") or b"").decode("utf-8", "replace")
