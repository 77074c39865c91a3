"""What does a person see?

A search page, the archived copy of a page, what the crawl knows of it, and a dashboard that is live while a crawl runs
in another process; the same as a JSON API, and as metrics. `fyke serve` runs it.

    browser ─► security ─► pages, copies, dashboard, api, metrics ─► shelf ─► searcher, archive, tables, watch ─► crawl

Invariant: a browser that shows our pages runs nothing that a crawled page wrote, and asks for no address of it. All is
read only, except orders by the holder of the token.
"""

from fyke.serve.server import Serving, serve

__all__ = ["Serving", "serve"]
