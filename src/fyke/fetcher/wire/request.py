"""What a protocol module asks of the client: a `Request` in its `Dialect`.

The dialect sets what libcurl must know once for each handle, and concludes what the answer means.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fyke.core.visits import Exchange, Visit
from fyke.fetcher.wire.body_end import BodyEnd

Option = tuple[int, Any]
Done = Callable[[Exchange], None]
Longest = Callable[[Sequence[bytes]], tuple[int, str] | None]  # by a head: most bytes of body (below 0: none), and why
Ending = Callable[[Sequence[bytes]], BodyEnd | None]  # by a head: what finds the body's end, if libcurl does not


class Dialect(Protocol):
    """The part that one protocol adds to the client."""

    def options(self) -> Iterable[Option]:
        """Return libcurl options, which are set once for each of its handles."""
        ...

    def conclude(self, exchange: Exchange, lines: list[bytes], curl: Any) -> None:
        """Fill in what the answer means.

        `exchange.outcome` is OK if libcurl saw no fault, otherwise the fault. `lines` are the header or control lines
        received. `curl` is the handle, to be asked with `getinfo` and nothing else.
        """
        ...


@dataclass(slots=True)
class Request:
    """One URL to fetch from the server at `address`, in the words of `dialect`."""

    visit: Visit
    address: str  # empty if only a proxy knows it
    dialect: Dialect
    head: bytes = b""  # the request as it will be on the wire, for the archive
    fields: Sequence[bytes] = ()  # header fields beside those that libcurl writes
    longest: Longest | None = None
    ending: Ending | None = None
    http_1: bool = False  # ask in HTTP/1.1, even if the server speaks others
    to_the_end: bool = False  # the body ends with the connection, despite Content-Length
    anew: bool = False  # on a new connection, even if one was kept
    blocks: bool = False  # libcurl waits for the server inside a call
