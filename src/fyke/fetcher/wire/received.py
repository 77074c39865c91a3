"""The number of bytes that came by a TCP connection, as the system counts them. libcurl does not tell while it is busy.

Called by the watchdog, from its thread, and by `handshakes` and `transfer`. Descriptors stay their owners'.
"""

import fcntl
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from termios import FIONREAD

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


def read_bytes(descriptors: Iterable[int]) -> dict[int, int]:
    """Return the bytes that were read of each TCP connection among `descriptors`. Other descriptors are left out."""
    found = {}
    for fd in tuple(descriptors):
        if (received := received_bytes(fd)) >= 0:
            with suppress(OSError):
                (waiting,) = struct.unpack("i", fcntl.ioctl(fd, FIONREAD, b"    "))
                found[fd] = received - waiting
    return found
