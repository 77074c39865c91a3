"""The rules that may hold at a site: the ways in which URLs of the same content differ.

Dasgupta, Kumar, Sasturkar: De-duping URLs via rewrite rules, KDD 2008: a key whose values differ among URLs of the same
content is likely to be irrelevant. Called by `learner`; `learning` tests the rules. A content counts once, however many
URLs have it, so that an error page shown for anything makes nothing likely.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple

from fyke.core.own_marks import LEAST_CHARS, is_id
from fyke.core.rewrite_rules import Rule, Shape

LEAST_CONTENTS = 10  # in which a key must differ
MOST_CANDIDATES = 24  # of a shape
MOST_URLS = 64  # read of a content
MOST_PARTS = 64  # read of a URL: segments, parameters, keys
SIGNS = "/?#&;="
_INDEX = re.compile(r"(?:index|default|home|main|welcome)\.[0-9A-Za-z]{2,5}")
_TOKEN = re.compile(r"([^0-9A-Za-z]*(?:[A-Za-z]{1,16}[^0-9A-Za-z]{1,3})?)([0-9A-Za-z]+)([^0-9A-Za-z]{0,3})")


class SplitUrl(NamedTuple):
    """A URL taken apart."""

    segments: tuple[str, ...]
    parameters: dict[str, str]  # after ; in segments
    query: dict[str, str]  # the last value of a key that comes twice
    order: tuple[str, ...]  # of the keys


def parts_of(url: str) -> SplitUrl:
    """Return the parts of a canonical URL."""
    path, _, query = url.split("/", 3)[3].partition("?")
    segments: list[str] = []
    parameters: dict[str, str] = {}
    for segment in path.split("/")[:MOST_PARTS]:
        name, *rest = segment.split(";")
        segments.append(name)
        parameters.update((key, value) for key, _, value in (pair.partition("=") for pair in rest[:MOST_PARTS]))
    pairs = [(key, value) for key, _, value in (pair.partition("=") for pair in query.split("&")[:MOST_PARTS] if pair)]
    return SplitUrl(tuple(segments), parameters, dict(pairs), tuple(key for key, _ in pairs))


def contents_of(pages: Iterable[tuple[str, int]]) -> list[list[SplitUrl]]:
    """Return the URLs of each content that has several, from pairs of URL and content (0: none)."""
    found: dict[int, list[str]] = defaultdict(list)
    for url, content in pages:
        if content and len(found[content]) < MOST_URLS:
            found[content].append(url)
    return [list(map(parts_of, urls)) for urls in found.values() if len(urls) > 1]


def candidates(
    host: str, urls: Sequence[str], contents: Sequence[Sequence[SplitUrl]], least: int = LEAST_CONTENTS
) -> list[Rule]:
    """Return rules that may hold at `host`, given its `urls` and the URLs of each of its `contents`: those that
    `least` contents make likely."""
    return [
        *(Rule(shape=Shape.DROP_KEY, host=host, key=key) for key in _differing(contents, attrgetter("query"), least)),
        *(
            Rule(shape=Shape.DROP_PARAMETER, host=host, key=key)
            for key in _differing(contents, attrgetter("parameters"), least)
            if key
        ),
        *_segments(host, contents, least),
        *_index_pages(host, urls, least),
        *_orders(host, contents, least),
    ]


def _differing(
    contents: Sequence[Sequence[SplitUrl]], named: Callable[[SplitUrl], dict[str, str]], least: int
) -> list[str]:
    """Return the keys that differ in at least half of the contents that have them, and in `least` of them."""
    there: Counter[str] = Counter()
    differ: Counter[str] = Counter()
    for urls in contents:
        for key in set(chain.from_iterable(map(named, urls))):
            there[key] += 1
            differ[key] += len({named(url).get(key) for url in urls}) > 1
    likely = [key for key, count in differ.most_common(MOST_CANDIDATES) if key and 2 * count >= there[key]]
    return [key for key in likely if differ[key] >= least and not set(key) & set(SIGNS)]


def values(host: str, dropped: Container[str], contents: Sequence[Sequence[SplitUrl]]) -> Iterator[Rule]:
    """Yield rules that drop keys, other than those `dropped`, only with one of a few values: contents come with that
    value and without the key."""
    differ: Counter[tuple[str, str]] = Counter()
    for urls in contents:
        for key in set(chain.from_iterable(url.query for url in urls)).difference({""}):
            found = {url.query.get(key) for url in urls}
            if len(found) == 2 and None in found and key not in dropped and not set(key) & set(SIGNS):
                differ.update((key, value) for value in found if value is not None)
    for (key, value), count in differ.most_common(MOST_CANDIDATES):
        if count >= LEAST_CONTENTS:
            yield Rule(shape=Shape.DROP_KEY, host=host, key=key, value=value)


def at_paths(host: str, dropped: Container[str], contents: Sequence[Sequence[SplitUrl]]) -> Iterator[Rule]:
    """Yield rules that drop keys, other than those `dropped`, at one path each: at others the key may select."""
    at: dict[tuple[str, ...], list[list[SplitUrl]]] = defaultdict(list)
    for urls in contents:
        there: dict[tuple[str, ...], list[SplitUrl]] = defaultdict(list)
        for url in urls:
            there[url.segments].append(url)
        for segments, some in there.items():
            if any(segments) and len(some) > 1 and not any(url.parameters for url in some):
                at[segments].append(some)
    busiest = sorted(at.items(), key=lambda found: (-len(found[1]), found[0]))
    rules = (
        Rule(shape=Shape.DROP_KEY, host=host, key=key, path="/".join(segments))
        for segments, some in busiest
        for key in _differing(some, attrgetter("query"), LEAST_CONTENTS)
        if key not in dropped
    )
    yield from islice(rules, MOST_CANDIDATES)


def _segments(host: str, contents: Sequence[Sequence[SplitUrl]], least: int) -> Iterator[Rule]:
    """Yield rules that drop session ids from paths: with the same text around them, and a range of lengths."""
    differ: Counter[tuple[int, str, str]] = Counter()
    lengths: dict[tuple[int, str, str], set[int]] = defaultdict(set)
    for urls in contents:
        met: dict[tuple[int, str, str], set[str]] = defaultdict(set)
        for url in urls:
            for place, segment in enumerate(url.segments):
                found = _TOKEN.fullmatch(segment)
                if found and is_id(found[2]):
                    met[place, found[1], found[3]].add(found[2])
        for where, tokens in met.items():
            differ[where] += len(tokens) > 1 or any(
                len(url.segments) <= where[0] or not _TOKEN.fullmatch(url.segments[where[0]]) for url in urls
            )
            lengths[where].update(map(len, tokens))
    for (place, prefix, suffix), count in differ.most_common(MOST_CANDIDATES):
        if count >= least:
            known = lengths[place, prefix, suffix]
            length = max(LEAST_CHARS, min(known)), max(known)
            yield Rule(shape=Shape.DROP_SEGMENT, host=host, place=place, prefix=prefix, suffix=suffix, length=length)


def _index_pages(host: str, urls: Sequence[str], least: int) -> Iterator[Rule]:
    names = Counter(url.partition("?")[0].rpartition("/")[2].partition(";")[0] for url in urls)
    likely = (name for name, count in names.most_common() if count >= least and is_index_page(name))
    for name in islice(likely, MOST_CANDIDATES):
        yield Rule(shape=Shape.INDEX_PAGE, host=host, key=name)


def is_index_page(name: str) -> bool:
    """Return whether the last part of a path is an index page's name."""
    return _INDEX.fullmatch(name.lower()) is not None


def _orders(host: str, contents: Sequence[Sequence[SplitUrl]], least: int) -> Iterator[Rule]:
    """Yield the rule that sorts keys, if the same keys come in several orders."""
    differ = 0
    for urls in contents:
        orders: dict[frozenset[str], set[tuple[str, ...]]] = defaultdict(set)
        shared = set.intersection(*(set(url.order) for url in urls))
        for url in urls:
            orders[frozenset(shared)].add(tuple(key for key in url.order if key in shared))
        differ += any(len(found) > 1 for found in orders.values())
    if differ >= least:
        yield Rule(shape=Shape.SORT_KEYS, host=host)
