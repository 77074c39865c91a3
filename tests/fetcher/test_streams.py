"""A page without an end costs its host rests, and no other page: only who holds us up without sending is given up."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetcher.test_origins import FAILURES, Crawl, Ports
from fyke.core.clock import VirtualClock
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Purpose, Visit
from fyke.fetcher.faults import FLOWING_BYTES_S

LONG_S = 30.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n"
FLOWING = int(LONG_S * FLOWING_BYTES_S)


class End(NamedTuple):
    """How the pages of a kind end."""

    outcome: Outcome
    head: bytes
    size_bytes: int


OK = End(Outcome.OK, HEAD % b"text/html", 9)
STREAMS = {
    "radio": End(Outcome.TIMED_OUT, HEAD % b"audio/mpeg", FLOWING),
    "fast-radio": End(Outcome.TIMED_OUT, HEAD % b"audio/mpeg", 100 * FLOWING),
    "events": End(Outcome.STALLED, HEAD % b"text/event-stream", 0),
    "events-with-charset": End(Outcome.STALLED, HEAD % b"Text/Event-Stream; charset=UTF-8", 90),
    "slow-events": End(Outcome.TIMED_OUT, HEAD % b"text/event-stream", FLOWING // 4),
    "odd": End(Outcome.BAD_ANSWER, HEAD % b"text/html", 0),
}
HOLDS = {
    "slow": End(Outcome.TIMED_OUT, HEAD % b"audio/mpeg", FLOWING - 1),
    "silent": End(Outcome.TIMED_OUT, b"", 0),
    "stalled": End(Outcome.STALLED, HEAD % b"text/html", 0),
    "cut": End(Outcome.STALLED, HEAD % b"audio/mpeg", 100 * FLOWING),
    "events-of-no-answer": End(Outcome.STALLED, b"HTTP/1.1 500 X\r\nContent-Type: text/event-stream\r\n\r\n", 0),
    "broken-off": End(Outcome.BROKEN_OFF, HEAD % b"text/event-stream", FLOWING),
}


class Server(Ports):
    """A host whose pages end as the first folder of their path says."""

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        self.asked.append((self.clock.now(), visit.url))
        end = OK if visit.purpose is Purpose.ROBOTS else {"ok": OK, **STREAMS, **HOLDS}[visit.url.split("/")[3]]
        lasts_s = 0.1 if end is OK else LONG_S
        exchange = Exchange(
            visit, end.outcome, self.clock.now(), lasts_s, address,
            status=int(end.head[9:12] or 0), head=end.head, body=Document(b"x" * end.size_bytes),
        )  # fmt: skip
        asyncio.get_running_loop().call_soon(done, exchange)


async def ends_of(folder: Path, pages: list[str]) -> tuple[Server, dict[str, Outcome]]:
    clock = VirtualClock()
    server = Server(clock, {})
    with closing(Crawl(folder, clock, server)) as crawl:
        for page in pages:  # one after the other, as they were found
            crawl.put([page])
            await crawl.run()
        return server, crawl.ends


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_streams_cost_no_other_page(data: st.DataObject) -> None:
    """However many they are in a row, at one or more ports, whatever comes between."""
    kinds = data.draw(st.lists(st.sampled_from(["ok", *STREAMS]), min_size=1, max_size=4 * FAILURES))
    ports = data.draw(st.lists(st.sampled_from(["", ":8000", ":8001"]), min_size=1, max_size=3))
    chosen = data.draw(st.lists(st.sampled_from(ports), min_size=len(kinds), max_size=len(kinds)))
    pages = [
        f"http://a.test{port}/{kind}/{place}" for place, (kind, port) in enumerate(zip(kinds, chosen, strict=True))
    ]
    pages += [f"http://a.test{port}/ok/last" for port in sorted({*ports})]
    with TemporaryDirectory() as folder:
        _, ends = asyncio.run(ends_of(Path(folder), pages))
    assert ends == {page: {"ok": OK, **STREAMS}[page.split("/")[3]].outcome for page in pages}


@pytest.mark.parametrize("kind", HOLDS)
async def test_who_holds_us_up_is_given_up(tmp_path: Path, kind: str) -> None:
    """Also if the first page was fine."""
    pages = ["http://a.test/ok/0", *(f"http://a.test/{kind}/{place}" for place in range(FAILURES))]
    _, ends = await ends_of(tmp_path, [*pages, "http://a.test/ok/last"])
    assert ends.pop("http://a.test/ok/last") is Outcome.HOST_RETIRED
    assert Outcome.HOST_RETIRED not in [ends[page] for page in pages[:FAILURES]]


@pytest.mark.parametrize("kind", ["radio", "events"])
async def test_the_host_of_streams_rests_as_one_that_fails(tmp_path: Path, kind: str) -> None:
    """So a server that makes streams of all its pages holds us up no longer than one that is never given up."""
    gaps = []
    for named in (kind, "stalled"):
        (tmp_path / named).mkdir()
        pages = [f"http://a.test/{named}/{place}" for place in range(FAILURES)]
        server, _ = await ends_of(tmp_path / named, pages)
        gaps.append([at for at, url in server.asked if not url.endswith("robots.txt")])
    assert gaps[0][:FAILURES] == gaps[1][:FAILURES]
