"""What one server says changes nothing of what the next one says, though both are asked with one handle of libcurl."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fetcher.wire.conftest import Client, web
from fyke.core.outcomes import Outcome
from looping import on_loop

PIECES = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 103 So\r\n",
    b"X: y\r\n",
    b"X: y\n",
    b"\r\n",
    b" ",
    b"\t",
    b"Content-Len",
    b"\0",
]
GOOD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n"


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join), min_size=1, max_size=30))
def test_an_answer_that_breaks_off_is_no_part_of_another_ones(said: list[bytes]) -> None:
    async def script(head, _reader, writer):
        number = int(head.split()[1][1:] or -1)
        writer.write(PIECES[0] + said[number] if number >= 0 else GOOD + b"hi")
        if number >= 0:
            writer.close()

    async def ask_both() -> None:
        async with web(script) as server, Client(connections=1) as client:
            for number in range(len(said)):
                await client.get(server.url(f"/{number}", "hostile.test"))
                answer = await client.get(server.url("/", f"h{number}.test"))
                assert (answer.outcome, answer.head, answer.body.read()) == (Outcome.OK, GOOD, b"hi"), said[number]

    on_loop(ask_both())
