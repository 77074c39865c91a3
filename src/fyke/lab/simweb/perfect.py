"""What a perfect crawl would do: the truth against which crawls are held.

Tests and `web` call it. It walks the map (`layout`), not the bytes, breadth first from the seeds, and knows
robots.txt by `robots.forbids`, not by parsing.

Invariant: it shares no code with the crawler it judges. Its memory grows with the expected pages, so it is for small
webs.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from fyke.lab.simweb import listings, old_tree, robots
from fyke.lab.simweb.bodies import Bodies
from fyke.lab.simweb.hosts import FTP_HOST, GOPHER_HOST
from fyke.lab.simweb.kinds import BEGINNING, FAILING, PASSING, REDIRECTING, PageKind, RobotsKind
from fyke.lab.simweb.layout import Layout, Resource, ResourceKind

Scope = Literal["host", "domain", "prefix", "web"]


@dataclass(frozen=True)
class IntendedCrawl:
    """The crawl that is meant."""

    scope: Scope = "web"  # which URLs count, as seen from the seeds
    depth: int | None = None  # most links from a seed; a redirect and a sitemap count as one
    requisites: bool = False  # also images, styles and scripts, two hops beyond the scope
    sitemaps: bool = True  # also the sitemaps that robots.txt announces
    patient: bool = True  # ask again until passing faults have passed
    old_protocols: bool = True  # also gopher and ftp, if the web has them


@dataclass(frozen=True)
class Expectation:
    """Canonical URLs by what must become of them."""

    archived: frozenset[str]  # fetched whole with status 200: pages, feeds, requisites
    requested: frozenset[str]  # everything that is asked for, except `auxiliary`
    forbidden: frozenset[str]  # met, but forbidden by robots.txt, or robots.txt cannot be had
    avoided: frozenset[str]  # linked only by links that must not be followed
    unreachable: frozenset[str]  # on hosts that have no address or do not listen
    auxiliary: frozenset[str]  # robots.txt, its redirect targets, and sitemaps
    noindex: frozenset[str]  # those of `archived` that ask not to be indexed
    passing: frozenset[str]  # those of `requested` that fail at first
    begun: frozenset[str]  # those of `requested` of which only the beginning comes; it is archived, and its links count


@dataclass
class _Found:
    archived: set[str] = field(default_factory=set)
    requested: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    avoided: set[str] = field(default_factory=set)
    unreachable: set[str] = field(default_factory=set)
    auxiliary: set[str] = field(default_factory=set)
    noindex: set[str] = field(default_factory=set)
    passing: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)

    def frozen(self) -> Expectation:
        return Expectation(**{name: frozenset(urls) for name, urls in vars(self).items()})


class _Step(NamedTuple):
    resource: Resource
    depth: int
    requisite: bool = False


class Oracle:
    """The answer of each resource, and where it leads."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._bodies = Bodies(layout)

    def links(self, resource: Resource) -> list[Resource]:
        """Return the links of a resource that may be followed (Location counts), in any order."""
        layout, host = self.layout, resource.host
        home = layout.page(layout.names.starts[host])
        if resource.kind is ResourceKind.PAGE:
            return self._page_links(resource.number)
        if resource.kind is ResourceKind.HOP:
            return [layout.redirect(resource.number, resource.step)]
        if resource.kind is ResourceKind.FEED:
            return [home, *listings.fed(host)]
        return [home] if resource.kind in _LEAVES else []

    def _page_links(self, page: int) -> list[Resource]:
        layout = self.layout
        kind, host = layout.kind(page), layout.names.host_of(page)
        if kind in REDIRECTING:
            return [layout.redirect(page)]
        if kind in BEGINNING:
            return [Resource(ResourceKind.BEGUN, host, page)]
        if kind in FAILING or kind in _LINKLESS:
            return []
        if kind is PageKind.DUPLICATE:
            return self._bodies.duplicate_links(host, layout.bits(page) >> 40 & 3)
        found = [layout.page(target) for target in layout.targets(page)]
        if page == layout.names.starts[host]:
            beside = [Resource(ResourceKind.FEED, host), Resource(ResourceKind.TRAP, host, 1)]
            found += [one for one in beside if layout.find(host, layout.target(one)) == one]
        return found

    def requisites(self, resource: Resource) -> list[Resource]:
        """Return the requisites of a resource."""
        if resource.kind is not ResourceKind.PAGE or self.layout.kind(resource.number) in _BARE:
            return []
        return self.layout.requisites(resource.number)

    def nofollow_links(self, resource: Resource) -> list[Resource]:
        """Return the links of a resource that must not be followed."""
        if resource.kind is not ResourceKind.PAGE or self.layout.kind(resource.number) in _BARE:
            return []
        page = resource.number
        return [Resource(ResourceKind.NOFOLLOWED, resource.host, page)] if self.layout.has_nofollow_link(page) else []

    def succeeds(self, resource: Resource, patient: bool = True) -> bool:
        """Return whether the resource can be had whole with status 200."""
        if resource.kind is not ResourceKind.PAGE:
            return resource.kind is not ResourceKind.HOP
        kind = self.layout.kind(resource.number)
        return kind not in FAILING | REDIRECTING and (patient or kind not in PASSING)


_LEAVES = frozenset({ResourceKind.LISTED, ResourceKind.FED, ResourceKind.NOFOLLOWED, ResourceKind.BEGUN})
_LINKLESS = frozenset({PageKind.PDF, PageKind.TEXT, PageKind.NOFOLLOW, PageKind.NOFOLLOW_HEADER})
_BARE = FAILING | REDIRECTING | {PageKind.PDF, PageKind.TEXT, PageKind.DUPLICATE}


