"""Letters as bytes: the columns they hold, and the envelope around them.

Bodies are Arrow batches whose schemas both sides know, and a little JSON. A frame on the wire is the length of its
head, the length of its body, the head (JSON), the body. Invariant: `opened(sealed(x))` is `x`.
"""

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fyke.core.batches import URLS, u64
from fyke.core.document import Document
from fyke.core.messages import DATED, DELAYED, ENDED, JUDGED, LEARNED, PRINTED, PUT_OFF, Links, Outcomes
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Visit, robots_visit
from fyke.crawl.past import EARLIER
from fyke.crawl.post.letters import Envelope, Letter
from fyke.fetcher.names import Resolution

FRAME = struct.Struct("<II")
MOST_RULES_BYTES = 1 << 20  # of a robots.txt as it came: never read further
_PART = struct.Struct("<I")
MET = URLS.append(pa.field("source", pa.uint64()))  # links, with the domain of each link's page
PARTS = {  # of `Outcomes`
    "ended": ENDED, "learned": LEARNED, "put_off": PUT_OFF, "judged": JUDGED, "dated": DATED, "printed": PRINTED,
    "delayed": DELAYED,
}  # fmt: skip
Errands = Mapping[int, tuple[int, str, int]]  # by key: the agent that wants it, the origin of the rules, redirects
Named = Sequence[tuple[str, tuple[str, ...], float]]  # hosts, their addresses, and when these expire


class OpenedVisits(NamedTuple):
    """The arguments that `visits_sealed` was given."""

    visits: pa.RecordBatch
    named: Named
    errands: Errands
    known: pa.RecordBatch | None


def _joined(parts: Iterable[bytes | memoryview]) -> bytes:
    return b"".join(piece for part in parts for piece in (_PART.pack(len(part)), part))


def _parts(body: bytes) -> list[memoryview]:
    parts, view = [], memoryview(body)
    while view:
        (size,) = _PART.unpack_from(view)
        parts.append(view[_PART.size : _PART.size + size])
        view = view[_PART.size + size :]
    return parts


def _message(batch: pa.RecordBatch) -> memoryview:
    """Return the rows of `batch` as an Arrow message, without its schema."""
    return memoryview(batch.serialize())


def _batch(part: memoryview, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(part), schema)


def row(batch: pa.RecordBatch, place: int) -> tuple[object, ...]:
    """Return one row of a batch."""
    return tuple(column[place].as_py() for column in batch.columns)


def links_sealed(links: Links) -> bytes:
    return bytes(_message(pa.RecordBatch.from_arrays([*links.urls.columns, pa.array(links.sources)], schema=MET)))


def links_opened(body: bytes, *, fixed: bool) -> Links:
    batch = _batch(memoryview(body), MET)
    urls = pa.RecordBatch.from_arrays(batch.columns[:-1], schema=URLS)
    return Links(urls, u64(batch, "source"), np.ones(urls.num_rows, np.bool_) if fixed else None)


def outcomes_sealed(outcomes: Outcomes) -> bytes:
    return _joined(_message(getattr(outcomes, part)) for part in PARTS)


def outcomes_opened(body: bytes) -> Outcomes:
    parts = zip(PARTS.items(), _parts(body), strict=True)
    return Outcomes(**{part: _batch(message, schema) for (part, schema), message in parts})


def visits_sealed(
    visits: pa.RecordBatch,
    named: Iterable[Resolution] = (),
    errands: Errands | None = None,
    known: pa.RecordBatch | None = None,
) -> bytes:
    """Return the body of a letter VISITS; `known` is what earlier visits to the same pages brought (schema
    `EARLIER`)."""
    told = [(one.host, one.addresses, one.expires_at) for one in named if isfinite(one.expires_at)]
    head = json.dumps([told, list((errands or {}).items())]).encode()
    return _joined((_message(visits), head, *(() if known is None else (_message(known),))))


def visits_opened(body: bytes) -> OpenedVisits:
    visits, head, *known = _parts(body)
    named, errands = json.loads(bytes(head))
    return OpenedVisits(
        _batch(visits, URLS),
        [(name, tuple(addresses), until) for name, addresses, until in named],
        {key: tuple(errand) for key, errand in errands},
        _batch(known[0], EARLIER) if known else None,
    )


def errand_sealed(visit: Visit) -> bytes:
    return json.dumps([visit.url, visit.robots_of, visit.depth]).encode()


def errand_opened(body: bytes) -> Visit:
    return robots_visit(*json.loads(body))


def answer_sealed(key: int, exchange: Exchange) -> bytes:
    facts = [
        key,
        exchange.outcome,
        exchange.started_at,
        exchange.duration_s,
        exchange.address,
        exchange.detail,
        exchange.status,
        exchange.truncated,
    ]
    return _joined((json.dumps(facts).encode(), exchange.head, exchange.body.read()[:MOST_RULES_BYTES]))


def answer_opened(body: bytes, wanted: Callable[[int], Visit | None]) -> Exchange | None:
    """Return the exchange of an errand, if its visit is `wanted`, by its key."""
    facts, head, content = _parts(body)
    key, outcome, started_at, duration_s, address, detail, status, truncated = json.loads(bytes(facts))
    visit = wanted(key)
    if visit is None:
        return None
    return Exchange(
        visit, Outcome(outcome), started_at, duration_s, address, detail, status, head=bytes(head),
        body=Document(bytes(content)), truncated=truncated,
    )  # fmt: skip


def answered(body: bytes) -> int:
    """Return the key of the errand that an answer is about."""
    key: int = json.loads(bytes(_parts(body)[0]))[0]
    return key


def envelope_sealed(envelope: Envelope, body: bytes) -> bytes:
    """Return the frame of `envelope`, whose letter holds `body`."""
    letter = envelope.letter
    head = json.dumps(
        [
            envelope.sender,
            envelope.life,
            envelope.reader,
            list(envelope.read.items()),
            list(envelope.durable.items()),
            envelope.passed,
            list(envelope.safe.items()),
            envelope.settled,
            None if letter is None else letter[:4],
        ]
    ).encode()
    return FRAME.pack(len(head), len(body)) + head + body


def envelope_opened(head: bytes, body: bytes) -> Envelope:
    """Return the envelope that `envelope_sealed` made a frame of; its letter's body is `body`."""
    sender, life, reader, read, durable, passed, safe, settled, letter = json.loads(head)
    opened = None if letter is None else Letter(letter[0], letter[1], letter[2], letter[3], body)
    return Envelope(sender, life, reader, dict(read), dict(durable), passed, dict(safe), settled, opened)
