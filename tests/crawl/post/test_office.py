"""Two post offices with a network between them that loses nothing: what one lends, the other gives back or tells of."""

import asyncio
from collections import deque
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from fyke.archive.division import Division
from fyke.core.batches import EMPTY, U64, concat, texts, u64, url_batch
from fyke.core.clock import VirtualClock
from fyke.core.messages import DATED, PUT_OFF, Links, Outcomes, judged_batch
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import Earlier, visits_of
from fyke.crawl.past import Past
from fyke.crawl.post.columns import FRAME, envelope_opened
from fyke.crawl.post.events import Event, Heard, VisitsCame
from fyke.crawl.post.office import Office
from fyke.crawl.post.seat import PostRooms, Seat
from fyke.disk.store import Store
from fyke.fetcher.names import Resolution, Resolver
from fyke.fetcher.refusals import PORTION
from fyke.fetcher.rests import Rests
from fyke.frontier.known_pages import KnownPages
from fyke.frontier.page_history import COPY, News, Visited
from fyke.frontier.page_history import ENDED as VISITED
from fyke.frontier.revisit.choice import Terms

TWO = Division(2, 2)
ADDRESS = next(f"192.0.2.{last}" for last in range(256) if TWO.agent_of(f"192.0.2.{last}") == 1)
NO_LINKS = Links(EMPTY, np.zeros(0, np.uint64))


def _of_shard(shard: int) -> str:
    """A URL whose domain is of that shard."""
    urls = (f"http://host{number}.example{number}.com/" for number in range(100))
    return next(url for url in urls if TWO.shard_of(locate(url).domain) == shard)


class Offices:
    """Those of both agents, each as a transport hands its frames to the other."""

    def __init__(self, folder: Path, address: str = ADDRESS) -> None:
        """`address` is that of every name."""
        self.address = address
        self.clock = VirtualClock()
        for me in range(2):
            (folder / f"again{me}").mkdir()
        self.again = [KnownPages(Store(folder / f"again{me}"), 1 << 20) for me in range(2)]
        self.past = [Past(again, folder) for again in self.again]
        self.offices = [self._opened(me, folder / str(me)) for me in range(2)]
        for _ in range(4):  # until both have met
            self.carry()

    def _opened(self, me: int, folder: Path) -> Office:
        folder.mkdir()
        resolver = SimpleNamespace(
            cached=lambda name: Resolution(name, Outcome.OK, (self.address,), inf), load=lambda named: None
        )
        rooms = PostRooms(
            store=Store(folder),
            resolver=cast(Resolver, resolver),
            rests=cast(Rests, SimpleNamespace(hosts=lambda now: [])),
            past=self.past[me],
            clock=self.clock,
        )
        transport = SimpleNamespace(send=lambda to, frame: self._send(to, frame))
        seat = Seat(me=me, division=TWO, transport=transport, most_rules=100, moved=False, deaths={}, clock={})
        return Office(seat, rooms, 1, {}, asyncio.Event())

    def _send(self, to: int, frame: bytes) -> None:
        head, _ = FRAME.unpack_from(frame)
        start = FRAME.size
        self.offices[to].put(envelope_opened(frame[start : start + head], frame[start + head :]))

    def carry(self) -> list[list[Event]]:
        """Send all that waits; what came of it at each."""
        now = self.clock.now()
        events: list[list[Event]] = []
        for office in self.offices:
            office.send(now, idle=True)
        for me, office in enumerate(self.offices):
            events.append([*office.receive(now)])
            if any(type(event).__name__ == "Met" for event in events[-1]):
                office.hold(1 - me, [], now)
        return events


def _put_off(urls: pa.RecordBatch, until: float) -> Outcomes:
    untils = pa.array(np.full(urls.num_rows, until))
    return Outcomes(put_off=pa.RecordBatch.from_arrays([*urls.columns, untils, untils], schema=PUT_OFF))


def _keys(urls: pa.RecordBatch) -> U64:
    return u64(urls, "key")


def test_a_visit_whose_host_sleeps_goes_back_to_the_shard_that_lent_it(tmp_path: Path) -> None:
    """It is with nobody then, once; and what is told of it again changes nothing."""

    async def lend_and_put_off() -> tuple[Any, ...]:
        both = Offices(tmp_path)
        shard, maker = both.offices
        now = both.clock.now()
        visits = url_batch([locate(_of_shard(0))])
        assert not shard.route(visits, now).num_rows
        (lent,) = (event.urls for event in both.carry()[1] if isinstance(event, VisitsCame))
        assert texts(lent) == texts(visits)
        assert shard.lent
        assert not maker.quiet
        outcomes = _put_off(lent, now + 3600.0)
        assert not maker.post(NO_LINKS, outcomes, now)[1].put_off.num_rows
        (back,) = (event.outcomes.put_off for event in both.carry()[0] if isinstance(event, Heard))
        assert _keys(back) == _keys(visits)
        assert not shard.lent
        for _ in range(3):
            both.carry()
        quiet = shard.quiet, maker.quiet
        maker.post(NO_LINKS, outcomes, now)
        again = [event.outcomes.put_off.num_rows for event in both.carry()[0] if isinstance(event, Heard)]
        for office in both.offices:
            office.close()
        return *quiet, again

    assert asyncio.run(lend_and_put_off()) == (True, True, [0])


