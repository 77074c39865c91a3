"""Which numbers in the text of a site's pages change at every request?

"Served 48,213 times", "made in 0.031 seconds": because of them no two answers are the same, and no rule would be seen
to hold. A number is known by two words beside it. It is noise if it differs between URLs of one path, page after page,
whatever part of the URL differs. A price is none: it is the same under URLs that differ in another key than the colour.

Bounded: of each page `MOST_NUMBERS` numbers are looked at, and `MOST_URLS` URLs of a path.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, islice

from fyke.core.urls import split
from fyke.harvest.prints import Place, numbers_among

MOST_NUMBERS = 128  # each at two places
MOST_URLS = 6
LEAST_PATHS = 10  # at which a number differs
LEAST_PARTS = 3  # of URLs that make it differ: keys of the query, the name of an index page, the host
MOST_EQUAL = 0.02  # share of pairs in which it is the same

Numbers = Mapping[Place, str]


def numbers_of(words: Sequence[str]) -> Numbers:
    """Return the numbers of a page's `words` whose places come once."""
    found = list(islice(numbers_among(words), MOST_NUMBERS))
    times = Counter(place for _, place in found)
    return {place: words[at] for at, place in found if times[place] == 1}


def noise(pages: Iterable[tuple[str, str, Numbers]]) -> frozenset[Place]:
    """Return the places of numbers that change at every request, given the path, URL and numbers of each page."""
    at: dict[str, list[tuple[str, Numbers]]] = defaultdict(list)
    for path, url, numbers in pages:
        if len(at[path]) < MOST_URLS:
            at[path].append((url, numbers))
    equal: Counter[Place] = Counter()
    paths: Counter[Place] = Counter()
    parts: dict[Place, Counter[str]] = defaultdict(Counter)
    for some in at.values():
        differing = set[Place]()
        for (one, first), (other, second) in combinations(some, 2):
            apart = _parts_apart(one, other)
            for place in first.keys() & second.keys() if len(apart) == 1 else ():
                if first[place] == second[place]:
                    equal[place] += 1
                else:
                    differing.add(place)
                    parts[place].update(apart)
        paths.update(differing)
    return frozenset(
        place
        for place, count in paths.items()
        if count >= LEAST_PATHS
        and len(parts[place]) >= LEAST_PARTS
        and equal[place] <= MOST_EQUAL * parts[place].total()
    )


def _parts_apart(one: str, other: str) -> set[str]:
    """Return in which parts two URLs of a path differ: keys of the query, `/` for the path as written, `//` for the
    host."""
    (host, path, query), (to_host, to_path, to_query) = map(_taken_apart, (one, other))
    keys = {pair.partition("=")[0] for pair in query ^ to_query}
    return keys | ({"//"} if host != to_host else set()) | ({"/"} if path != to_path else set())


def _taken_apart(url: str) -> tuple[str, str, frozenset[str]]:
    path, _, query = url.split("/", 3)[3].partition("?")
    return split(url).host, path, frozenset(query.split("&")) - {""}
