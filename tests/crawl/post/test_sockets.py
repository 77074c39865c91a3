"""The sockets between the agents of a crawl."""

import asyncio
from pathlib import Path

import psutil
import pytest

from fyke.core.errors import DirectoryError
from fyke.crawl.post import sockets
from fyke.crawl.post.columns import envelope_sealed
from fyke.crawl.post.letters import Envelope


async def test_a_socket_that_cannot_be_bound_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "name_of", lambda agent: "x" * 200)  # more than the address of a socket may have
    descriptors = psutil.Process().num_fds()
    kept = []  # what has a reference to the socket would hide a collection that closes it
    for _ in range(3):
        with pytest.raises(DirectoryError, match="several agents need one each") as raised:
            await sockets.Sockets(0, tmp_path).__aenter__()
        kept.append(raised.value)
    assert psutil.Process().num_fds() == descriptors


async def test_agents_of_one_process_need_no_sockets(tmp_path: Path) -> None:
    """So where none can be made a crawl goes on, with one agent. What is sent to an agent that has gone is lost."""
    state = tmp_path / "that is not there"
    here: dict[int, sockets.Sockets] = {}
    one, other = (sockets.Sockets(me, state, here, listens=False) for me in range(2))
    came: list[Envelope] = []
    other.deliver = came.append
    envelopes = [Envelope(0, number, 0, {1: 2}, {}, 0, {3: 4}, 0) for number in range(5)]
    async with one:
        async with other:
            for envelope in envelopes:
                one.send(1, envelope_sealed(envelope, b""))
                assert not came, "delivered from inside `send`"
            await asyncio.sleep(0)
            assert came == envelopes
            one.send(1, envelope_sealed(envelopes[0], b""))
        await asyncio.sleep(0)
        assert came == envelopes
