"""The fork server says how each process ended that it forked, and how agents share a processor."""

import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fyke.core.errors import NotACrawl
from fyke.crawl.forks import SLICE_S, ForkServer
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


def test_agents_work_in_long_turns() -> None:
    """As the system has it; and a crawl that was started with `nice` stays as nice."""
    if tuple(map(int, platform.release().split(".")[:2])) < (6, 12):
        pytest.skip("before Linux 6.12 all turns are as long")
    if not Path("/proc/self/sched").exists():
        pytest.skip("this kernel does not show how long turns are")
    program = (
        "import os; from fyke.crawl.forks import take_long_turns; os.nice(3); take_long_turns();"
        "print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), open('/proc/self/sched').read())"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert said[:2] == [str(os.SCHED_BATCH), str(os.getpriority(os.PRIO_PROCESS, 0) + 3)]
    assert int(said[said.index("se.slice") + 2]) == round(SLICE_S * 1e9)
