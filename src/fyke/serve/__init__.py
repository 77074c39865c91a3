"""What does a person see?

A search page, the archived copy of a page, what the crawl knows of it, and a dashboard that is live while a crawl
runs in another process; the same as a JSON API, and as metrics. `fyke serve` runs it.

    browser ─► security ─► pages, copies, dashboard, api, metrics ─► shelf ─► searcher, archive, tables, watch ─► crawl

Invariant: nothing that a crawled page wrote is run, and no address of it is asked for, by a browser that shows our
pages; what is shown is read only, but for the orders of who holds the token.
"""

from fyke.serve.server import Serving, serve

__all__ = ["Serving", "serve"]
