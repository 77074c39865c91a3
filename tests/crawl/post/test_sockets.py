"""The sockets between the agents of a crawl."""

import errno
import os
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


def test_where_the_file_system_knows_no_sockets_they_are_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is gone with the crawl."""
    with sockets.folder_for_sockets(tmp_path) as folder:
        assert folder == tmp_path
    bound = sockets.bound

    def refused(folder: Path, name: str) -> object:
        if folder == tmp_path:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return bound(folder, name)

    monkeypatch.setattr(sockets, "bound", refused)
    with sockets.folder_for_sockets(tmp_path) as folder:
        bound(folder, "agent-0000.sock").close()
        assert folder != tmp_path and folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()
