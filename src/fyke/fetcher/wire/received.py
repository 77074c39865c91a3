"""The number of bytes that came by a TCP connection, or wait at it, as the system counts them.

libcurl does not tell while it is busy.

Called by the watchdog, from its thread, and by `handshakes` and `transfer`. Descriptors stay their owners'.
"""

import fcntl
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from termios import FIONREAD

Ends = tuple[str, str, int, int]  # the server's address and ours, the server's port and ours
_RECEIVED = struct.Struct("128xQ")  # tcpi_bytes_received in the kernel's tcp_info


def received_bytes(fd: int) -> int:
    """Return how many bytes came at the TCP connection `fd`, read or not; below 0 if it is no such connection."""
    with suppress(OSError, ValueError, struct.error):  # ValueError: no descriptor
        connection = socket.socket(fileno=fd)
        try:
            (received,) = _RECEIVED.unpack_from(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256))
        finally:
            connection.detach()
        return int(received)
    return -1


def unread_bytes(fd: int) -> int:
    """Return how many bytes wait at the descriptor `fd`; 0 if it is closed."""
    with suppress(OSError):
        (waiting,) = struct.unpack("i", fcntl.ioctl(fd, FIONREAD, b"    "))
        return int(waiting)
    return 0


class KeptConnections:
    """Finds the descriptor of a connection by its ends, which is all that libcurl says of one that it uses again.

    Bounded: one entry for each descriptor.
    """

    def __init__(self) -> None:
        self._ends: dict[int, Ends] = {}
        self._fds: dict[Ends, int] = {}

    def __repr__(self) -> str:
        return f"KeptConnections({len(self._fds)})"

    def note(self, ends: Ends, fd: int) -> None:
        """Note that the connection between `ends` is at `fd`."""
        earlier = self._ends.get(fd)
        if earlier is not None and self._fds.get(earlier) == fd:
            del self._fds[earlier]
        self._ends[fd] = ends
        self._fds[ends] = fd

    def unread_bytes(self, ends: Ends) -> int:
        """Return how many bytes wait at the connection between `ends`; 0 if it was not noted."""
        fd = self._fds.get(ends)
        return 0 if fd is None else unread_bytes(fd)


def read_bytes(descriptors: Iterable[int]) -> dict[int, int]:
    """Return the bytes that were read of each TCP connection among `descriptors`. Other descriptors are left out."""
    found = {}
    for fd in tuple(descriptors):
        if (received := received_bytes(fd)) >= 0:
            found[fd] = received - unread_bytes(fd)
    return found
