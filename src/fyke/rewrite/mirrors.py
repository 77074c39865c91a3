"""Which hosts are copies of others? Pairs that have the same pages under the same paths.

Bharat and Broder: Mirror, mirror on the Web, WWW8, 1999. Pairs of hosts come from equal contents at equal paths, and
are judged by all paths that both have. Where a token makes other bytes of the same page, they are judged by what the
pages say, of which `MOST_LOOKED_AT` are read for a pair. Rules for them are written for a person to see, and not used
until that says so.

Invariant: memory holds a part of the pages, and `MOST_PAIRS` pairs of hosts; `MOST_READ` pages are read.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from fyke.core.rewrite_rules import Rule, Shape
from fyke.rewrite.fetched import AnsweredPage, main_name

LEAST_EQUAL = 10  # different contents that both have at equal paths
LEAST_AGREEMENT = 0.9  # of the paths that both have
MOST_HOSTS = 16  # that have a path: one that more have, such as /about, says little of two
MOST_PAIRS = 1 << 18
MOST_DOUBTED = 1000  # pairs of which pages are read, those with the most paths that both have
MOST_LOOKED_AT = 100  # paths of such a pair
MOST_READ = 20_000  # pages
Places = Iterable[dict[str, dict[str, AnsweredPage]]]


class Pair:
    """Two hosts: paths that both have, those with equal contents, and these contents as far as they matter. Of the
    other paths so many were looked at, and so many of these say the same."""

    __slots__ = ("alike", "common", "contents", "equal", "example", "looked_at")

    def __init__(self) -> None:
        self.common = self.equal = self.looked_at = self.alike = 0
        self.contents: set[int] = set()
        self.example = ""

    @property
    def support(self) -> int:
        """Paths that agree, as far as is known: those that were looked at stand for the others."""
        return self.equal + self.alike * (self.common - self.equal) // max(1, self.looked_at)

    @property
    def agrees(self) -> bool:
        return self.support >= LEAST_AGREEMENT * self.common

    @property
    def holds(self) -> bool:
        return len(self.contents) >= LEAST_EQUAL and self.agrees

    @property
    def doubted(self) -> bool:
        """Whether it is worth it to look at one path more."""
        missed = self.looked_at - self.alike
        return self.looked_at < MOST_LOOKED_AT and missed <= (1 - LEAST_AGREEMENT) * min(self.common, MOST_LOOKED_AT)

    def add(self, target: str, first: int, second: int) -> None:
        """Both have `target`, with these contents."""
        self.common += 1
        if first == second:
            self.equal += 1
            self._note(target, first)

    def look(self, target: str, first: int, second: int) -> None:
        """Both have `target`, and say this."""
        self.looked_at += 1
        if first == second:
            self.alike += 1
            self._note(target, first)

    def _note(self, target: str, content: int) -> None:
        self.example = self.example or target
        if len(self.contents) < LEAST_EQUAL:
            self.contents.add(content)


def mirrors(parts: Callable[[], Places], said_by: Callable[[AnsweredPage], int]) -> list[Rule]:
    """Rules, not in use, from hosts to those that they are copies of; `parts` gives pages by host, by path, each time
    that it is called, and `said_by` a number for what a page says, 0 where that is not known.

    Of a site's own hosts (`www.` and such) nothing is said: other rules do.
    """
    pairs: dict[tuple[str, str], Pair] = {}
    for places in parts():
        for target, pages in places.items():
            for one, other in _pairs(pages):
                first, second = pages[one].fingerprint, pages[other].fingerprint
                pairs.setdefault((one, other), Pair()).add(target, first, second)
            if len(pairs) > MOST_PAIRS:
                best = sorted(pairs, key=lambda hosts: -pairs[hosts].equal)[: MOST_PAIRS // 2]
                pairs = {hosts: pairs[hosts] for hosts in best}
    doubted = [hosts for hosts, pair in pairs.items() if pair.common >= LEAST_EQUAL and not pair.agrees]
    doubted.sort(key=lambda hosts: -pairs[hosts].common)
    if doubted:
        _look({hosts: pairs[hosts] for hosts in doubted[:MOST_DOUBTED]}, parts(), said_by)
    return _rules(pairs)


def _pairs(pages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The pairs of hosts of which a path says something, of those that have it."""
    hosts = sorted(pages)
    if len(hosts) <= MOST_HOSTS:
        yield from (pair for pair in combinations(hosts, 2) if main_name(pair[0]) != main_name(pair[1]))


def _look(doubted: dict[tuple[str, str], Pair], parts: Places, said_by: Callable[[AnsweredPage], int]) -> None:
    """Read pages of `doubted` pairs whose contents differ."""
    left = MOST_READ
    for places in parts:
        for target, pages in places.items():
            said: dict[str, int] = {}
            for hosts in _pairs(pages):
                pair = doubted.get(hosts)
                one, other = (pages[host] for host in hosts)
                if pair is None or not pair.doubted or one.fingerprint == other.fingerprint or left < 2:
                    continue
                for page in one, other:
                    if page.host not in said:
                        said[page.host], left = said_by(page), left - 1
                if said[one.host] and said[other.host]:
                    pair.look(target, said[one.host], said[other.host])


def _rules(pairs: dict[tuple[str, str], Pair]) -> list[Rule]:
    """Those of the pairs that hold, each to a host that none leads from."""
    leads: dict[str, str] = {}
    rules = []
    for (one, other), pair in sorted(pairs.items()):
        if pair.holds and one not in leads and other not in leads:
            leads[other] = one
            example = (f"http://{other}/{pair.example}", f"http://{one}/{pair.example}")
            rules.append(
                Rule(
                    shape=Shape.HOST, host=other, to=one, use=False, support=pair.support,
                    contradictions=pair.common - pair.support, example=example,
                )
            )  # fmt: skip
    return rules
