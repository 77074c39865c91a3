"""simweb: what if the web were on this machine?

A seeded synthetic web with its own DNS (names under `.sim`) and servers on 127.0.0.0/8. It judges the crawler's laws,
and newcomers crawl it in their first minute. The way of a URL: `dns` gives the address, `http` reads the request,
`answers` decides, `layout` says which resource is meant, `bodies` writes it, `ledger` notes it. Afterwards `perfect`
says what should have been fetched, and `audit` whether that was done politely.

Bounded: nothing is kept per page, so a web of a billion pages takes no more memory than one of a thousand. Invariant:
it imports nothing of the crawler.
"""

from fyke.lab.simweb.audit import AuditRule, Violation, audit_politeness
from fyke.lab.simweb.child import RunningWeb, running_web
from fyke.lab.simweb.layout import Layout, Ports, Resource, ResourceKind
from fyke.lab.simweb.ledger import Ledger, LedgerRow, read_queries, read_requests, table_of
from fyke.lab.simweb.perfect import Expectation, IntendedCrawl, perfect, resource_of
from fyke.lab.simweb.spec import NameShares, PageShares, RobotsShares, StyleShares, WebSpec, lively, plain
from fyke.lab.simweb.web import Web, serve

__all__ = [
    "AuditRule",
    "Expectation",
    "IntendedCrawl",
    "Layout",
    "Ledger",
    "LedgerRow",
    "NameShares",
    "PageShares",
    "Ports",
    "Resource",
    "ResourceKind",
    "RobotsShares",
    "RunningWeb",
    "StyleShares",
    "Violation",
    "Web",
    "WebSpec",
    "audit_politeness",
    "lively",
    "perfect",
    "plain",
    "read_queries",
    "read_requests",
    "resource_of",
    "running_web",
    "serve",
    "table_of",
]  # fmt: skip
