"""Today's web: 10,000 pages of 174 KB on 1,000 hosts, gzip, HTTPS with HTTP/2.

Pages are real documents (`documents`), the larger ones more often, with their own markup. Some 144 of a page's links
lead to other pages and are rewritten: most to pages of its own host, as paths, relative or whole, one in seven with a
query, some with a fragment; one is forbidden by robots.txt. Its other links lead within the page. Every page is
reached from the first host's front page: page i leads to the pages 8i+1 … 8i+8. The web has its own certificate
authority, and a certificate for each host.
"""

import html
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import trustme
from isal import igzip

from webs import FORBIDDEN, ROBOTS, Web
from webs.documents import Document, documents

HOSTS = 1_000
PAGES_OF_HOST = 10  # in the mean; a few hosts have a hundred
MEAN_BYTES = 174_000
MEAN_LINKS = 144
_BRANCHES = 8
_OWN = 0.7
_GZIP_LEVEL = 2
_SPREAD = 0.7


def host_name(host: int) -> str:
    return f"www.page{host}.test"


class _Map:
    """The place of each page: its host and its path."""

    def __init__(self, pages: int, chance: np.random.Generator) -> None:
        hosts = min(HOSTS, max(2, pages // PAGES_OF_HOST))
        weights = (np.arange(hosts) + 10.0) ** -0.8
        sizes = 1 + chance.multinomial(pages - hosts, weights / weights.sum())
        of_page = chance.permutation(np.repeat(np.arange(hosts), sizes))
        first = int(np.flatnonzero(of_page == 0)[0])
        of_page[[0, first]] = of_page[[first, 0]]
        self.hosts = hosts
        self.host_of: list[int] = of_page.tolist()
        self.pages_of: list[list[int]] = [np.flatnonzero(of_page == host).tolist() for host in range(hosts)]
        self._fronts = {pages[0] for pages in self.pages_of}

    def path_of(self, page: int) -> str:
        if page in self._fronts:
            return "/"
        query = f"?id={page}&lang=en" if page % 7 == 3 else ""
        return f"/{('docs', 'blog/2026', 'wiki')[page % 3]}/{page * 7919 % 100_003}.html{query}"


class _Links:
    """The new targets of a page's links."""

    def __init__(self, places: _Map, chance: np.random.Generator) -> None:
        self._places = places
        self._chance = chance
        self._pages = len(places.host_of)

    def targets(self, page: int, count: int) -> list[int]:
        """Return `count` different pages, or all there are."""
        own = self._places.pages_of[self._places.host_of[page]]
        found = dict.fromkeys(range(_BRANCHES * page + 1, min(_BRANCHES * page + 1 + _BRANCHES, self._pages)))
        near = min(int(_OWN * count), len(own))
        found |= dict.fromkeys(own[n] for n in self._chance.permutation(len(own))[:near].tolist())
        found.pop(page, None)
        count = min(count, self._pages - 1)
        while len(found) < count:
            popular = (self._chance.random(2 * count) ** 2 * self._pages).astype(int)
            found |= dict.fromkeys(popular.tolist())
            found.pop(page, None)
        return list(found)[:count]

    def hrefs(self, page: int, count: int) -> Iterator[bytes]:
        """Yield `count` links as written in `page`, the forbidden one first."""
        yield f"{FORBIDDEN}{page}".encode()
        host = self._places.host_of[page]
        above = "../" * (self._places.path_of(page).partition("?")[0].count("/") - 1)
        for target in self.targets(page, count - 1):
            path, other = self._places.path_of(target), self._places.host_of[target]
            way = target % 5
            if other != host or way == 0:
                path = f"https://{host_name(other)}{path}"
            elif way == 1:
                path = (above or "./") + path[1:]
            yield html.escape(path + ("#part" if target % 11 == 0 else "")).encode()


def make(folder: Path, pages: int, seed: int) -> list[str]:
    """Write pages, as `.gz`, under `folder`/host name, and certificates under `folder`/tls."""
    chance = np.random.default_rng([seed, 3])
    texts = documents()
    places = _Map(pages, chance)
    links = _Links(places, chance)
    chosen = chance.choice(len(texts), pages, p=_weights(texts))
    wanted = _links_wanted(np.array([text.links for text in texts])[chosen], chance)
    for host in range(places.hosts):
        home = folder / host_name(host)
        for section in ("docs", "blog/2026", "wiki"):
            (home / section).mkdir(parents=True, exist_ok=True)
        _write(home / "robots.txt", ROBOTS.encode())
    for number in np.unique(chosen).tolist():
        around, hrefs = texts[number].cut()
        for page in np.flatnonzero(chosen == number).tolist():
            file = places.path_of(page).partition("?")[0][1:] or "index.html"
            content = _rewritten(around, hrefs, list(links.hrefs(page, wanted[page])), chance)
            _write(folder / host_name(places.host_of[page]) / file, content)
    names = [host_name(host) for host in range(places.hosts)]
    _certify(folder, names)
    return names


def _write(file: Path, content: bytes) -> None:
    file.with_name(file.name + ".gz").write_bytes(igzip.compress(content, _GZIP_LEVEL, mtime=0))


def _weights(texts: list[Document]) -> np.ndarray:
    """Return the probability of each text, so that their mean size is `MEAN_BYTES`."""
    sizes = np.array([text.size for text in texts], float)
    low, high = -3.0, 3.0
    while high - low > 1e-6:
        power = (low + high) / 2
        weights = sizes**power / (sizes**power).sum()
        low, high = (power, high) if weights @ sizes < MEAN_BYTES else (low, power)
    return weights


def _links_wanted(most: np.ndarray, chance: np.random.Generator) -> list[int]:
    """Return how many links lead out of each page, at most `most`: `MEAN_LINKS` in the mean, fewer in most pages."""
    drawn = chance.lognormal(0, _SPREAD, len(most))
    low, high = 1.0, 10_000.0
    while high - low > 0.01:
        scale = (low + high) / 2
        wanted = np.clip(drawn * scale, _BRANCHES + 1, most)
        low, high = (scale, high) if wanted.mean() < MEAN_LINKS else (low, scale)
    return wanted.astype(int).tolist()


def _rewritten(around: list[bytes], hrefs: list[bytes], new: list[bytes], chance: np.random.Generator) -> bytes:
    """Return the text with `new` links in it, anywhere; its other links lead within the page."""
    kept = [b"#" + href.partition(b"#")[2] for href in hrefs]
    for place, href in zip(chance.permutation(len(kept)).tolist(), new, strict=False):
        kept[place] = href
    pieces = [around[0]]
    for href, piece in zip(kept, around[1:], strict=True):
        pieces += (href, piece)
    return b"".join(pieces)


def _certify(folder: Path, hosts: list[str]) -> None:
    authority = trustme.CA(organization_name="Today's web")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    (folder / "tls").mkdir()
    for host in hosts:
        pem = authority.issue_cert(host).private_key_and_cert_chain_pem
        pem.write_to_path(str(folder / "tls" / f"{host}.pem"))


def settings(folder: Path, addresses: Mapping[str, str]) -> str:
    """Return the settings of nginx. Styles, scripts and images of the documents are there, and empty."""
    return "\n  ".join(
        f"server {{ listen {address}:443 ssl http2; server_name {host}; root {folder}/{host};"
        f" ssl_certificate {folder}/tls/{host}.pem; ssl_certificate_key {folder}/tls/{host}.pem;"
        " gzip_static always; gunzip on; rewrite ^/$ /index.html;"
        r" location ~ \.(css|js|png|gif|jpg|svg|ico)$ { return 204; } }"
        for host, address in addresses.items()
    )


TODAY = Web("today", 10_000, f"https://{host_name(0)}/", 1, make, settings, tls=True)
