"""The description of a synthetic web: one frozen record, and a few named ones.

Every creator of a web calls it. Every oddity is a share between 0 and 1, named by its word in `kinds`; all defaults
are 0, so `WebSpec()` is a plain web.

Invariant: a spec and its ports determine every byte of the web; a spec survives JSON.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class PageShares:
    """Shares among the pages without children in their host's tree, which are most pages."""

    redirect: float = 0.0
    redirect_away: float = 0.0
    chain: float = 0.0
    loop: float = 0.0
    not_found: float = 0.0
    gone: float = 0.0
    broken: float = 0.0
    flaky: float = 0.0
    throttled: float = 0.0
    throttled_date: float = 0.0
    slow: float = 0.0
    stalled: float = 0.0
    stalled_midway: float = 0.0
    reset: float = 0.0
    truncated: float = 0.0
    duplicate: float = 0.0
    noindex: float = 0.0
    noindex_header: float = 0.0
    nofollow: float = 0.0
    nofollow_header: float = 0.0
    pdf: float = 0.0
    text: float = 0.0


@dataclass(frozen=True)
class RobotsShares:
    """Shares among hosts; the rest has no robots.txt. Only hosts at the rim get an unfriendly one."""

    refused: float = 0.0
    empty: float = 0.0
    html: float = 0.0
    allow: float = 0.0
    sections: float = 0.0
    wildcards: float = 0.0
    encoded: float = 0.0
    own_group: float = 0.0
    messy: float = 0.0
    huge: float = 0.0
    moved: float = 0.0
    moved_away: float = 0.0
    delay: float = 0.0
    closed: float = 0.0
    own_closed: float = 0.0
    down: float = 0.0
    flaky: float = 0.0


@dataclass(frozen=True)
class NameShares:
    """Shares among the hosts at the rim of the tree of hosts; the rest has one address."""

    several: float = 0.0
    alias: float = 0.0
    slow: float = 0.0
    flaky: float = 0.0
    servfail: float = 0.0
    silent: float = 0.0
    missing: float = 0.0
    refused: float = 0.0


@dataclass(frozen=True)
class StyleShares:
    """How pages are written and sent: shares among all pages (`sitemap`, `feed`: among hosts)."""

    sloppy: float = 0.0  # broken HTML, links written in every odd way
    foreign: float = 0.0  # a charset other than UTF-8, declared in some way or not at all
    nofollow_link: float = 0.0  # a rel=nofollow link to a page that no other link leads to
    chunked: float = 0.0
    coded: float = 0.0  # gzip, deflate (both sorts) or br, when Accept-Encoding has it
    closing: float = 0.0  # Connection: close
    sitemap: float = 0.0
    feed: float = 0.0
    trap: float = 0.0  # among hosts with rules: a forbidden path that links on for ever


