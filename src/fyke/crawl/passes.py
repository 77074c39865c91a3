"""Passes over a crawl: `fyke crawl --again` visits every page once more and tells what has become of it.

`Passes` is what a checkpoint keeps of it: when each pass began, and what the last has found. `begin` reads the table of
pages, which says all that the frontier must know of earlier visits; so a pass can begin over the directory of any
version. `Past` reads, as a page is asked for, what its newest record in the archive says: its ETag, its Last-Modified,
and which record a revisit must name.

Where a crawl has several agents, each learns what is of its own shard, out of the rows of all that are safe: who made a
visit is not always the one whose shard it is of. What is known of a page goes to the agent that asks for it, with the
visit (`Past.known`, `Past.lend`).

Invariant: what `Passes` counts of a visit is in the same checkpoint as its record and its row.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.arrivals import lots
from fyke.archive.directory import CrawlDirectory
from fyke.archive.division import Division
from fyke.archive.passes import Begun, begun_passes
from fyke.archive.reading import segments
from fyke.archive.reindexing import archive_files, part_of, serial_of
from fyke.archive.turns import rows_by_part
from fyke.archive.warc_reading import Broken, read_block, read_head, taken_apart
from fyke.core.batches import U64, Kind, Mask, keep, u64, url_batch
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import SAME_TEXT, Earlier, Purpose, Visit, headers_of
from fyke.disk.files import real_path
from fyke.frontier.again import COPY, ENDED, Again, News, Visited
from fyke.harvest.sheaf import Reaped

_COLUMNS = [
    "key", "url", "status", "outcome", "detail", "fetched_at", "depth", "via", "kind", "fingerprint", "warc_file",
    "warc_offset", "warc_length",
]  # fmt: skip
_KINDS = {kind.name.lower(): kind for kind in Kind}
_AWAY = (404, 410)
_OF_COPY = ("file", "offset", "length", "fingerprint")
_SERIALS = 22  # bits of the number of an archive file that count the files of one agent
EARLIER = pa.schema(
    [
        ("key", pa.uint64()),
        ("missing", pa.bool_()),  # as in `Earlier`
        ("file", pa.uint32()),
        ("offset", pa.uint64()),
        ("length", pa.uint32()),  # 0: there is no record
        ("fingerprint", pa.uint64()),
        ("at", pa.float64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Pass:
    """What is asked of a pass."""

    visits: int | None = None  # to known pages, at most; None: to all
    forever: bool = False  # each page at its own times, without end
    number: int = 0  # which pass it is, where the supervisor of several agents says so, from 1 on
    began_at: float = 0.0  # unix seconds; the same
    shares: Sequence[int] = ()  # of `visits`, by agent

    def share(self, agent: int) -> int | None:
        """How many visits to known pages the shard of `agent` may have; None: all."""
        if self.visits is None:
            return None
        return self.shares[agent] if agent < len(self.shares) else 0


def next_pass(states: Sequence[Mapping[str, Any]], asked: Pass | None, now: float, *, may_begin: bool) -> Pass | None:
    """What agents with these checkpoints are to do that `asked` is asked of together: the next pass, if it `may_begin`,
    else that which some of them had begun when the crawl broke off. None: nothing."""
    began = max((begun_passes(state.get("again", {})) for state in states), key=len, default=[])
    number, last = len(began), began[-1] if began else None
    forever = last is not None and last.forever
    if asked is not None and (may_begin or asked.forever != forever):
        shares = () if asked.visits is None else _shared(asked.visits, [_visited(state) for state in states])
        return replace(asked, number=number + 1, began_at=now, shares=shares)
    if last is not None and not forever:
        visits = sum(last.shares) if last.shares else None
        return Pass(visits, number=number, began_at=last.at, shares=last.shares)
    return None if asked is None else replace(asked, number=number)


def _visited(state: Mapping[str, Any]) -> int:
    totals = state.get("totals", {})
    return max(0, int(totals.get("urls", 0)) - int(totals.get("waiting", 0)))


def _shared(visits: int, weights: Sequence[int]) -> list[int]:
    """`visits` in shares that are as `weights`, to the last one."""
    ends = [visits * part // max(1, sum(weights)) for part in accumulate(weights)]
    return [end - begin for begin, end in pairwise([0, *ends])]


@dataclass(frozen=True, slots=True)
class PassStatistics:
    """What a pass has found so far."""

    number: int  # 1 for the first
    began_at: float  # unix seconds
    unchanged: int
    changed: int
    new: int
    gone: int  # 404 or 410 where there was a page; twice in a row, in a crawl that never ends
    requests: int
    bytes: int  # of the answers, heads and bodies
    forever: bool  # whether it goes on without end


class Passes:
    """The passes of one crawl; in a crawl that was never passed over there are none."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self.began = begun_passes(saved)
        self._found: Counter[str] = Counter(saved.get("found", {}))

    def __repr__(self) -> str:
        return f"Passes({len(self.began)}, the last: {dict(self._found)})"

    def begin(self, asked: Pass, now: float, file: int) -> None:
        """The next pass begins at `now` (unix seconds); its first record is in the archive file numbered `file`. One
        that goes on `forever` meets a page that is away more than once, and counts it when it is gone. Who came to the
        crawl after earlier passes has begun them too."""
        began = Begun(now, file + self.forever, asked.forever)  # the file at hand may be of a pass without end
        self.began += [began] * (asked.number - len(self.began) - 1)
        self.began.append(began._replace(shares=asked.shares))
        self._found.clear()

    @property
    def forever(self) -> bool:
        """Whether the last pass goes on forever."""
        return bool(self.began) and self.began[-1].forever

    @property
    def pages(self) -> int:
        """Pages that the last pass has brought."""
        return self._found["changed"] + self._found["new"]

    def count(self, reaped: Reaped) -> None:
        """A visit that ended."""
        if not self.began:
            return
        exchange = reaped.exchange
        self._found["requests"] += bool(exchange.request)
        self._found["bytes"] += len(exchange.head) + exchange.body.size
        if exchange.visit.purpose is Purpose.PAGE and (word := self._became(reaped)):
            self._found[word] += 1

    def _became(self, reaped: Reaped) -> str:
        exchange = reaped.exchange
        earlier = exchange.visit.earlier
        if exchange.outcome is Outcome.UNCHANGED or exchange.detail == SAME_TEXT:
            return "unchanged"
        there = earlier is not None and earlier.place is not None
        if reaped.is_page:
            return "changed" if there else "new"
        away = exchange.outcome is Outcome.GONE if self.forever else exchange.status in _AWAY
        return "gone" if there and away else ""

    def statistics(self) -> dict[str, Any]:
        """The last pass as a dict (see `PassStatistics`); empty when there is none."""
        if not self.began:
            return {}
        names = ("unchanged", "changed", "new", "gone", "requests", "bytes")
        counts = {name: self._found[name] for name in names}
        return asdict(PassStatistics(len(self.began), self.began[-1].at, **counts, forever=self.forever))

    def state(self) -> dict[str, Any]:
        return {"began": self.began, "found": dict(self._found)}


