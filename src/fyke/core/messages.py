"""What the engines say to each other: three messages, all columns.

    Links      harvest -> frontier    what pages point at
    Visits     frontier -> fetcher    what may be fetched now: a batch of the schema `URLS`
    Outcomes   fetcher, harvest -> frontier    how visits ended, and which rules were learned

The loop (`fyke.crawl.loop`) alone moves them. A message holds columns and nothing else, so that it can cross
to another process as it is.

Invariant: a message does not change once it is made.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, binary_array, concat
from fyke.core.outcomes import Outcome
from fyke.core.visits import Visit

_CODES = {outcome: code for code, outcome in enumerate(Outcome)}
OK = _CODES[Outcome.OK]


class Rules(IntEnum):
    """What is known of an origin's robots.txt."""

    UNKNOWN = 0
    OPEN = 1  # the fetcher may look at each URL: by the lines, or to end it since its host is gone
    CLOSED = 2  # nothing may be fetched
    UNREACHABLE = 3  # could not be had: nothing may be fetched until it is tried again


ENDED = pa.schema(
    [
        ("key", pa.uint64()),  # of the visit's URL
        ("host", pa.uint64()),
        ("domain", pa.uint64()),
        ("outcome", pa.uint8()),  # place in the list `Outcome`
        ("kind", pa.uint8()),  # the `Kind` that the URL turned out to be
        ("again", pa.bool_()),  # whether it had been visited before
    ]
)
LEARNED = pa.schema(
    [
        ("origin", pa.binary()),  # scheme://host:port
        ("rules", pa.uint8()),  # a `Rules`
        ("until", pa.float64()),  # unix seconds; of UNREACHABLE: when it is tried again
    ]
)
NONE_ENDED = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in ENDED], schema=ENDED)
NONE_LEARNED = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in LEARNED], schema=LEARNED)


@dataclass(frozen=True, slots=True)
class Links:
    """`urls` (schema `URLS`, n rows), each met on a page of the domain in `sources` (uint64[n], 0 for none)."""

    urls: pa.RecordBatch
    sources: U64


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Visits that are over (schema `ENDED`), and what was learned of robots.txt files (schema `LEARNED`)."""

    ended: pa.RecordBatch = field(default_factory=lambda: NONE_ENDED)
    learned: pa.RecordBatch = field(default_factory=lambda: NONE_LEARNED)


def links_of(messages: Sequence[Links]) -> Links:
    """One message out of many, in order."""
    if len(messages) == 1:
        return messages[0]
    sources = [np.zeros(0, np.uint64), *(message.sources for message in messages)]
    return Links(concat([message.urls for message in messages]), np.concatenate(sources))


def ended_batch(ended: Iterable[tuple[Visit, Outcome]]) -> pa.RecordBatch:
    """The rows of `ENDED` for visits and their outcomes."""
    rows = [
        (visit.key, visit.host, visit.domain, _CODES[outcome], visit.kind, visit.earlier is not None)
        for visit, outcome in ended
    ]
    if not rows:
        return NONE_ENDED
    columns = zip(*rows, strict=True)
    types = (np.uint64, np.uint64, np.uint64, np.uint8, np.uint8, np.bool_)
    arrays = [pa.array(np.array(column, kind)) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ENDED)


def learned_batch(learned: Sequence[tuple[str, Rules, float]]) -> pa.RecordBatch:
    """The rows of `LEARNED` for (origin, rules, until)."""
    if not learned:
        return NONE_LEARNED
    origins, rules, until = zip(*learned, strict=True)
    arrays = [
        binary_array([origin.encode() for origin in origins]),
        pa.array(np.array(rules, np.uint8)),
        pa.array(np.array(until, np.float64)),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=LEARNED)
