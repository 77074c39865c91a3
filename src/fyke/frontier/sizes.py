"""The amounts that the stages of a frontier take at a time, and hold.

These are no settings: nobody gains by changing them. They are one argument, so that tests can try laws with stages that
a few rows fill.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of rows, unless a comment says otherwise."""

    batch: int = 8192
    ready: int = 8192  # pulled ahead of the workbench
    ordered: int = 1 << 17  # the same for a crawl with an order, which needs something to choose from
    asks: int = 8192  # origins to be asked for their rules before no more URLs are pulled
    ranked: int = 10_000  # places in the ranking of domains (IRLbot, section 7.2)
    met_a_place: int = 100  # domains met for each place that raises a budget
    looked_up: int = 100_000  # domains whose records are looked up: 3 MB; with more, they come by merges
    rounds: int = 64  # that BEAST spreads URLs over, at most
    round_buffer: int = 1024  # of one such round, in memory
    unruled: int = 8192  # of those that wait for rules, read again at a time
    known_origins: int = 50_000  # whose rules are in memory


SIZES = Sizes()