class _Walk:
    """One breadth-first walk."""

    def __init__(self, layout: Layout, plan: IntendedCrawl, seeds: list[Resource]) -> None:
        self._layout, self._plan, self._oracle = layout, plan, Oracle(layout)
        self._seeds = seeds
        names = layout.names
        self._hosts = {seed.host for seed in seeds}
        self._domains = {names.domain_of[host] for host in self._hosts}
        self._prefixes = tuple(layout.url(seed).rpartition("/")[0] + "/" for seed in seeds)
        self._queue: deque[_Step] = deque()
        self._met: set[Resource] = set()
        self._greeted: set[tuple[int, bool]] = set()
        self.found = _Found()

    def in_scope(self, resource: Resource) -> bool:
        scope = self._plan.scope
        if scope == "host":
            return resource.host in self._hosts
        if scope == "domain":
            return self._layout.names.domain_of[resource.host] in self._domains
        return scope == "web" or self._layout.url(resource).startswith(self._prefixes)

    def run(self) -> Expectation:
        self._offer(self._seeds, 0)
        while self._queue:
            self._visit(self._queue.popleft())
        return self.found.frozen()

    def _offer(self, resources: Iterable[Resource], depth: int, requisite: bool = False) -> None:
        if self._plan.depth is not None and depth > self._plan.depth and not requisite:
            return
        for resource in resources:
            if resource not in self._met and (requisite or self.in_scope(resource)):
                self._met.add(resource)
                self._queue.append(_Step(resource, depth, requisite))

    def _visit(self, step: _Step) -> None:
        resource, plan, found, oracle = step.resource, self._plan, self.found, self._oracle
        url = self._layout.url(resource)
        if self._layout.names.dead(resource.host):
            found.unreachable.add(url)
            return
        self._greet(resource.host, step)
        if self._forbidden(resource):
            found.forbidden.add(url)
            return
        found.requested.add(url)
        page = resource.kind is ResourceKind.PAGE
        if page and self._layout.kind(resource.number) in PASSING:
            found.passing.add(url)
        if page and self._layout.only_begins(resource.number):
            found.begun.add(url)
        if oracle.succeeds(resource, plan.patient):
            found.archived.add(url)
            if page and self._layout.kind(resource.number) in (PageKind.NOINDEX, PageKind.NOINDEX_HEADER):
                found.noindex.add(url)
        elif oracle.succeeds(resource):
            return
        self._offer(oracle.links(resource), step.depth + 1)
        if plan.requisites:
            self._offer(oracle.requisites(resource), step.depth + 1, requisite=True)
        found.avoided.update(self._layout.url(one) for one in oracle.nofollow_links(resource))
        near = plan.scope == "web" or (plan.scope == "domain" and self._layout.names.domain_of[0] in self._domains)
        if page and resource.number == 0 and plan.old_protocols and near:
            self._old_protocols(step.depth)

    def _forbidden(self, resource: Resource) -> bool:
        kind = self._layout.names.robots_kind(resource.host)
        if kind is RobotsKind.FLAKY and not self._plan.patient:
            return True
        return robots.forbids(kind, self._layout.target(resource))

    def _greet(self, host: int, step: _Step) -> None:
        """Note what precedes the first request to a host: its robots.txt, and the sitemaps it names."""
        if (host, step.requisite) in self._greeted:
            return
        self._greeted.add((host, step.requisite))
        layout = self._layout
        self.found.auxiliary.add(layout.url(Resource(ResourceKind.ROBOTS, host)))
        moved = layout.robots_moved(host)
        if moved is not None:
            self.found.auxiliary.add(layout.url(moved))
        flaky = layout.names.robots_kind(host) is RobotsKind.FLAKY
        if not self._plan.sitemaps or step.requisite or (flaky and not self._plan.patient):
            return
        for sitemap in listings.announced(layout, host):
            for one in (sitemap, *listings.indexed(layout, sitemap)):
                self.found.auxiliary.add(layout.url(one))
                self._offer(listings.listed(layout, one), step.depth + 1)

    def _old_protocols(self, depth: int) -> None:
        ports, limit = self._layout.ports, self._plan.depth
        urls = []
        if ports.gopher:
            urls += [f"gopher://{GOPHER_HOST}:{ports.gopher}{target}" for target in old_tree.gopher_targets()]
        if ports.ftp:
            urls += [f"ftp://{FTP_HOST}:{ports.ftp}{target}" for target in old_tree.ftp_targets()]
        if limit is None or depth + 2 < limit:
            self.found.requested.update(urls)
            self.found.archived.update(urls)


def perfect(layout: Layout, plan: IntendedCrawl | None = None, seeds: Iterable[str] | None = None) -> Expectation:
    """Return what a perfect polite crawl by "fyke" from `seeds` (default: page 0) would do.

    Raises ValueError for a seed that the web does not know.
    """
    found = [layout.page(0)] if seeds is None else [resource_of(layout, seed) for seed in seeds]
    return _Walk(layout, plan or IntendedCrawl(), found).run()


def resource_of(layout: Layout, url: str) -> Resource:
    """Return the resource of a canonical http(s) URL. Raises ValueError if the web does not know it."""
    scheme, _, rest = url.partition("://")
    authority, _, target = rest.partition("/")
    host = layout.names.find(authority.partition(":")[0])
    if host is not None and layout.origin(host) == f"{scheme}://{authority}":
        resource = layout.find(host, "/" + target)
        if resource is not None:
            return resource
    raise ValueError(f"this web has no {url}")
