"""Which hosts are copies of others? Pairs that have the same pages under the same paths.

Bharat and Broder: Mirror, mirror on the Web, WWW8, 1999. Pairs of hosts come from equal contents at equal paths, and
are judged by all paths that both have. Rules for them are written for a person to see, and not used until that says so.

Invariant: memory holds a part of the pages, and `MOST_PAIRS` pairs of hosts.
"""

from collections.abc import Iterable
from itertools import combinations

from fyke.core.rewrite_rules import Rule, Shape
from fyke.rewrite.fetched import main_name

LEAST_EQUAL = 10  # different contents that both have at equal paths
LEAST_AGREEMENT = 0.9  # of the paths that both have
MOST_HOSTS = 16  # that have a path: one that more have, such as /about, says little of two
MOST_PAIRS = 1 << 18


class Pair:
    """Two hosts: paths that both have, those with equal contents, and these contents as far as they matter."""

    __slots__ = ("common", "contents", "equal", "example")

    def __init__(self) -> None:
        self.common = self.equal = 0
        self.contents: set[int] = set()
        self.example = ""

    @property
    def holds(self) -> bool:
        return len(self.contents) >= LEAST_EQUAL and self.equal >= LEAST_AGREEMENT * self.common

    def add(self, target: str, first: int, second: int) -> None:
        """Both have `target`, with these contents."""
        self.common += 1
        if first == second:
            self.equal += 1
            self.example = self.example or target
            if len(self.contents) < LEAST_EQUAL:
                self.contents.add(first)


def mirrors(parts: Iterable[dict[str, dict[str, int]]]) -> list[Rule]:
    """Rules, not in use, from hosts to those that they are copies of; `parts` map paths to the contents by host.

    Of a site's own hosts (`www.` and such) nothing is said: other rules do.
    """
    pairs: dict[tuple[str, str], Pair] = {}
    for places in parts:
        for target, contents in places.items():
            if not 2 <= len(contents) <= MOST_HOSTS:
                continue
            for one, other in combinations(sorted(contents), 2):
                if main_name(one) != main_name(other):
                    pairs.setdefault((one, other), Pair()).add(target, contents[one], contents[other])
            if len(pairs) > MOST_PAIRS:
                best = sorted(pairs, key=lambda hosts: -pairs[hosts].equal)[: MOST_PAIRS // 2]
                pairs = {hosts: pairs[hosts] for hosts in best}
    leads: dict[str, str] = {}
    rules = []
    for (one, other), pair in sorted(pairs.items()):
        if pair.holds and one not in leads and other not in leads:
            leads[other] = one
            example = (f"http://{other}/{pair.example}", f"http://{one}/{pair.example}")
            rules.append(
                Rule(
                    shape=Shape.HOST, host=other, to=one, use=False, support=pair.equal,
                    contradictions=pair.common - pair.equal, example=example,
                )
            )  # fmt: skip
    return rules
