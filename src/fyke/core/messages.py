"""The messages between the engines: three kinds, all columns.

    Links      harvest -> frontier    the links of pages
    Visits     frontier -> fetcher    URLs that may be fetched now: a batch of the schema `URLS`
    Outcomes   fetcher, harvest -> frontier    how visits ended, what they taught, and which must wait

The loop (`fyke.crawl.loop`) alone moves them. A message holds only columns, so it can cross to another process as it
is.

Invariant: a message does not change once it is made.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import pyarrow as pa

from fyke.core.batches import NO_KEYS, U64, URLS, Mask, binary_array, concat, keep
from fyke.core.outcomes import Outcome
from fyke.core.visits import Visit, batch_of

_CODES = {outcome: code for code, outcome in enumerate(Outcome)}
OK = _CODES[Outcome.OK]


class Rules(IntEnum):
    """The state of an origin's robots.txt."""

    UNKNOWN = 0
    OPEN = 1  # URLs go to the fetcher, which asks the lines about each, or ends the visit if its host is gone
    CLOSED = 2  # nothing may be fetched
    UNREACHABLE = 3  # robots.txt could not be had: nothing may be fetched until it is tried again
    NAMELESS = 4  # as OPEN: the host is gone, because its name has no address
    UNNAMED = 5  # as UNREACHABLE: no name server told its host's address


ENDED = pa.schema(
    [
        ("key", pa.uint64()),  # of the visit's URL
        ("host", pa.uint64()),
        ("domain", pa.uint64()),
        ("outcome", pa.uint8()),  # place in the list `Outcome`
        ("kind", pa.uint8()),  # the `Kind` that the URL turned out to be
        ("rest_s", pa.float32()),  # how long the host rests after the visit; below 0: the host was not asked
        ("again", pa.bool_()),  # whether the URL had been visited before
    ]
)
PUT_OFF = pa.schema(
    [
        *URLS,
        ("host_until", pa.float64()),  # the host is not asked before; unix seconds
        ("until", pa.float64()),  # this visit is not made before
    ]
)
JUDGED = pa.schema([*URLS, ("fresh", pa.bool_())])  # whether the page brought new text; null for a redirect
LEARNED = pa.schema(
    [
        ("origin", pa.binary()),  # scheme://host:port
        ("rules", pa.uint8()),  # a `Rules`
        ("until", pa.float64()),  # unix seconds; for UNREACHABLE: when robots.txt is tried again
    ]
)
DATED = pa.schema(
    [
        ("key", pa.uint64()),
        ("domain", pa.uint64()),
        ("at", pa.float64()),  # unix seconds: when the page changed, by a list
    ]
)
DELAYED = pa.schema(
    [
        ("via", pa.uint64()),  # key of a URL that redirects and asks to wait
        ("domain", pa.uint64()),  # of the target
        ("until", pa.float64()),  # unix seconds: the target is not asked before because of this redirect
    ]
)
PRINTED = pa.schema(
    [
        ("key", pa.uint64()),  # of a page whose host has rewrite rules
        ("domain", pa.uint64()),  # the shard of this domain is to know
        ("outcome", pa.uint8()),  # as in ENDED
        ("content", pa.uint64()),  # the page's number (`harvest/prints`); 0 without a page
        ("prints", pa.list_(pa.uint64())),  # all its numbers, if rules would change its URL
        ("held", pa.list_(pa.uint64())),  # what it holds (`harvest/containment`), if its host has rules for views
    ]
)
NONE_ENDED = pa.RecordBatch.from_pylist([], ENDED)
NONE_LEARNED = pa.RecordBatch.from_pylist([], LEARNED)
NONE_JUDGED = pa.RecordBatch.from_pylist([], JUDGED)
NONE_DATED = pa.RecordBatch.from_pylist([], DATED)
NONE_DELAYED = pa.RecordBatch.from_pylist([], DELAYED)
NONE_PRINTED = pa.RecordBatch.from_pylist([], PRINTED)
NONE_PUT_OFF = pa.RecordBatch.from_pylist([], PUT_OFF)


