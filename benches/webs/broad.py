"""The broad web: 6,000 pages of 10 KB on 2,000 hosts, as files.

A crawl of the whole web meets a new host with every few pages, and each costs a name, a connection and a robots.txt.
A host has three pages: the front page leads to the two others and to the front pages of twelve other hosts, the
others lead to the front page and to twelve other hosts' front pages.
"""

from pathlib import Path

import numpy as np

from webs import FORBIDDEN, ROBOTS, Web
from webs.plain import host_name, settings, written
from webs.prose import Prose

PAGES_OF_HOST = 3
_ACROSS, _BRANCHES = 12, 4
_MEAN_BYTES = 10_000
_PATHS = ("/", "/about.html", "/work.html")


def make(folder: Path, pages: int, seed: int) -> list[str]:
    """Write the files, one for each page, under `folder`/host name."""
    hosts = pages // PAGES_OF_HOST
    chance, prose = np.random.default_rng([seed, 3]), Prose(seed)
    for host in range(hosts):
        home = folder / host_name(host)
        home.mkdir()
        (home / "robots.txt").write_text(ROBOTS)
        next_fronts = range(min(_BRANCHES * host + 1, hosts), min(_BRANCHES * (host + 1) + 1, hosts))
        for page, size in enumerate(prose.sizes(PAGES_OF_HOST, _MEAN_BYTES)):
            others = [*next_fronts, *chance.integers(hosts, size=_ACROSS).tolist()][:_ACROSS]
            own = [path for path in _PATHS if path != _PATHS[page]]
            hrefs = [*own, *(f"http://{host_name(other)}/" for other in others), f"{FORBIDDEN}{page}.html"]
            text = written(f"{_PATHS[page]} of site {host}", hrefs, prose, size)
            (home / (_PATHS[page][1:] or "index.html")).write_bytes(text)
    return [host_name(host) for host in range(hosts)]


BROAD = Web("broad", 6_000, f"http://{host_name(0)}/", 1, make, settings)
