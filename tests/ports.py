"""Ports that stay free until a test's server takes them."""

import os
import random
import socket

_BAND = range(
    20_000, 32_000
)  # below those that Linux gives to whoever asks for any (from 32,768), so nobody comes between
_drawn = random.Random(os.getpid())  # apart from the derandomised examples: two test processes must not draw alike


def free_port() -> int:
    """A port that nobody has, by TCP and by UDP."""
    for port in _drawn.sample(_BAND, 100):
        try:
            with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagram:
                stream.bind(("0.0.0.0", port))
                datagram.bind(("0.0.0.0", port))
        except OSError:
            continue
        return port
    raise OSError("a hundred ports tried, and all are taken")
