"""Answers made by hand, and a harvest that takes them in."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from fyke.core.clock import VirtualClock
from fyke.core.config import FetchSection
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.pace import Pace
from fyke.core.resolve import LinkResolver
from fyke.core.visits import Exchange, visit_to
from fyke.disk.checkpoint import Checkpoint
from fyke.harvest import Parser
from fyke.harvest.binder import Binder
from fyke.harvest.content_seen import ContentSeen
from fyke.harvest.harvest import Harvest
from fyke.harvest.named_sitemaps import NamedSitemaps
from fyke.harvest.sheaf import Reaped
from fyke.harvest.slow_lane import SlowLane

PACE = Pace(VirtualClock())  # nothing light is going on, and no turn is late


def answer(url: str, body: bytes, fields: str = "", outcome: Outcome = Outcome.OK) -> Exchange:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n{fields}\r\n".encode()
    return Exchange(visit_to(url), outcome, 1e9, 0.1, status=200, head=head, body=Document(body))


@contextmanager
def harvest_with(
    lane: SlowLane[Any] | None = None,
    parser: Parser | None = None,
    pack: Callable[[Exchange], None] = lambda _: None,
) -> Iterator[Harvest]:
    lane = SlowLane(lambda: None, PACE) if lane is None else lane
    with (
        tempfile.TemporaryDirectory() as name,
        Checkpoint(Path(name) / "shard") as checkpoint,
        closing(ContentSeen(checkpoint.store, 1 << 16)) as seen,
        closing(lane),
    ):
        binder = Binder(LinkResolver(), NamedSitemaps({}), seen)
        yield Harvest(parser or Parser(), seen, binder, FetchSection(), lane, pack=pack)


def settle(lane: SlowLane[Any]) -> None:
    """Wait for what was begun, and for what began behind it."""
    while lane._under_way:
        assert lane._thread is not None
        lane._thread.join(timeout=60)


def reaped(harvest: Harvest, came: Sequence[Exchange] = ()) -> list[Reaped]:
    """What a turn brings."""
    return [one for sheaf in harvest.reap(came) for one in sheaf.reaped]


def reaped_later(harvest: Harvest) -> Iterator[list[Reaped]]:
    """What further turns bring, until nothing waits."""
    while harvest.waiting:
        settle(harvest._large._lane)
        yield reaped(harvest)


def all_reaped(harvest: Harvest, came: Sequence[Exchange]) -> list[Reaped]:
    at_once = reaped(harvest, came)
    return at_once + [one for some in reaped_later(harvest) for one in some]


def urls_of(some: Sequence[Reaped]) -> list[str]:
    return [one.page.url for one in some]


def facts(some: Sequence[Reaped]) -> dict[str, tuple[str, int]]:
    return {one.page.url: (one.page.title, one.links) for one in some}
