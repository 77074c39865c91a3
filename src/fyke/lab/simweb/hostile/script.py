"""What a server does, as data: steps that are played in order on a connection whose request has come.

A script is a tuple of steps: bytes are sent as they are, all else says so in its name. When it is over the connection
is closed. In what is sent `%NEXT%` stands for one more than the number that the path asked for ends with, `%HOST%` for
the name of the host, `%PORT%` for the port.
"""

from dataclasses import dataclass

WITHOUT_END = 1 << 60
_PLACES = (b"%NEXT%", b"%HOST%", b"%PORT%")


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing, for so many seconds."""

    seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class Many:
    """`piece`, sent so many times, with a pause before each."""

    piece: bytes
    times: int = WITHOUT_END
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Numbered:
    """`piece` with `%N%` counted from 0, so many times."""

    piece: bytes
    times: int


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset, not closed."""


Step = bytes | Pause | Many | Numbered | Reset
Script = tuple[Step, ...]


def head(*fields: str, status: str = "200 OK", kind: str = "text/html") -> bytes:
    """The head of an answer; the body ends with the connection, unless a field says otherwise."""
    lines = [f"HTTP/1.1 {status}", *([f"Content-Type: {kind}"] if kind else []), *fields, "Connection: close", "", ""]
    return "\r\n".join(lines).encode()


def whole(body: bytes, *fields: str, status: str = "200 OK", kind: str = "text/html") -> Script:
    """An answer as it should be. What is put into a body has no length yet: it ends with the connection."""
    length = () if any(place in body for place in _PLACES) else (f"Content-Length: {len(body)}",)
    return (head(*length, *fields, status=status, kind=kind) + body,)


def to(target: str, status: str = "302 Found") -> Script:
    """A redirect."""
    return whole(b"", f"Location: {target}", status=status)


NO_RULES = whole(b"", status="404 Not Found")
PAGE = b"<!doctype html><title>A page</title><p>Nothing to see"
GOOD = whole(PAGE)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the servers of one host do: `answer` whatever is asked for, but `robots` for its rules.

    `resolving` says what its name server does (see `resolving`). Where it `greets`, the answer is sent before anything
    is asked.
    """

    name: str
    answer: Script = GOOD
    robots: Script = NO_RULES
    resolving: str = ""
    greets: bool = False
    scheme: str = "http"
    path: str = "/"
