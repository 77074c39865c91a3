"""The same pages as files, for benchmarks against a real web server.

Called by benchmarks: `write_tree` makes a directory for each host, to be served as name-based hosts.
Invariant: files depend on the arguments alone; every link is to a page that is written.
"""

from pathlib import Path

from fyke.lab.simweb.dice import words
from fyke.lab.simweb.text import Filler

PAGES_PER_FOLDER = 1000
_HEAD = "<!doctype html>\n<html><head><title>Page {0}</title></head><body>\n<h1>Page {0}</h1>\n"


def tree_host(host: int) -> str:
    """The name of a host of the tree."""
    return f"t{host}.d{host}.sim"


def tree_path(page: int, hosts: int) -> str:
    """The path of a page on its host, which is host `page % hosts`; the hosts' first pages are `/`."""
    local = page // hosts
    return f"/{local // PAGES_PER_FOLDER}/{local}.html" if local else "/"


def tree_url(page: int, hosts: int, port: int) -> str:
    """The URL of a page."""
    where = "" if port == 80 else f":{port}"
    return f"http://{tree_host(page % hosts)}{where}{tree_path(page, hosts)}"


def write_tree(
    folder: Path, pages: int, hosts: int, port: int, page_bytes: int = 21_000, links: int = 60, seed: int = 1
) -> list[str]:
    """Write `pages` pages for `hosts` hosts under `folder`/host name; the hosts' front URLs.

    Every page is reached from page 0: page `i` leads to `4i+1 … 4i+4`; the other links go mostly to few.
    Raises ValueError when `links` has no room for those four.
    """
    if links < 4 or not 1 <= hosts <= pages:
        raise ValueError("a tree needs at least 4 links a page and 1 <= hosts <= pages")
    filler = Filler(seed, links, max(0, page_bytes // links - 64))
    anchors: dict[int, bytes] = {}
    for page in range(pages):
        targets = list(range(min(4 * page + 1, pages), min(4 * page + 5, pages)))
        draws = words(seed, b"tree", page, links + 1)
        targets += [int((draw / 2**32) ** 3 * pages) for draw in draws[len(targets) + 1 :]]
        pieces = [_HEAD.format(page).encode()]
        # Sizes of pages vary by slices of unlike length; the mean is that of the five pools.
        for target, prose in zip(targets, filler.paragraphs(draws[0], links), strict=True):
            if target not in anchors:
                words_of_link = filler.anchors[target % len(filler.anchors)].decode()
                anchors[target] = f'<a href="{tree_url(target, hosts, port)}">{words_of_link}</a>\n'.encode()
            pieces += (anchors[target], prose)
        name = tree_path(page, hosts)
        path = folder / tree_host(page % hosts) / ("index.html" if name == "/" else name[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(pieces) + b"</body></html>\n")
    return [tree_url(host, hosts, port) for host in range(hosts)]
