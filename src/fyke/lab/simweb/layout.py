"""The map of the web: which URL names which resource, and which page links to which.

The servers call it to resolve a URL, `bodies` to find links, and the judge to learn what a perfect crawl would meet.
Pages are numbers from 0. The pages of a host are consecutive and form a tree: local page `i` leads to `b*i+1 …
b*i+b`. Only leaves may be odd, so every page that robots.txt allows can be reached from page 0 by ordinary pages.
Further links are drawn, most of them to few pages: in-degrees follow a power law.

Invariant: `find(host, target(r)) == r` for every resource. Bounded: nothing is held per page.
"""

import re
from enum import StrEnum
from typing import NamedTuple

from fyke.lab.simweb.dice import Chooser, bits, words
from fyke.lab.simweb.hosts import HostNames
from fyke.lab.simweb.kinds import BEGINNING, COSTLY, FeedKind, NameKind, PageKind, RobotsKind, SitemapKind
from fyke.lab.simweb.spec import WebSpec, shares

SECTIONS = (
    "news", "notes", "archive", "people", "harbour", "rivers", "~ann", "library",
    "tools", "maps", "letters", "weather", "private", "drafts", "caf%C3%A9", "a%20b",
)  # fmt: skip
ORDINARY_SECTIONS = 12  # the first sections, which no robots.txt forbids
HIDDEN_PER_HOST = 3
MEDIA_TYPES = ("css", "js", "png")
REDIRECT_STATUS = (301, 302, 303, 307, 308)

_NUMBER = re.compile(r"\d+")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class ResourceKind(StrEnum):
    """The sorts of things that have a URL."""

    PAGE = "page"
    HOP = "hop"  # an intermediate redirect
    ROBOTS = "robots"
    ROBOTS_MOVED = "robots_moved"  # the target of a moved robots.txt; `number` is the host it is for
    SITEMAP = "sitemap"
    FEED = "feed"
    LISTED = "listed"  # a page that only the sitemap names
    FED = "fed"  # a page that only the feed names
    NOFOLLOWED = "fruit"  # a page to which only links lead that must not be followed
    BEGUN = "begun"  # a page to which only the beginning of a page leads that never comes whole
    MEDIA = "media"  # a requisite
    TRAP = "trap"


class Resource(NamedTuple):
    """One thing with a URL. `number` is the page for PAGE, HOP, NOFOLLOWED and BEGUN, otherwise a number on the
    host."""

    kind: ResourceKind
    host: int
    number: int = 0
    step: int = 0


class Ports(NamedTuple):
    """The ports of a web."""

    http: int
    dns: int = 0
    gopher: int = 0
    ftp: int = 0


