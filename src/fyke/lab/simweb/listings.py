"""Sitemaps and feeds: the lists by which hosts announce pages that no page links to.

`answers` calls it for the bytes; the judge asks `layout` what exists. Invariant: a host's lists together name its
front page and all its LISTED (or FED) pages, and nothing of another host.
"""

import gzip
from xml.sax.saxutils import escape

from fyke.lab.simweb.bodies import Body
from fyke.lab.simweb.kinds import FeedKind, SitemapKind
from fyke.lab.simweb.layout import HIDDEN_PER_HOST, Layout, Resource, ResourceKind

_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def announced(layout: Layout, host: int) -> list[Resource]:
    """Return the sitemaps that the host's robots.txt names: one or none."""
    if layout.names.sitemap_kind(host) is SitemapKind.NONE:
        return []
    return [Resource(ResourceKind.SITEMAP, host)]


def indexed(layout: Layout, resource: Resource) -> list[Resource]:
    """Return the sitemaps that a sitemap names."""
    if resource.step or layout.names.sitemap_kind(resource.host) is not SitemapKind.INDEX:
        return []
    return [Resource(ResourceKind.SITEMAP, resource.host, 0, step) for step in (1, 2)]


def listed(layout: Layout, resource: Resource) -> list[Resource]:
    """Return the pages that a sitemap names."""
    host = resource.host
    if indexed(layout, resource):
        return []
    pages = [layout.page(layout.names.starts[host])]
    pages += [Resource(ResourceKind.LISTED, host, number) for number in range(HIDDEN_PER_HOST)]
    return pages[resource.step - 1 :: 2] if resource.step else pages


def fed(host: int) -> list[Resource]:
    """Return the pages that a host's feed names."""
    return [Resource(ResourceKind.FED, host, number) for number in range(HIDDEN_PER_HOST)]


def sitemap(layout: Layout, resource: Resource) -> Body:
    """Return the bytes of a sitemap."""
    kind = layout.names.sitemap_kind(resource.host)
    children = indexed(layout, resource)
    urls = [layout.url(one) for one in children or listed(layout, resource)]
    if kind is SitemapKind.TEXT:
        return Body("\n".join(urls).encode(), "text/plain; charset=utf-8")
    tag, entry = ("sitemapindex", "sitemap") if children else ("urlset", "url")
    rows = "".join(f"<{entry}><loc>\n {escape(url)} </loc></{entry}>\n" for url in urls)
    data = f"{_DECLARATION}<{tag} {_NAMESPACE}>\n{rows}</{tag}>\n".encode()
    if kind is SitemapKind.GZIP:
        return Body(gzip.compress(data, mtime=0), "application/gzip")
    return Body(data, "application/xml")


def feed(layout: Layout, host: int) -> Body:
    """Return the bytes of a feed."""
    urls = [escape(layout.url(one)) for one in fed(host)]
    home = escape(layout.url(layout.page(layout.names.starts[host])))
    if layout.names.feed_kind(host) is FeedKind.ATOM:
        rows = "".join(f'<entry><id>{u}</id><title>Item</title><link href="{u}"/></entry>\n' for u in urls)
        text = f'<feed xmlns="http://www.w3.org/2005/Atom"><link href="{home}"/>\n{rows}</feed>\n'
        return Body((_DECLARATION + text).encode(), "application/atom+xml")
    rows = "".join(f"<item><title>Item</title><link>{u}</link><guid>{u}</guid></item>\n" for u in urls)
    text = f'<rss version="2.0"><channel><title>News</title><link>{home}</link>\n{rows}</channel></rss>\n'
    return Body((_DECLARATION + text).encode(), "application/rss+xml")
