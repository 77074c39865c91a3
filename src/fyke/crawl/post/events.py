"""What the office has for the rooms that are here, of what came from other agents: a record for each kind.

`remote` moves them. Invariant: an event does not change once it is made.
"""

from dataclasses import dataclass

import pyarrow as pa

from fyke.core.messages import Links, Outcomes
from fyke.core.visits import Exchange, Visit
from fyke.crawl.post.handed import ToldIn


@dataclass(frozen=True, slots=True)
class Met:
    """An agent lives anew, or we do: drop what waits here of the visits of its shard, and say `hold`."""

    agent: int


@dataclass(frozen=True, slots=True)
class LinksCame:
    """Links to URLs of this shard, or where seeds redirect to; the latter may be of other shards."""

    links: Links
    landed: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Ended:
    """Visits that are out have ended: let go of them. Where `told` is not None, they are to be given to `keep`."""

    keys: list[int]
    ended: pa.RecordBatch  # schema `ENDED`, one row for each key
    told: ToldIn | None


@dataclass(frozen=True, slots=True)
class Done:
    """Visits that ended and were let go of are safe (schema `ENDED`)."""

    ended: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Visits of this shard (key and host each) that it forgot it had handed out, when it went back to its checkpoint:
    they are under way, or brought pages."""

    visits: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Heard:
    """What the frontier is to know besides: rules, visits that are out and were put off, pages that were judged."""

    outcomes: Outcomes  # none ended


@dataclass(frozen=True, slots=True)
class WaitAgain:
    """Visits that ended, in vain (schema `URLS`), and keys of visits that are out, with nobody: they wait again."""

    urls: pa.RecordBatch
    keys: list[int]


@dataclass(frozen=True, slots=True)
class VisitsCame:
    """Visits to be made here (schema `URLS`), and what is `known` of their pages, if anything (schema `EARLIER`)."""

    urls: pa.RecordBatch
    known: pa.RecordBatch | None


@dataclass(frozen=True, slots=True)
class Errand:
    """A robots.txt to be fetched for another agent."""

    visit: Visit


@dataclass(frozen=True, slots=True)
class ErrandAnswer:
    """What came of an errand of ours."""

    exchange: Exchange


Event = Met | LinksCame | Ended | Done | Elsewhere | Heard | WaitAgain | VisitsCame | Errand | ErrandAnswer