def learn(again: Again, folder: Path) -> Iterator[None]:
    """Tell `again` of the rows of the table of pages that it does not know; it may rest after each batch."""
    begin, position = again.rows, 0
    for segment in segments(folder, "pages"):
        rows = segment.rows()
        if rows is not None and position + rows <= begin:
            position += rows
            continue
        for batch in segment.batches(_COLUMNS):
            known = min(max(0, begin - position), batch.num_rows)
            position += batch.num_rows
            _learn(again, batch.slice(known), 0)
            yield


def learn_own(again: Again, folder: Path, division: Division, shard: int) -> Iterator[None]:
    """The same where several agents write: of the rows of all that are safe those of this `shard`."""
    safe = sum(rows_by_part(folder, "pages").values())
    for part, batch in lots(folder, "pages", _COLUMNS, again.rows, safe):
        _learn(again, batch, part, lambda domains: division.shards_of(domains) == shard)
        yield


def _learn(again: Again, batch: pa.RecordBatch, part: int, owned: Callable[[U64], Mask] | None = None) -> None:
    """Tell `again` of visits that the agent `part` made, if their pages are `owned`; the others are counted."""
    urls = _urls(batch)
    if owned is not None:
        mine = owned(u64(urls, "domain"))
        again.pass_over(int((~mine).sum()))
        urls, batch = keep(urls, mine), keep(batch, mine)
    outcomes = np.array(batch.column("outcome").cast(pa.string()).to_pylist(), object)
    status = batch.column("status").to_numpy()
    length = pc.fill_null(batch.column("warc_length"), 0).to_numpy()
    away = (outcomes == Outcome.CLIENT_ERROR.value) & np.isin(status, _AWAY)
    visited = np.select([outcomes == Outcome.GONE.value, away], [Visited.GONE, Visited.MISSING], Visited.THERE)
    whole = np.isin(outcomes, (Outcome.OK.value, Outcome.TOO_LARGE.value)) & (status != 304)
    same = outcomes == Outcome.UNCHANGED.value
    held = (whole | (same & (status != 304))) & (length > 0)
    same |= whole & pc.equal(batch.column("detail").cast(pa.string()), SAME_TEXT).to_numpy(zero_copy_only=False)
    copies = np.zeros(batch.num_rows, COPY)
    names = batch.column("warc_file").cast(pa.string()).to_pylist()
    serials = {name: max(0, serial_of(name.rpartition("/")[2])[0]) for name in set(names) if name}
    copies["file"] = [part << _SERIALS | serials.get(name, 0) for name in names]
    copies["offset"] = pc.fill_null(batch.column("warc_offset"), 0).to_numpy()
    copies["length"] = length
    copies["fingerprint"] = batch.column("fingerprint").to_numpy()
    copies[~held] = np.zeros(1, COPY)
    forgotten = np.isin(outcomes, (Outcome.REDIRECTED.value, Outcome.GONE.value))
    columns = {
        "visited": visited.astype(np.uint8),
        "news": np.select([same, whole], [News.SAME, News.CHANGED], News.NONE).astype(np.uint8),
        "at": batch.column("fetched_at").cast(pa.int64()).to_numpy() / 1e6,
    }
    ended = urls
    for name, column in columns.items():
        ended = ended.append_column(ENDED.field(name), pa.array(column))
    again.learn(ended, held | forgotten, copies)


