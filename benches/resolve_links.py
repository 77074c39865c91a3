"""What a link costs: `LinkResolver` by the path a link takes, against ada_url and urllib.

    python benches/resolve_links.py

Sixty links a page make this as dear as parsing; DESIGN.md asks for less than 0.1 µs a link that was
met before and 1.5 µs for one that was not.
"""

import timeit
from collections.abc import Callable
from urllib.parse import urljoin

import ada_url

from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical, locate

BASE = "http://www.example.com/section/deeper/page.html"
LINKS = 2_000
ROUNDS = 20

SHAPES: dict[str, Callable[[int], str]] = {
    "/section/page.html?id=…": lambda n: f"/section/{n % 7}/page{n}.html?id={n}",
    "page.html#part": lambda n: f"page{n}.html#part-{n % 5}",
    "../page.html": lambda n: f"../page{n}.html",
    "http://other.org/…": lambda n: f"http://www.example.org/section/{n}",
    "slow: /a/./b c": lambda n: f"/section/./page {n}",
    "slow: /%7euser": lambda n: f"/%7euser/{n}",
    "invalid: irc://…": lambda n: f"irc://irc.example.org/{n}",
}


def best(action: Callable[[], object]) -> float:
    """Microseconds a link."""
    return min(timeit.repeat(action, number=1, repeat=ROUNDS)) / LINKS * 1e6


def first_meeting(hrefs: list[str]) -> float:
    """Microseconds a link not met before, with the site known."""
    times = []
    for _ in range(ROUNDS):
        resolver = LinkResolver(10 * LINKS)
        resolver.resolve(BASE, ["/", "http://www.example.org/"])
        times.append(timeit.timeit(lambda resolver=resolver: resolver.resolve(BASE, hrefs), number=1))  # type: ignore[misc]
    return min(times) / LINKS * 1e6


def by_ada(hrefs: list[str]) -> None:
    """The join alone: no canonical form, no keys."""
    for href in hrefs:
        ada_url.join_url(BASE, href)


def by_core(hrefs: list[str]) -> None:
    """The slow path, which says what is right."""
    for href in hrefs:
        url = canonical(href, BASE)
        if url is not None:
            locate(url)


def main() -> None:
    columns = ("met before", "first time", "canonical+locate", "ada_url.join_url", "urllib.urljoin")
    print(f"{'µs a link':26}" + "".join(f"{column:>18}" for column in columns))
    for name, shape in SHAPES.items():
        hrefs = [shape(n) for n in range(LINKS)]
        known = LinkResolver(10 * LINKS)
        known.resolve(BASE, hrefs)
        figures = (
            best(lambda hrefs=hrefs, known=known: known.resolve(BASE, hrefs)),  # type: ignore[misc]
            first_meeting(hrefs),
            best(lambda hrefs=hrefs: by_core(hrefs)),  # type: ignore[misc]
            best(lambda hrefs=hrefs: by_ada(hrefs)),  # type: ignore[misc]
            best(lambda hrefs=hrefs: [urljoin(BASE, href) for href in hrefs]),  # type: ignore[misc]
        )
        print(f"{name:26}" + "".join(f"{figure:18.3f}" for figure in figures))


if __name__ == "__main__":
    main()
