"""The plain web: 60,000 pages of 20 KB on 100 hosts, as files.

A page has 60 links: 50 to its own host, alternately written as a path and whole; 9 to other hosts; 1 that robots.txt
forbids. So each page is often met in two spellings, but the web has more spellings than a cache of moderate size.
Every page is reached from the first host's front page: on a host, page i leads to the pages 25i+1 … 25i+25; among
hosts, front page h leads to the front pages 9h+1 … 9h+9. All other links fall on the host's pages at random; some
pages are more popular than others.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from webs import FORBIDDEN, ROBOTS, Web
from webs.prose import Prose

HOSTS, FEWEST_HOSTS, FEWEST_PAGES_OF_HOST = 100, 10, 60
MEAN_BYTES = 20_000
OWN, ACROSS = 50, 9
BRANCHES = OWN // 2
_MARKUP_BYTES = 3_800  # of a page without its prose
_SECTIONS = ("news", "articles", "people", "shop/garden", "archive/2026", "help", "forum/threads")


def host_name(host: int) -> str:
    return f"www.site{host}.test"


def path_of(page: int) -> str:
    """Return the path of a host's page; page 0 is the front page."""
    if not page:
        return "/"
    return f"/{_SECTIONS[page % len(_SECTIONS)]}/{page * 7919 % 100_003}-page.html"


class _Links:
    """The links of pages."""

    def __init__(self, pages_of_host: list[int], seed: int) -> None:
        self._pages = pages_of_host
        self._chance = np.random.default_rng([seed, 2])

    def own(self, host: int, page: int) -> list[str]:
        """Return 50 different pages of the host, every other one written whole."""
        count = self._pages[host]
        targets = dict.fromkeys(range(min(BRANCHES * page + 1, count), min(BRANCHES * (page + 1) + 1, count)))
        while len(targets) < OWN:
            drawn = (self._chance.random(2 * OWN) ** 1.5 * count).astype(int)  # the first pages are popular
            targets |= dict.fromkeys(drawn.tolist())
            targets.pop(page, None)
        paths = [path_of(target) for target in list(targets)[:OWN]]
        whole = f"http://{host_name(host)}"
        return [path if n % 2 else whole + path for n, path in enumerate(paths)]

    def across(self, host: int, page: int) -> Iterator[str]:
        """Yield one page on each of 9 other hosts."""
        hosts = len(self._pages)
        fronts = range(0) if page else range(min(ACROSS * host + 1, hosts), min(ACROSS * (host + 1) + 1, hosts))
        others = dict.fromkeys(fronts)
        while len(others) < ACROSS:
            other = int(self._chance.integers(hosts))
            if other != host:
                others.setdefault(other)
        for other in others:
            target = 0 if other in fronts else int(self._chance.random() ** 2 * self._pages[other])
            yield f"http://{host_name(other)}{path_of(target)}"


def make(folder: Path, pages: int, seed: int) -> list[str]:
    """Write the files, one for each page, under `folder`/host name. Raises ValueError if `pages` is too small."""
    hosts = min(HOSTS, pages // FEWEST_PAGES_OF_HOST)
    if hosts < FEWEST_HOSTS:
        raise ValueError(f"a plain web has at least {FEWEST_HOSTS * FEWEST_PAGES_OF_HOST} pages")
    pages_of_host = [pages // hosts + (host < pages % hosts) for host in range(hosts)]
    links, prose = _Links(pages_of_host, seed), Prose(seed)
    for host, count in enumerate(pages_of_host):
        home = folder / host_name(host)
        home.mkdir()
        for section in _SECTIONS:
            (home / section).mkdir(parents=True, exist_ok=True)
        (home / "robots.txt").write_text(ROBOTS)
        for page, size in enumerate(prose.sizes(count, MEAN_BYTES - _MARKUP_BYTES)):
            hrefs = [*links.own(host, page), *links.across(host, page), f"{FORBIDDEN}{page}.html"]
            path = path_of(page)
            (home / (path[1:] or "index.html")).write_bytes(written(f"Page {page} of site {host}", hrefs, prose, size))
    return [host_name(host) for host in range(hosts)]


def written(title: str, hrefs: list[str], prose: Prose, size: int) -> bytes:
    """Return an HTML page with `hrefs` among `size` bytes of prose."""
    head = (
        '<!doctype html>\n<html><head><meta charset="utf-8"><title>{0}</title>'
        '<meta name="viewport" content="width=device-width"></head>\n'
        "<body><h1>{0}</h1>\n"
    )
    pieces = [head.format(title).encode()]
    for href, text in zip(hrefs, prose.slices(len(hrefs), size), strict=True):
        words, _, rest = text.partition(b" ")
        pieces.append(b'<p><a href="%b">%b</a> %b</p>\n' % (href.encode(), words or b"more", rest))
    return b"".join([*pieces, b"</body></html>\n"])


def settings(folder: Path, addresses: Mapping[str, str]) -> str:
    """Return the settings of nginx."""
    return "\n  ".join(
        f"server {{ listen {address}:80; server_name {host}; root {folder}/{host}; }}"
        for host, address in addresses.items()
    )


PLAIN = Web("plain", 60_000, f"http://{host_name(0)}/", 2, make, settings)