@dataclass(frozen=True)
class WebSpec:
    """A web. Sizes follow power laws: pages by host, hosts by domain, links by page."""

    seed: int = 1
    pages: int = 1000
    hosts: int = 20
    domains: int = 8
    addresses: int = 4
    links_per_page: int = 20
    mean_page_bytes: int = 6000
    http_port: int = 0  # 0: any port that is free on all addresses
    dns_port: int = 0
    https: bool = False  # all pages by https, with a certificate authority of the web's own
    gopher: bool = False
    ftp: bool = False
    dns_ttl_s: int = 300
    branching: int = 8  # children of a page in its host's tree, and of a host in the tree of hosts
    pages_exponent: float = 0.8  # the host of rank r has pages in proportion to r to the minus this
    local_share: float = 0.7  # share of the drawn links that lead to the page's own host
    tree: bool = False  # draw no links: each page has one link to it, so a lost link is a lost page
    requisites_per_page: int = 0
    media_per_host: int = 12
    crawl_delay_s: float = 0.5
    retry_after_s: int = 1
    faults_before_success: int = 1  # how often a passing fault is shown for each URL
    slow_s: float = 0.5  # seconds that a slow page or a slow name takes
    page_shares: PageShares = field(default_factory=PageShares)
    robots_shares: RobotsShares = field(default_factory=RobotsShares)
    name_shares: NameShares = field(default_factory=NameShares)
    style_shares: StyleShares = field(default_factory=StyleShares)

    def __post_init__(self) -> None:
        if not 1 <= self.domains <= self.hosts <= self.pages:
            raise ValueError("a web needs 1 <= domains <= hosts <= pages")
        if not 1 <= self.addresses <= 60_000:
            raise ValueError("a web needs 1 to 60,000 addresses")
        if self.branching < 1 or self.links_per_page < 2 * self.branching:
            raise ValueError("links_per_page must be at least twice the branching, so that the trees fit")
        if not 0 <= self.seed < 1 << 63:
            raise ValueError("seed must be a whole number from 0 to 2**63 - 1")

    def to_json(self) -> str:
        """Return the spec as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "WebSpec":
        """Return the spec that `to_json` wrote. Raises TypeError for an unknown key."""
        values: dict[str, Any] = json.loads(text)
        for name, kind in _SHARES.items():
            if name in values:
                values[name] = kind(**values[name])
        return cls(**values)


_SHARES: dict[str, Any] = {
    "page_shares": PageShares,
    "robots_shares": RobotsShares,
    "name_shares": NameShares,
    "style_shares": StyleShares,
}


def shares(record: PageShares | RobotsShares | NameShares) -> list[tuple[str, float]]:
    """Return the (word, share) pairs of one record of shares."""
    return [(one.name, getattr(record, one.name)) for one in fields(record)]


def plain(pages: int = 1000, hosts: int = 20, **changes: Any) -> WebSpec:
    """Return a web without oddities: every page answers 200, no host has a robots.txt."""
    sizes = {"domains": max(1, hosts // 3), "addresses": max(1, min(64, hosts // 4))}
    return WebSpec(pages=pages, hosts=hosts, **(sizes | changes))


def lively(pages: int = 3600, hosts: int = 120, **changes: Any) -> WebSpec:
    """Return a web with every oddity, small enough to be crawled whole within a minute."""
    odd: dict[str, Any] = {
        "domains": max(1, hosts // 3),
        "addresses": max(1, min(24, hosts // 4)),
        "gopher": True,
        "ftp": True,
        "requisites_per_page": 3,
        "pages_exponent": 0.7,
        "page_shares": PageShares(
            redirect=0.02, redirect_away=0.02, chain=0.01, loop=0.004, not_found=0.02, gone=0.01,
            broken=0.006, flaky=0.02, throttled=0.01, throttled_date=0.01, slow=0.01, stalled=0.003,
            stalled_midway=0.003, reset=0.006, truncated=0.006, duplicate=0.03, noindex=0.01,
            noindex_header=0.01, nofollow=0.01, nofollow_header=0.01, pdf=0.02, text=0.02,
        ),
        "robots_shares": RobotsShares(
            refused=0.03, empty=0.03, html=0.03, allow=0.1, sections=0.15, wildcards=0.1, encoded=0.06,
            own_group=0.06, messy=0.06, huge=0.03, moved=0.04, moved_away=0.04, delay=0.05, closed=0.04,
            own_closed=0.03, down=0.02, flaky=0.02,
        ),
        "name_shares": NameShares(
            several=0.1, alias=0.1, slow=0.03, flaky=0.03, servfail=0.02, silent=0.01, missing=0.03, refused=0.02
        ),
        "style_shares": StyleShares(
            sloppy=0.3, foreign=0.2, nofollow_link=0.05, chunked=0.2, coded=0.4, closing=0.05, sitemap=0.5,
            feed=0.3, trap=0.5,
        ),
    }  # fmt: skip
    return WebSpec(pages=pages, hosts=hosts, **(odd | changes))