def _urls(batch: pa.RecordBatch) -> pa.RecordBatch:
    return url_batch(
        [locate(url) for url in batch.column("url").to_pylist()],
        via=batch.column("via").to_numpy(),
        depth=batch.column("depth").to_numpy(),
        kind=[_KINDS[kind] for kind in batch.column("kind").cast(pa.string()).to_pylist()],
    )


class Past:
    """What earlier visits brought, for who visits again: the records that `again` knows, in the archive of `folder`."""

    def __init__(self, again: Again, folder: Path) -> None:
        self._again = again
        self._folder = folder
        self._files: dict[int, Path] = {}  # by agent and number
        self._lent: dict[int, Earlier] = {}  # by key: of visits that are about to come

    def __repr__(self) -> str:
        return f"Past({self._again!r})"

    def recall(self, visits: Sequence[Visit]) -> None:
        """Note with each of `visits` what is known of it without a look at the archive."""
        for visit in visits if self._lent else ():
            visit.earlier = self._lent.get(visit.key)
        self._lent.clear()
        keys = np.fromiter((visit.key for visit in visits), np.uint64, len(visits))
        before = self._again.before(keys) if len(keys) else None
        if before is None:
            return
        rows = zip(visits, before.visited.tolist(), before.copies, before.at.tolist(), strict=True)
        for visit, visited, copy, at in rows:
            if visited != Visited.NEVER:
                place = (int(copy["file"]), int(copy["offset"]), int(copy["length"])) if copy["length"] else None
                visit.earlier = Earlier(visited == Visited.MISSING, place, int(copy["fingerprint"]), at)

    def known(self, keys: U64) -> pa.RecordBatch | None:
        """What is known of those of the pages with `keys` (uint64[n]) that were visited (schema `EARLIER`)."""
        before = self._again.before(keys) if len(keys) else None
        met = np.zeros(0, np.bool_) if before is None else before.visited != Visited.NEVER
        if before is None or not met.any():
            return None
        columns = [keys, before.visited == Visited.MISSING, *(before.copies[name] for name in _OF_COPY), before.at]
        return pa.RecordBatch.from_arrays([pa.array(np.ascontiguousarray(one[met])) for one in columns], schema=EARLIER)

    def lend(self, known: pa.RecordBatch) -> None:
        """Visits of other shards are about to be made here, of whose pages this is `known` (schema `EARLIER`)."""
        for key, missing, *place, fingerprint, at in zip(*(c.to_pylist() for c in known.columns), strict=True):
            self._lent[key] = Earlier(missing, tuple(place) if place[2] else None, fingerprint, at)

    def read(self, earlier: Earlier) -> None:
        """Note what the record of the newest copy says. Where it cannot be read, the page is asked for as a new one."""
        if earlier.place is None or earlier.original is not None:
            return
        number, offset, length = earlier.place
        try:
            fields, head = read_head(self._path(number), offset, length)
        except (Broken, OSError, zlib.error, KeyError):
            return
        refers = "warc-refers-to-" if fields.get("warc-type") == "revisit" else "warc-"
        digest = fields.get("warc-payload-digest") or fields.get("warc-block-digest", "")
        earlier.original = (fields.get(f"{refers}target-uri", ""), fields.get(f"{refers}date", ""), digest)
        earlier.etag, earlier.modified = (next(iter(headers_of(head, name)), "") for name in ("etag", "last-modified"))

    def content(self, earlier: Earlier, most_bytes: int) -> tuple[bytes, bytes] | None:
        """Head and body of the newest copy as they came; None where its record has none, is longer than `most_bytes`,
        or cannot be read."""
        if earlier.place is None:
            return None
        number, offset, length = earlier.place
        try:
            fields, block = read_block(self._path(number), offset, length, most_bytes)
        except (Broken, OSError, zlib.error, KeyError):
            return None
        return taken_apart(block) if fields.get("warc-type") == "response" else None

    def _path(self, number: int) -> Path:
        """The archive file with this number. Raises KeyError."""
        if number not in self._files:
            own, agents = real_path(self._folder).name, len(CrawlDirectory(self._folder).parts)
            self._files = {
                part_of(path.name, own, agents) << _SERIALS | serial_of(path.name)[0]: path
                for path in archive_files(self._folder)
            }
        return self._files[number]
