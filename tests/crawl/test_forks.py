"""The fork server says how each process ended that it forked."""

import json
import socket
from pathlib import Path

from fyke.core.errors import NotACrawl
from fyke.crawl.forks import ForkServer
from fyke.crawl.member import Orders


def test_the_last_line_says_how_a_process_ended(tmp_path: Path) -> None:
    """A line of its own, since the process may have died in the middle of another; and there may be many processes."""
    with ForkServer() as forks:
        ours = []
        for agent in range(5):
            here, there = socket.socketpair()
            with there:
                forks.start(there, tmp_path / "none", [agent], Orders(moved=False).written())
            ours.append(here)
        for here in ours:
            said = b""
            while more := here.recv(1 << 16):
                said += more
            told, nothing, ended = said.decode().splitlines()
            assert json.loads(told)["kind"] == NotACrawl.__name__
            assert not nothing
            assert json.loads(ended) == {"exit": NotACrawl.exit_status}
            here.close()
