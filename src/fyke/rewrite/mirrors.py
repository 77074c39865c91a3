"""Which hosts are copies of others? Pairs that have the same pages under the same paths.

Bharat and Broder: Mirror, mirror on the Web, WWW8, 1999. Pairs of hosts come from paths that few hosts have, and from
equal contents at any path. Software may give all its hosts the same paths, so pairs also come from the first of their
pages that say the same. A pair is judged by all paths that both have. If a token changes the bytes of a page, what the
pages say counts, and `MOST_PATHS_READ` are read for a pair. The rules are written for a person to see, and not used
until that person allows them.

Bounded: memory holds a part of the pages, and `MOST_PAIRS` pairs of hosts; `MOST_READ` pages are read.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations

from fyke.core.rewrite_rules import Rule, Shape
from fyke.core.urls import main_name
from fyke.rewrite.fetched import AnsweredPage

LEAST_EQUAL = 10  # different contents that both have at equal paths
LEAST_AGREEMENT = 0.9  # of the paths that both have
MOST_HOSTS = 16  # with a path, or a content there; a path of more, such as /about, says little of two
FIRST = 3  # pages read of a host at paths that more have
MOST_PAIRS = 1 << 18
MOST_DOUBTED = 1000  # pairs whose pages are read, those with the most common paths
MOST_PATHS_READ = 100  # paths of a doubted pair
MOST_READ = 20_000  # pages
Ranking = Callable[[Collection[str]], Sequence[str]]  # of hosts, those to which rules lead first
Places = Iterable[dict[str, dict[str, AnsweredPage]]]
Hosts = tuple[str, str]


class Pair:
    """Two hosts. `common` counts the paths that both have, `equal` those with equal contents; `contents` keeps the
    first of these. Of the other paths, `paths_read` were read, and `same_text` of these say the same."""

    __slots__ = ("common", "contents", "equal", "example", "paths_read", "same_text")

    def __init__(self) -> None:
        self.common = self.equal = self.paths_read = self.same_text = 0
        self.contents: set[int] = set()
        self.example = ""

    @property
    def support(self) -> int:
        """Number of paths that agree, as far as known: those read stand for the others."""
        return self.equal + self.same_text * (self.common - self.equal) // max(1, self.paths_read)

    @property
    def agrees(self) -> bool:
        return self.support >= LEAST_AGREEMENT * self.common

    @property
    def holds(self) -> bool:
        return len(self.contents) >= LEAST_EQUAL and self.agrees

    @property
    def worth_reading(self) -> bool:
        """True if one path more is worth reading."""
        missed = self.paths_read - self.same_text
        return self.paths_read < MOST_PATHS_READ and missed <= (1 - LEAST_AGREEMENT) * min(self.common, MOST_PATHS_READ)

    def add(self, target: str, first: int, second: int) -> None:
        """Count the path `target` of both, with these contents."""
        self.common += 1
        if first == second:
            self.equal += 1
            self._note(target, first)

    def note_read(self, target: str, first: int, second: int) -> None:
        """Count what both say at the path `target`, which was read."""
        self.paths_read += 1
        if first == second:
            self.same_text += 1
            self._note(target, first)

    def _note(self, target: str, content: int) -> None:
        self.example = self.example or target
        if len(self.contents) < LEAST_EQUAL:
            self.contents.add(content)


def mirrors(parts: Callable[[], Places], said_by: Callable[[AnsweredPage], int], ranked: Ranking) -> list[Rule]:
    """Return rules, not in use, from hosts to those that they are copies of. Each call of `parts` gives pages by path,
    then by host. `said_by` gives a number for what a page says, 0 if unknown. A rule leads to the host that comes first
    when they are `ranked`.

    Other rules treat a site's own hosts (`www.` and the like).
    """
    pairs: dict[Hosts, Pair] = {}
    read = _PageReading(said_by)
    for places in parts():
        for target, pages in places.items():
            if len(pages) <= MOST_HOSTS:
                for one, other in _pairs(pages):
                    first, second = pages[one].fingerprint, pages[other].fingerprint
                    pairs.setdefault((one, other), Pair()).add(target, first, second)
            else:
                _meet(pairs, target, pages, read)
            if len(pairs) > MOST_PAIRS:
                best = sorted(pairs, key=lambda hosts: -pairs[hosts].equal)[: MOST_PAIRS // 2]
                pairs = {hosts: pairs[hosts] for hosts in best}
    if pairs:
        _count_others(pairs, parts())
    doubted = [hosts for hosts, pair in pairs.items() if pair.common >= LEAST_EQUAL and not pair.agrees]
    doubted.sort(key=lambda hosts: -pairs[hosts].common)
    if doubted:
        _read_doubted({hosts: pairs[hosts] for hosts in doubted[:MOST_DOUBTED]}, parts(), read)
    copies = {hosts: pair for hosts, pair in pairs.items() if pair.holds}
    return _rules(copies, ranked) if copies else []


class _PageReading:
    """Numbers for what pages say. At most `MOST_READ` pages are read, and `FIRST` of each host at paths that many
    have."""

    def __init__(self, said_by: Callable[[AnsweredPage], int]) -> None:
        self._said_by = said_by
        self._first: Counter[str] = Counter()
        self.left = MOST_READ

    def first(self, page: AnsweredPage) -> int:
        """Return the number of what `page` says if it is one of the first of its host; 0 if unknown."""
        if self._first[page.host] >= FIRST or self.left <= MOST_READ // 2:
            return 0
        self._first[page.host] += 1
        return self.of(page)

    def of(self, page: AnsweredPage) -> int:
        self.left -= 1
        return self._said_by(page)


def _pairs(hosts: Iterable[str]) -> Iterator[Hosts]:
    """Yield the pairs of `hosts` that are of two sites."""
    yield from (pair for pair in combinations(sorted(hosts), 2) if main_name(pair[0]) != main_name(pair[1]))


def _meet(pairs: dict[Hosts, Pair], target: str, pages: dict[str, AnsweredPage], read: _PageReading) -> None:
    """Pair those of many hosts with `target` that have the same content, or say the same, there."""
    alike: dict[int, list[str]] = {}
    say: dict[int, list[str]] = {}
    for host, page in sorted(pages.items()):
        alike.setdefault(page.fingerprint, []).append(host)
        if said := read.first(page):
            say.setdefault(said, []).append(host)
    for content, hosts in alike.items():
        for pair in _pairs(hosts) if len(hosts) <= MOST_HOSTS else ():
            pairs.setdefault(pair, Pair()).add(target, content, content)
    for hosts in say.values():
        for pair in _pairs(hosts) if len(hosts) <= MOST_HOSTS else ():
            pairs.setdefault(pair, Pair())


def _both(pages: dict[str, AnsweredPage], partners: dict[str, list[str]]) -> Iterator[Hosts]:
    """Yield the pairs whose hosts both have `pages` at a path; `partners` has the second hosts by the first."""
    yield from ((one, other) for one in pages for other in partners.get(one, ()) if other in pages)


def _partners(pairs: Iterable[Hosts]) -> dict[str, list[str]]:
    partners: dict[str, list[str]] = {}
    for one, other in pairs:
        partners.setdefault(one, []).append(other)
    return partners


def _count_others(pairs: dict[Hosts, Pair], parts: Places) -> None:
    """Count for `pairs` the paths of many hosts at which their contents differ."""
    partners = _partners(pairs)
    for places in parts:
        for pages in places.values():
            for one, other in _both(pages, partners) if len(pages) > MOST_HOSTS else ():
                pairs[one, other].common += pages[one].fingerprint != pages[other].fingerprint


def _read_doubted(doubted: dict[Hosts, Pair], parts: Places, read: _PageReading) -> None:
    """Read pages of `doubted` pairs whose contents differ."""
    partners = _partners(doubted)
    for places in parts:
        for target, pages in places.items():
            said: dict[str, int] = {}
            for hosts in _both(pages, partners):
                pair = doubted[hosts]
                one, other = (pages[host] for host in hosts)
                if not pair.worth_reading or one.fingerprint == other.fingerprint or read.left < 2:
                    continue
                for page in one, other:
                    if page.host not in said:
                        said[page.host] = read.of(page)
                if said[one.host] and said[other.host]:
                    pair.note_read(target, said[one.host], said[other.host])


def _rules(pairs: dict[Hosts, Pair], ranked: Ranking) -> list[Rule]:
    """Return rules for `pairs`, which hold, each to a host that no rule leads away from."""
    at = {host: place for place, host in enumerate(ranked({host for hosts in pairs for host in hosts}))}
    leads: set[str] = set()
    rules = []
    towards = [sorted(hosts, key=at.__getitem__) for hosts in pairs]
    for to, other in sorted(towards, key=lambda hosts: [at[host] for host in hosts]):
        if to not in leads and other not in leads:
            leads.add(other)
            pair = pairs[min(to, other), max(to, other)]
            example = (f"http://{other}/{pair.example}", f"http://{to}/{pair.example}")
            rules.append(
                Rule(
                    shape=Shape.HOST,
                    host=other,
                    to=to,
                    use=False,
                    support=pair.support,
                    contradictions=pair.common - pair.support,
                    example=example,
                )
            )
    return rules
