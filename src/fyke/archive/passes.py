"""Passes over a crawl, as checkpoints have them: a check of the archive must know which visits were second ones."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Begun(NamedTuple):
    """A pass that began; on disk a list."""

    at: float  # unix seconds
    file: int  # number of the archive file with its first record
    forever: bool  # whether it visits pages again and again
    shares: Sequence[int] = ()  # visits to known pages that each agent may make; empty: all


def begun_passes(again: Mapping[str, Any]) -> list[Begun]:
    """Return the passes that began, from the part `again` of a checkpoint."""
    return [Begun(*one) for one in again.get("began", [])]
