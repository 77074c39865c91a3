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
                forks.start(there, tmp_path / "none", [agent], Orders("none", moved=False).written())
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
    """As the system has it. A crawl that was started with `nice` stays as nice, and threads have turns as before."""
    if tuple(map(int, platform.release().split(".")[:2])) < (6, 12):
        pytest.skip("before Linux 6.12 all turns are as long")
    if not Path("/proc/self/sched").exists():
        pytest.skip("this kernel does not show how long turns are")
    program = """if True:
        import os, threading
        from pathlib import Path
        from fyke.crawl.forks import take_long_turns

        def show():
            lines = Path(f"/proc/self/task/{threading.get_native_id()}/sched").read_text().splitlines()
            slices = [line.split()[-1] for line in lines if line.startswith("se.slice")]
            print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, *slices)

        os.nice(3)
        show()
        take_long_turns()
        show()
        thread = threading.Thread(target=show)
        thread.start()
        thread.join()
        print(os.getpriority(os.PRIO_PROCESS, 0))
    """
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    before, after, thread, nice = map(str.split, said.splitlines())
    assert after == [str(os.SCHED_BATCH), str(round(SLICE_S * 1e9))]
    assert thread == [str(os.SCHED_BATCH), before[1]]
    assert nice == [str(os.getpriority(os.PRIO_PROCESS, 0) + 3)]
