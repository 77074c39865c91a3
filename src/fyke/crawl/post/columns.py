"""Letters as bytes: the columns they hold, and the envelope around them.

Bodies are Arrow batches whose schemas both sides know, and little JSON. A frame on the wire is the length of its head,
the length of its body, the head (JSON), the body. Invariant: `opened(sealed(x))` is `x`.
"""

import json
import struct
from collections.abc import Iterable, Sequence

import pyarrow as pa

from fyke.core.batches import URLS, u64
from fyke.core.messages import ENDED, LEARNED, Links, Outcomes
from fyke.crawl.post.letters import Envelope, Letter

FRAME = struct.Struct("<II")
_PART = struct.Struct("<I")
MET = URLS.append(pa.field("source", pa.uint64()))  # links, with the domain of the page that each was met on
Named = Sequence[tuple[str, tuple[str, ...], float]]  # hosts with their addresses, and until when those are believed


def _joined(parts: Iterable[bytes | memoryview]) -> bytes:
    return b"".join(piece for part in parts for piece in (_PART.pack(len(part)), part))


def _parts(body: bytes) -> list[memoryview]:
    parts, view = [], memoryview(body)
    while view:
        (size,) = _PART.unpack_from(view)
        parts.append(view[_PART.size : _PART.size + size])
        view = view[_PART.size + size :]
    return parts


def _packed(batch: pa.RecordBatch) -> memoryview:
    return memoryview(batch.serialize())


def _batch(part: memoryview, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(part), schema)


def links_sealed(links: Links) -> bytes:
    urls = links.urls
    return bytes(_packed(pa.RecordBatch.from_arrays([*urls.columns, pa.array(links.sources)], schema=MET)))


def links_opened(body: bytes) -> Links:
    batch = _batch(memoryview(body), MET)
    return Links(pa.RecordBatch.from_arrays(batch.columns[:-1], schema=URLS), u64(batch, "source"))


def outcomes_sealed(outcomes: Outcomes) -> bytes:
    return _joined((_packed(outcomes.ended), _packed(outcomes.learned)))


def outcomes_opened(body: bytes) -> Outcomes:
    ended, learned = _parts(body)
    return Outcomes(_batch(ended, ENDED), _batch(learned, LEARNED))


def visits_sealed(visits: pa.RecordBatch, named: Named) -> bytes:
    return _joined((_packed(visits), json.dumps(named).encode()))


def visits_opened(body: bytes) -> tuple[pa.RecordBatch, Named]:
    visits, named = _parts(body)
    return _batch(visits, URLS), [
        (name, tuple(addresses), until) for name, addresses, until in json.loads(bytes(named))
    ]


def envelope_sealed(envelope: Envelope, body: bytes) -> bytes:
    """The frame of `envelope`, whose letter holds `body`."""
    letter = envelope.letter
    head = json.dumps(
        [
            envelope.sender, envelope.life, envelope.reader, list(envelope.read.items()),
            list(envelope.durable.items()), envelope.passed, list(envelope.safe.items()), envelope.settled,
            None if letter is None else letter[:4],
        ]
    ).encode()  # fmt: skip
    return FRAME.pack(len(head), len(body)) + head + body


def envelope_opened(head: bytes, body: bytes) -> Envelope:
    """What `envelope_sealed` made a frame of; the letter's body is `body`."""
    sender, life, reader, read, durable, passed, safe, settled, letter = json.loads(head)
    opened = None if letter is None else Letter(letter[0], letter[1], letter[2], letter[3], body)
    return Envelope(sender, life, reader, dict(read), dict(durable), passed, dict(safe), settled, opened)
