"""Passes over a crawl, as checkpoints have them: who checks an archive must know which visits were second ones."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Begun(NamedTuple):
    """A pass that began; on disk a list, of fewer items where an earlier version wrote it."""

    at: float  # unix seconds
    file: int  # number of the archive file that has its first record
    forever: bool = False  # whether it visits pages again and again
    shares: Sequence[int] = ()  # how many visits to known pages each agent may make; none: all


def begun_passes(again: Mapping[str, Any]) -> list[Begun]:
    """The passes that began, in what a checkpoint has under `again`."""
    return [Begun(*one) for one in again.get("began", [])]