class Layout:
    """The map of one web on given ports."""

    def __init__(self, spec: WebSpec, ports: Ports) -> None:
        self.spec, self.ports = spec, ports
        self.names = HostNames(spec)
        kinds = [(PageKind(word), share) for word, share in shares(spec.page_shares)]
        self._kinds = Chooser(kinds, PageKind.ORDINARY)
        self.scheme = "https" if spec.https else "http"
        usual = 443 if spec.https else 80
        self._port = "" if ports.http == usual else f":{ports.http}"
        self._drawn = spec.links_per_page
        self._local = int(spec.local_share * 256)

    # -- pages -------------------------------------------------------------------------------------

    def bits(self, page: int) -> int:
        """Return the 64 bits that decide a page: 0-19 kind, 20-23 section, 24-25 form, 26- how it is written."""
        return bits(self.spec.seed, b"page", page)

    def children(self, page: int) -> range:
        """Return the pages of the same host to which a page is sure to link."""
        host = self.names.host_of(page)
        start, end, branching = self.names.starts[host], self.names.starts[host + 1], self.spec.branching
        first = start + branching * (page - start) + 1
        return range(min(first, end), min(first + branching, end))

    def kind(self, page: int) -> PageKind:
        """Return what the server does when asked for the page."""
        if self._kinds.constant:
            return PageKind.ORDINARY
        host = self.names.host_of(page)
        if page == self.names.starts[host] or self.children(page):
            return PageKind.ORDINARY
        kind = self._kinds.pick(self.bits(page))
        if kind in COSTLY and not self.names.at_rim(host):
            return PageKind.ORDINARY
        return kind

    def targets(self, page: int) -> list[int]:
        """Return the pages to which a page links, in order of the links; repeats happen."""
        names, spec = self.names, self.spec
        host = names.host_of(page)
        start, end = names.starts[host], names.starts[host + 1]
        first = start + spec.branching * (page - start) + 1
        found = list(range(first, min(first + spec.branching, end))) if first < end else []
        if page == start:
            found += [names.starts[child] for child in names.children(host)]
        if spec.tree:
            return found + [page] * (self._drawn - len(found))
        size, pages, local = end - start, spec.pages, self._local
        for draw in words(spec.seed, b"links", page, self._drawn - len(found)):
            share = (draw >> 8) * _PER_24_BITS
            if draw & 255 < local:
                found.append(start + int(share * share * share * size))
            else:
                found.append(int(share * share * share * pages))
        return found

    def open_page(self, host: int, draw: int) -> int:
        """Return an ordinary page of a host, chosen by `draw`."""
        size = self.names.size(host)
        inner = max(1, -(-(size - 1) // self.spec.branching))
        return self.names.starts[host] + draw % inner

    def hops(self, page: int) -> int:
        """Return how many redirects lie between a redirecting page and its final target."""
        kind = self.kind(page)
        if kind is PageKind.CHAIN:
            return 1 + (self.bits(page) >> 30) % 3
        return 1 if kind is PageKind.LOOP else 0

    def redirect(self, page: int, step: int = 0) -> Resource:
        """Return where a redirecting page (`step` 0) or its hop number `step` leads."""
        host, draw = self.names.host_of(page), self.bits(page) >> 32
        kind = self.kind(page)
        if step < self.hops(page):
            return Resource(ResourceKind.HOP, host, page, step + 1)
        if kind is PageKind.LOOP:
            return Resource(ResourceKind.PAGE, host, page)
        if kind is PageKind.REDIRECT_AWAY:
            # The front page of a host at the rim may be shut; its parent's pages are open.
            away = max(0, (draw % self.names.hosts - 1) // self.spec.branching)
            return Resource(ResourceKind.PAGE, away, self.open_page(away, draw >> 8))
        return Resource(ResourceKind.PAGE, host, self.open_page(host, draw))

    def redirect_status(self, page: int, step: int = 0) -> int:
        """Return the status with which a page redirects."""
        return REDIRECT_STATUS[(self.bits(page) + step) % len(REDIRECT_STATUS)]

    def requisites(self, page: int) -> list[Resource]:
        """Return the images, styles and scripts of a page; some lie on host 0."""
        found = []
        for number in range(self.spec.requisites_per_page):
            draw = bits(self.spec.seed, b"requisite", page * 16 + number)
            host = 0 if draw & 7 == 0 else self.names.host_of(page)
            found.append(Resource(ResourceKind.MEDIA, host, (draw >> 8) % self.spec.media_per_host))
        return found

    def has_nofollow_link(self, page: int) -> bool:
        """Return whether a page has a link with rel=nofollow to a page found nowhere else."""
        if self.kind(page) in (PageKind.NOFOLLOW, PageKind.NOFOLLOW_HEADER):
            return True
        share = self.spec.style_shares.nofollow_link
        return share > 0 and (self.bits(page) >> 44 & 0xFFFF) < share * 0x10000

    def only_begins(self, page: int) -> bool:
        """Return whether only the beginning of a page comes, with a link to a page found nowhere else."""
        return self.kind(page) in BEGINNING

    # -- URLs --------------------------------------------------------------------------------------

    def page(self, page: int) -> Resource:
        """Return the resource of a page."""
        return Resource(ResourceKind.PAGE, self.names.host_of(page), page)

    def origin(self, host: int) -> str:
        """Return scheme, name and port of a host."""
        return f"{self.scheme}://{self.names.name(host)}{self._port}"

    def url(self, resource: Resource) -> str:
        """Return the canonical URL of a resource."""
        return self.origin(resource.host) + self.target(resource)

    def target(self, resource: Resource) -> str:
        """Return the path and query of a resource."""
        kind, host, number, step = resource
        if kind is ResourceKind.PAGE:
            return self._page_target(host, number)
        if kind in _OF_PAGES:
            local = number - self.names.starts[host]
            return f"/hop/{local}-{step}" if kind is ResourceKind.HOP else f"/{kind}/{local}.html"
        if kind is ResourceKind.SITEMAP:
            return self._sitemap_target(host, step)
        return {
            ResourceKind.ROBOTS: "/robots.txt",
            ResourceKind.ROBOTS_MOVED: f"/robots-of/{number}.txt",
            ResourceKind.FEED: "/atom.xml" if self.names.feed_kind(host) is FeedKind.ATOM else "/feed.xml",
            ResourceKind.LISTED: f"/listed/{number}.html",
            ResourceKind.FED: f"/fed/{number}.html",
            ResourceKind.MEDIA: f"/m/{number}.{MEDIA_TYPES[number % 3]}",
            ResourceKind.TRAP: f"/trap/{number}/",
        }[kind]

    def _page_target(self, host: int, page: int) -> str:
        local = page - self.names.starts[host]
        if local == 0:
            return "/"
        form = self.form(page, host, self.bits(page))
        return form % local

    def form(self, page: int, host: int, draw: int) -> str:
        """Return the path of a page (not a front page) with bits `draw`, with `%d` for its local number."""
        names, spec = self.names, self.spec
        if spec.branching * (page - names.starts[host]) + 1 < names.starts[host + 1] - names.starts[host]:
            return _INNER_FORMS[draw >> 20 & 63]
        if not self._kinds.constant:
            kind = self.kind(page)
            if kind is PageKind.PDF or kind is PageKind.TEXT:
                return _OUTER_FORMS[draw >> 20 & 15].replace("html", "pdf" if kind is PageKind.PDF else "txt")
        return _OUTER_FORMS[draw >> 20 & 63]

    def _sitemap_target(self, host: int, step: int) -> str:
        kind = self.names.sitemap_kind(host)
        if kind is SitemapKind.INDEX:
            return "/sitemap-index.xml" if step == 0 else f"/sitemap-{step}.xml"
        return {SitemapKind.GZIP: "/sitemap.xml.gz", SitemapKind.TEXT: "/sitemap.txt"}.get(kind, "/sitemap.xml")

    def find(self, host: int, target: str) -> Resource | None:
        """Return the resource at a path and query of a host, however its escapes are written, or None."""
        if "%" in target:
            target = _ESCAPE.sub(_plain_escape, target)
        for resource in self._candidates(host, target):
            if self._exists(resource) and self.target(resource) == target:
                return resource
        return None

    def _candidates(self, host: int, target: str) -> list[Resource]:
        start = self.names.starts[host]
        if target == "/":
            return [Resource(ResourceKind.PAGE, host, start)]
        found = [int(number) for number in _NUMBER.findall(target.rpartition("/sitemap-")[2])[-2:]]
        section = target[1:].partition("/")[0]
        if section in _PLAIN_SECTIONS:
            number = found[-1] if found else -1
            kind = _PLAIN_SECTIONS[section]
            return [Resource(kind, host, start + number if kind in _OF_PAGES else number)]
        if section == "hop":
            return [Resource(ResourceKind.HOP, host, start + found[0], found[1])] if len(found) == 2 else []
        pages = [Resource(ResourceKind.PAGE, host, start + found[-1])] if found else []
        steps = [Resource(ResourceKind.SITEMAP, host, 0, step) for step in (0, *found[-1:])]
        return [*pages, Resource(ResourceKind.ROBOTS, host), Resource(ResourceKind.FEED, host), *steps]

    def _exists(self, resource: Resource) -> bool:
        kind, host, number, step = resource
        if kind is ResourceKind.PAGE or kind in _OF_PAGES:
            there = self.names.starts[host] <= number < self.names.starts[host + 1]
            return there and (kind is ResourceKind.PAGE or self._has(number, kind, step))
        if kind is ResourceKind.ROBOTS_MOVED:
            return 0 <= number < self.names.hosts and self.robots_moved(number) == resource
        sitemap, feed = self.names.sitemap_kind(host), self.names.feed_kind(host)
        limits = {
            ResourceKind.SITEMAP: sitemap is not SitemapKind.NONE
            and step <= (2 if sitemap is SitemapKind.INDEX else 0),
            ResourceKind.FEED: feed is not FeedKind.NONE,
            ResourceKind.LISTED: sitemap is not SitemapKind.NONE and number < HIDDEN_PER_HOST,
            ResourceKind.FED: feed is not FeedKind.NONE and number < HIDDEN_PER_HOST,
            ResourceKind.MEDIA: number < self.spec.media_per_host,
            ResourceKind.TRAP: self.names.has_trap(host),
        }
        return number >= 0 and limits.get(kind, True)

    def _has(self, page: int, kind: ResourceKind, step: int) -> bool:
        if kind is ResourceKind.HOP:
            return 1 <= step <= self.hops(page)
        return self.has_nofollow_link(page) if kind is ResourceKind.NOFOLLOWED else self.only_begins(page)

    def robots_moved(self, host: int) -> Resource | None:
        """Return the new place of a host's robots.txt, or None if it was not moved."""
        kind = self.names.robots_kind(host)
        if kind is RobotsKind.MOVED:
            return Resource(ResourceKind.ROBOTS_MOVED, host, host)
        return Resource(ResourceKind.ROBOTS_MOVED, 0, host) if kind is RobotsKind.MOVED_AWAY else None

    def alias(self, host: int) -> str | None:
        """Return the name to which the host's CNAME points, or None."""
        if self.names.name_kind(host) is NameKind.ALIAS:
            return f"edge{host}.d{self.names.domain_of[host]}.sim"
        return None


_PER_24_BITS = 1.0 / (1 << 24)


def _forms(sections: int) -> list[str]:
    """Return paths by 4 bits for the section and 2 for the form, with `%d` for the local number."""
    endings = ("%d.html", "%d.html", "%d/", "page?id=%d")
    folders = [SECTIONS[place % sections].replace("%", "%%") for place in range(16)]
    return [f"/{folder}/{ending}" for ending in endings for folder in folders]


_INNER_FORMS = _forms(ORDINARY_SECTIONS)
_OUTER_FORMS = _forms(len(SECTIONS))
_OF_PAGES = frozenset({ResourceKind.HOP, ResourceKind.NOFOLLOWED, ResourceKind.BEGUN})
_PLAIN_SECTIONS = {
    "robots-of": ResourceKind.ROBOTS_MOVED,
    "listed": ResourceKind.LISTED,
    "fed": ResourceKind.FED,
    "fruit": ResourceKind.NOFOLLOWED,
    "begun": ResourceKind.BEGUN,
    "m": ResourceKind.MEDIA,
    "trap": ResourceKind.TRAP,
}


def _plain_escape(match: re.Match[str]) -> str:
    byte = int(match[1], 16)
    return chr(byte) if byte in _UNRESERVED else f"%{match[1].upper()}"
