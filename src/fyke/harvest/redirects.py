"""Chains of redirects: the number of hops that led to a URL, so that no chain is endless.

The target of a redirect is a link like any other, and waits like any other. Only its hops are remembered here. Browsers
follow 20.

Invariant: a chain whose hops are remembered ends after `MOST_HOPS`. Bounded: of more than `most` targets that wait, the
oldest are forgotten and begin anew.
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
        """Return the hops in a row, now that the URL with this key redirects, and forget the URL."""
        return self._hops.pop(key, 0) + 1

    def ended(self, key: int) -> None:
        """Forget the URL with this key, because it does not redirect."""
        self._hops.pop(key, None)

    def lead_to(self, target: int, hops: int) -> None:
        """Note that `hops` led to the URL with the key `target`."""
        self._hops[target] = hops
        if len(self._hops) > self._most:
            del self._hops[next(iter(self._hops))]

    def state(self) -> dict[str, int]:
        """Return what a checkpoint records."""
        return {str(key): hops for key, hops in self._hops.items()}
