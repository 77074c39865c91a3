"""The sockets between the agents of a crawl."""

from pathlib import Path

import psutil
import pytest

from fyke.core.errors import DirectoryError
from fyke.crawl.post import sockets


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
