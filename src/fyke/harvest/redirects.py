"""Chains of redirects: how many hops led to a URL, so that none goes on without end.

The target of a redirect is a link like any, and waits like any; what is remembered here is that it is a hop. Browsers
follow 20. Bounded: of more than `most` targets that wait to be visited the oldest are forgotten, and begin anew.

Invariant: a chain whose hops are remembered ends after `MOST_HOPS`.
"""

from collections.abc import Mapping

MOST_HOPS = 20
MOST_TARGETS = 10_000


class Redirects:
    """Hops that led to each target, by the key of its URL."""

    def __init__(self, saved: Mapping[str, int], most: int = MOST_TARGETS) -> None:
        self._hops = {int(key): hops for key, hops in saved.items()}
        self._most = most

    def __repr__(self) -> str:
        return f"Redirects({len(self._hops)} targets)"

    def followed(self, key: int) -> int:
        """The URL with this key redirects: how many hops in a row that makes, forgotten with this."""
        return self._hops.pop(key, 0) + 1

    def ended(self, key: int) -> None:
        """The URL with this key does not redirect."""
        self._hops.pop(key, None)

    def lead_to(self, target: int, hops: int) -> None:
        """So many hops led to the URL with the key `target`."""
        self._hops[target] = hops
        if len(self._hops) > self._most:
            del self._hops[next(iter(self._hops))]

    def state(self) -> dict[str, int]:
        """What a checkpoint records."""
        return {str(key): hops for key, hops in self._hops.items()}
