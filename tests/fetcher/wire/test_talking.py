"""A server that goes on talking after its answer: nothing of that is part of its next answer."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from fetcher.wire.conftest import Client, tls, web
from fyke.core.outcomes import Outcome
from looping import on_loop

FALSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nfalse"
SAID = [
    FALSE,
    FALSE[:20],
    b"HTTP/1.1 103 Early Hints\r\nX: false\r\n\r\n",
    b"HTTP/1.1 408 Too Late\r\n\r\n",
    b"\r\n",
    b"\0",
]


@settings(max_examples=12, deadline=None)
@given(st.lists(st.lists(st.sampled_from(SAID), max_size=2).map(b"".join), min_size=2, max_size=6), st.booleans())
def test_what_comes_between_two_requests_is_no_part_of_an_answer(
    authority, said: list[bytes], behind_tls: bool
) -> None:
    """Each URL gets its own answer, is asked for once, and a new connection only where the server went on talking."""
    about, ca_file = authority

    async def ask_in_turn() -> None:
        went_on = asyncio.Event()

        async def script(head, _reader, writer):
            number = head.split()[1][1:]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX: own\r\n\r\n%s" % (len(number), number))
            await writer.drain()
            await may_go_on.wait()
            writer.write(said[int(number)])
            await writer.drain()
            went_on.set()

        options = {"ssl": tls(about)} if behind_tls else {}
        async with web(script, **options) as server, Client(connections=1, ca_file=ca_file) as client:
            for number in range(len(said)):
                may_go_on = asyncio.Event()
                went_on.clear()
                url = server.url(f"/{number}").replace("http:", "https:" if behind_tls else "http:")
                answer = await client.get(url)
                assert (answer.outcome, answer.body.read()) == (Outcome.OK, b"%d" % number), said
                assert b"X: own" in answer.head and b"false" not in answer.head
                may_go_on.set()
                await went_on.wait()
                await asyncio.sleep(0.02)  # until it has come
            assert len(server.heads) == len(said)
            assert server.connections == 1 + sum(map(bool, said[:-1]))

    on_loop(ask_in_turn())