@pytest.mark.parametrize("maker", [0, 1])
def test_what_rules_forbid_goes_out_in_portions(tmp_path: Path, maker: int) -> None:
    """However many pages of a host a sitemap names, and whoever asks it; those of a host that is blocked come back."""
    address = next(f"192.0.2.{last}" for last in range(256) if TWO.agent_of(f"192.0.2.{last}") == maker)

    async def refuse() -> None:
        both = Offices(tmp_path, address)
        shard, now = both.offices[0], both.clock.now()
        visits = url_batch([locate(f"{_of_shard(0)}{page}") for page in range(9 * PORTION + 1)])
        assert shard.quiet and not shard.refuse(visits).num_rows
        out = []
        for _ in range(6):
            here = shard.route(EMPTY, now)
            lent = [event.urls for event in both.carry()[1] if isinstance(event, VisitsCame)]
            (portion,) = lent if maker else (here,)
            assert portion.num_rows == PORTION and not shard.quiet
            out += texts(portion)
        back = shard.block(locate(_of_shard(0)).host)
        assert [*out, *texts(back)] == texts(visits)
        assert not shard.route(EMPTY, now).num_rows
        for office in both.offices:
            office.close()

    asyncio.run(refuse())


def test_what_a_page_was_judged_is_told_to_the_shard_of_its_domain(tmp_path: Path) -> None:
    """Once, whoever fetched it: there the traps of that domain are known."""
    told = [(_of_shard(shard), bool(fresh)) for shard in (0, 1) for fresh in (0, 1)]

    async def judge() -> tuple[list[Any], list[Any]]:
        both = Offices(tmp_path)
        now = both.clock.now()
        visits = [visits_of(url_batch([locate(url)]))[0] for url, _ in told]
        judged = judged_batch([(visit, fresh) for visit, (_, fresh) in zip(visits, told, strict=True)])
        own = _judged(both.offices[1].post(NO_LINKS, Outcomes(judged=judged), now)[1])
        heard = []
        for _ in range(3):
            heard += [_judged(event.outcomes) for event in both.carry()[0] if isinstance(event, Heard)]
        for office in both.offices:
            office.close()
        return own, [row for rows in heard for row in rows]

    own, others = asyncio.run(judge())
    assert own == [row for row in told if row[0] == _of_shard(1)]
    assert others == [row for row in told if row[0] == _of_shard(0)]


def _judged(outcomes: Outcomes) -> list[tuple[str, bool]]:
    return list(zip(texts(outcomes.judged), outcomes.judged.column("fresh").to_pylist(), strict=True))


def test_what_is_known_of_a_page_goes_with_its_visit(tmp_path: Path) -> None:
    """To whoever asks for it; of a page that nobody knows, nothing does."""

    async def lend() -> list[Any]:
        both = Offices(tmp_path)
        shard, maker = both.offices
        known = url_batch([locate(_of_shard(0))])
        ended = [
            pa.array([value], kind)
            for value, kind in zip(
                (Visited.MISSING, News.CHANGED, 77.0), (pa.uint8(), pa.uint8(), pa.float64()), strict=True
            )
        ]
        copies = np.array([(5, 6, 7, 3 << 22 | 8)], COPY)
        again = both.again[0]
        again.learn(pa.RecordBatch.from_arrays([*known.columns, *ended], schema=VISITED), np.ones(1, np.bool_), copies)
        deque(again.plan(100.0, Terms()), maxlen=0)
        new = url_batch([locate(f"{_of_shard(0)}new")])
        shard.route(concat([known, new]), both.clock.now())
        (came,) = (event for event in both.carry()[1] if isinstance(event, VisitsCame))
        both.past[1].lend(came.known)
        visits = visits_of(came.urls)
        both.past[1].note_known(visits)
        for closing in (shard, maker, *both.again):
            closing.close()
        return [visit.earlier for visit in visits]

    first, second = asyncio.run(lend())
    assert first == Earlier(missing=True, place=(3 << 22 | 8, 5, 7), fingerprint=6, at=77.0)
    assert second is None


def test_what_lists_say_of_changes_is_told_to_the_shard_of_the_page(tmp_path: Path) -> None:
    async def tell() -> tuple[Any, Any]:
        both = Offices(tmp_path)
        pages = [locate(_of_shard(shard)) for shard in (0, 1)]
        columns = [[page.key for page in pages], [page.domain for page in pages]]
        dated = pa.RecordBatch.from_arrays(
            [*(pa.array(c, pa.uint64()) for c in columns), pa.array([1.0, 2.0])], schema=DATED
        )
        own = both.offices[1].post(NO_LINKS, Outcomes(dated=dated), both.clock.now())[1].dated
        heard = [event.outcomes.dated for _ in range(3) for event in both.carry()[0] if isinstance(event, Heard)]
        for office in both.offices:
            office.close()
        return own, pa.concat_batches(heard)

    own, others = asyncio.run(tell())
    assert own.column("at").to_pylist() == [2.0]
    assert others.column("at").to_pylist() == [1.0]