@dataclass(frozen=True, slots=True)
class Links:
    """`urls` (schema `URLS`, n rows), each met on a page of the domain in `sources` (uint64[n], 0 without a domain).

    Rewrite rules leave `fixed` URLs (bool[n]; None: no URL) as they are, because a server redirects to them.
    """

    urls: pa.RecordBatch
    sources: U64
    fixed: Mask | None = None

    def keep(self, mask: Mask) -> "Links":
        """Return the rows for which `mask` (bool[n]) is true, in order."""
        return Links(keep(self.urls, mask), self.sources[mask], None if self.fixed is None else self.fixed[mask])

    def part(self, rows: slice) -> "Links":
        """Return the links in `rows`."""
        fixed = None if self.fixed is None else self.fixed[rows]
        return Links(self.urls[rows], self.sources[rows], fixed)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Results of visits, a batch of each schema.

    - `ENDED`: visits that are over.
    - `LEARNED`: rules of robots.txt files.
    - `PUT_OFF`: visits that were handed out and come back, because their host does not come to them soon.
    - `JUDGED`: ended visits whose pages were read for new text.
    - `DATED`: when pages changed, by lists.
    - `PRINTED`: the content of pages whose host has rewrite rules.
    - `DELAYED`: redirects that ask to wait. They come no later than the links to their targets.
    """

    ended: pa.RecordBatch = field(default_factory=lambda: NONE_ENDED)
    learned: pa.RecordBatch = field(default_factory=lambda: NONE_LEARNED)
    put_off: pa.RecordBatch = field(default_factory=lambda: NONE_PUT_OFF)
    judged: pa.RecordBatch = field(default_factory=lambda: NONE_JUDGED)
    dated: pa.RecordBatch = field(default_factory=lambda: NONE_DATED)
    printed: pa.RecordBatch = field(default_factory=lambda: NONE_PRINTED)
    delayed: pa.RecordBatch = field(default_factory=lambda: NONE_DELAYED)


def code_of(outcome: Outcome) -> int:
    """Return the code of `outcome` in columns: its place in the list."""
    return _CODES[outcome]


def links_of(messages: Sequence[Links]) -> Links:
    """Join messages into one, in order."""
    if len(messages) == 1:
        return messages[0]
    sources = [NO_KEYS, *(message.sources for message in messages)]
    fixed = None
    if any(message.fixed is not None for message in messages):
        none = (np.zeros(message.urls.num_rows, np.bool_) for message in messages)
        fixed = np.concatenate([each if m.fixed is None else m.fixed for m, each in zip(messages, none, strict=True)])
    return Links(concat([message.urls for message in messages]), np.concatenate(sources), fixed)


def ended_batch(ended: Iterable[tuple[Visit, Outcome]]) -> pa.RecordBatch:
    """Return the rows of `ENDED` for visits and their outcomes."""
    rows = [
        (visit.key, visit.host, visit.domain, _CODES[outcome], visit.kind, visit.rest_s, visit.earlier is not None)
        for visit, outcome in ended
    ]
    if not rows:
        return NONE_ENDED
    columns = zip(*rows, strict=True)
    types = (np.uint64, np.uint64, np.uint64, np.uint8, np.uint8, np.float32, np.bool_)
    arrays = [pa.array(np.array(column, kind)) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ENDED)


def learned_batch(learned: Sequence[tuple[str, Rules, float]]) -> pa.RecordBatch:
    """Return the rows of `LEARNED` for (origin, rules, until)."""
    if not learned:
        return NONE_LEARNED
    origins, rules, until = zip(*learned, strict=True)
    arrays = [
        binary_array([origin.encode() for origin in origins]),
        pa.array(np.array(rules, np.uint8)),
        pa.array(np.array(until, np.float64)),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=LEARNED)


def put_off_batch(visits: Sequence[tuple[Visit, float]]) -> pa.RecordBatch:
    """Return the rows of `PUT_OFF` for visits and the times before which their hosts are not asked."""
    if not visits:
        return NONE_PUT_OFF
    urls = batch_of(visit for visit, _ in visits)
    host_until = pa.array([until for _, until in visits], pa.float64())
    own = pa.array([max(until, visit.not_before) for visit, until in visits], pa.float64())
    return pa.RecordBatch.from_arrays([*urls.columns, host_until, own], schema=PUT_OFF)


def judged_batch(judged: Sequence[tuple[Visit, bool | None]]) -> pa.RecordBatch:
    """Return the rows of `JUDGED` for visits and whether their pages were fresh (None for redirects)."""
    if not judged:
        return NONE_JUDGED
    urls = batch_of(visit for visit, _ in judged)
    fresh = pa.array([fresh for _, fresh in judged], pa.bool_())
    return pa.RecordBatch.from_arrays([*urls.columns, fresh], schema=JUDGED)
