"""What does a link cost? `LinkResolver` by how links are written and how many were met, against ada_url.

    python benches/resolve_links.py

Links come in batches of 64 pages with 60 links each. The cost must not depend on the number of earlier links, because
only the keys of hosts are remembered.
"""

import time
from collections.abc import Callable, Iterator
from itertools import count, islice

import ada_url
from usage import arguments

from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical, locate

PAGES, LINKS = 64, 60
BASE = "http://www.example.com/section/deeper/page.html"
Page = tuple[str, list[str]]

SHAPES: dict[str, Callable[[int], str]] = {
    "/section/page.html?id=…": lambda n: f"/section/{n % 7}/page{n}.html?id={n}",
    "page.html#part": lambda n: f"page{n}.html#part-{n % 5}",
    "../page.html": lambda n: f"../page{n}.html",
    "http://other.org/…": lambda n: f"http://www.example{n % 97}.org/section/{n}",
    "//other.org/…": lambda n: f"//www.example{n % 97}.org/section/{n}",
    "/%D0%B0…": lambda n: f"/%D0%B0%D0%B1/{n}",
    "new hosts": lambda n: f"http://www{n}.example.org/section",
    "by the parser: /%7euser": lambda n: f"/%7euser/{n}",
    "?page=…": lambda n: f"?page={n}",
    "no link: irc://…": lambda n: f"irc://irc.example.org/{n}",
}


def pages_of(shape: Callable[[int], str]) -> Iterator[list[Page]]:
    """Yield batches of pages whose links are all different."""
    numbers = count()
    while True:
        yield [(BASE, [shape(next(numbers)) for _ in range(LINKS)]) for _ in range(PAGES)]


def cost(resolve: Callable[[list[Page]], object], batches: list[list[Page]]) -> float:
    """Return microseconds a link."""
    began = time.thread_time()
    for batch in batches:
        resolve(batch)
    return (time.thread_time() - began) / (len(batches) * PAGES * LINKS) * 1e6


def by_core(pages: list[Page]) -> None:
    """Resolve by the parser, which defines the right result."""
    for base, hrefs in pages:
        for href in hrefs:
            url = canonical(href, base)
            if url is not None:
                locate(url)


def by_ada(pages: list[Page]) -> None:
    """Join only: no canonical form, no keys."""
    for base, hrefs in pages:
        for href in hrefs:
            ada_url.join_url(base, href)


def main() -> None:
    arguments(__doc__)
    columns = ("LinkResolver", "canonical+locate", "ada_url.join_url")
    print(f"{'µs a link':26}" + "".join(f"{column:>18}" for column in columns))
    for name, shape in SHAPES.items():
        batches = list(islice(pages_of(shape), 12))
        figures = [cost(way, batches) for way in (LinkResolver().resolve, by_core, by_ada)]
        print(f"{name:26}" + "".join(f"{figure:18.3f}" for figure in figures))
    print("\nµs a link, by how many different ones came before")
    resolver, source, met = LinkResolver(), pages_of(SHAPES["http://other.org/…"]), 0
    for size in (10**4, 10**5, 10**6):
        batches = list(islice(source, (size - met) // (PAGES * LINKS) + 1))
        met += len(batches) * PAGES * LINKS
        print(f"{met:>26,}{cost(resolver.resolve, batches[-25:]):18.3f}")
        for batch in batches[:-25]:
            resolver.resolve(batch)


if __name__ == "__main__":
    main()
