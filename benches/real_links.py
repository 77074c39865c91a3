"""Does `LinkResolver` give the same as the WHATWG parser, on millions of links of real pages?

    python benches/real_links.py [DIR] [--links 10000000]

Reads every HTML page below DIR (/usr/share/doc: Debian's documentation, packed pages too) and takes its links as
written. They are resolved against the page's address on one host after the other, with paths that are deeper or need
escapes, until `--links` links were compared: URL and keys with `canonical` and `locate`, one by one. Without the
compiled joiner there is nothing to compare, because every link goes to that parser.
"""

import argparse
import gzip
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from fyke.core import resolve as module
from fyke.core.resolve import LinkResolver
from fyke.core.urls import SCHEMES, canonical, locate

PLACES = (
    "http://www.example.org/", "https://docs.example.org/a/b/", "http://example.co.uk:8080/x%20y/", "http://h/?q=1&path=/",
    "https://пример.example/дом/", "http://127.0.0.1/~user/", "https://a.b.c.example.com/v1.2/;p=1/", "http://h.example//d//",
)  # fmt: skip
BATCH = 64


def written(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield path and links of each page."""
    for path in sorted(folder.rglob("*.htm*")):
        if not path.is_file():
            continue
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        nodes = LexborHTMLParser(content).css("a[href],area[href],link[href]")
        yield str(path.relative_to(folder)), [node.attributes["href"] or "" for node in nodes]


def expected(base: str, hrefs: list[str]) -> list[tuple[bytes, int, int, int]]:
    """Return the parser's result for each link that can be fetched."""
    found = (canonical(href, base) for href in hrefs)
    return [tuple(locate(url)) for url in found if url is not None and url[: url.index(":")] in SCHEMES]


def main() -> None:
    """Print the count, or the first difference and exit with 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("/usr/share/doc"))
    parser.add_argument("--links", type=int, default=10_000_000)
    asked = parser.parse_args()
    pages = list(written(asked.folder))
    if module.join is None:
        sys.exit("the joiner was not compiled")
    resolver = LinkResolver(most_bytes=1 << 40)
    compared, began = 0, time.perf_counter()
    print(f"{len(pages):,} pages, {sum(len(hrefs) for _, hrefs in pages):,} links")
    for place in PLACES:
        for first in range(0, len(pages), BATCH):
            batch = [(base, hrefs) for path, hrefs in pages[first : first + BATCH] if (base := canonical(place + path))]
            right = [link for page in batch for link in expected(*page)]
            if [tuple(one) for one in resolver.resolve(batch).locators()] != right:
                sys.exit(f"not the same: {place}, pages {first} to {first + BATCH}")
            compared += sum(len(hrefs) for _, hrefs in batch)
            if compared >= asked.links:
                break
        print(f"{compared:,} links compared, {time.perf_counter() - began:.0f} s", flush=True)
        if compared >= asked.links:
            return


if __name__ == "__main__":
    main()
