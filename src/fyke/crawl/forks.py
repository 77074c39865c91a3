"""Starts the processes of a crawl's agents by forking one that has everything imported: an agent begins at once, and
shares with the others all memory that none of them changes.

    command ─► fork server ─► an agent's process, each with a socket to the supervisor

The fork server is forked from the command itself (`run`), before the command has an event loop, threads of its own,
locks or sockets. The server has none of these either, so it may fork at any time, and nothing of the supervisor is in
an agent. Threads that libraries have by then (OpenBLAS, jemalloc) know of forks. When the supervisor is gone, server
and agents end. When the server is gone, the supervisor is told (`watch`): it would hear of no agent's death, and could
start none.

Invariant: the last line that the supervisor reads from an agent's socket says how the process ended.
"""

import asyncio
import ctypes
import json
import os
import select
import signal
import socket
import struct
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from fyke.core.errors import AgentFailed
from fyke.core.memory import MemoryGauge
from fyke.crawl.member import member
from fyke.crawl.signals import stop_signals

SLICE_S = 0.1  # for which an agent keeps a processor that others want: the most that Linux gives
_LENGTH = struct.Struct("<I")
_ATTRIBUTES = struct.Struct("=IIQiIQQQII")  # of sched_setattr(2)
_NOT_THREADS = 1  # SCHED_FLAG_RESET_ON_FORK
_SETATTR = {"x86_64": 314, "aarch64": 274}  # system call numbers: the C library names it since glibc 2.41


class ForkServer:
    """The supervisor's end. Use as a context manager, which forks."""

    def __enter__(self) -> Self:
        self._asking, asked = socket.socketpair()
        self._process = os.fork()
        if not self._process:
            self._asking.close()
            _end_with(_Server(asked).run)
        asked.close()
        self.memory = MemoryGauge(self._process)  # its part of the memory that all share
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._asking.close()
        with suppress(ChildProcessError):
            os.waitpid(self._process, 0)

    def start(self, control: socket.socket, directory: Path, agents: list[int], orders: str) -> None:
        """Start a process that runs `agents` of the crawl in `directory` and obeys at `control`. Raises AgentFailed."""
        asked = json.dumps([os.fspath(directory), agents, orders]).encode()
        try:
            socket.send_fds(self._asking, [_LENGTH.pack(len(asked))], [control.fileno()])
            self._asking.sendall(asked)
        except OSError:
            raise gone(directory) from None

    def watch(self, on_end: Callable[[], None]) -> None:
        """Have the running event loop call `on_end` once, if the server ends before `unwatch`."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            loop.remove_reader(self._asking)
            on_end()

        loop.add_reader(self._asking, end)  # the server says nothing, so this is the end of what it says

    def unwatch(self) -> None:
        """Stop watching."""
        asyncio.get_running_loop().remove_reader(self._asking)


def gone(directory: Path) -> AgentFailed:
    """Return the error of a crawl in `directory` whose fork server ended."""
    return AgentFailed(
        "the process that starts agents is gone: see the system's log for the cause (too little memory?); fyke crawl"
        f" --into {directory} goes on from the last checkpoint"
    )


def how_ended(status: int | None) -> str:
    """Return how a process ended, in words, by its exit `status`."""
    if status is None:
        return "an unknown cause"  # the fork server, which would know, is gone as well
    return f"signal {-status}" if status < 0 else f"exit status {status}"


class _Server:
    """The fork server's end."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked
        self._running: dict[int, socket.socket] = {}  # by process

    def run(self) -> int:
        """Fork the processes that are asked for, and say how each ended, until the supervisor is gone."""
        with Path(os.devnull).open("r+b") as nothing:
            for standard in (0, 1):
                os.dup2(nothing.fileno(), standard)
        for number in stop_signals():
            signal.signal(number, signal.SIG_IGN)  # the supervisor says when
        woken, wakes = os.pipe()
        for end in (woken, wakes):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            ready, _, _ = select.select([self._asked.fileno(), woken], [], [])
            if woken in ready:
                os.read(woken, 4096)
                self._reap()
            if self._asked.fileno() in ready and not self._fork():
                return 0

    def _fork(self) -> bool:
        """Start the process that is asked for; return False if the supervisor is gone."""
        try:
            head, descriptors, _, _ = socket.recv_fds(self._asked, _LENGTH.size, 1)
            if not head:
                return False
            (length,) = _LENGTH.unpack(head)
            directory, agents, orders = json.loads(self._asked.recv(length, socket.MSG_WAITALL))
        except ConnectionError:
            return False
        control = socket.socket(fileno=descriptors[0])
        process = os.fork()
        if not process:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self._asked, *self._running.values()):
                other.close()
            take_long_turns()
            _end_with(member, Path(directory), control, agents, orders)
        self._running[process] = control
        return True

    def _reap(self) -> None:
        while self._running:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            control = self._running.pop(process)
            line = json.dumps({"exit": os.waitstatus_to_exitcode(status)}).encode()
            with control, suppress(OSError):
                control.sendall(b"\n" + line + b"\n")  # the line before may be half a line


def take_long_turns() -> None:
    """Have this process work in batches: it does not interrupt others as soon as a packet comes. If agents share a
    processor, each keeps it for `SLICE_S`, because the next finds the caches full of another's data. Other processes,
    and threads that it begins, have turns as short as before. Linux before 6.12 has one length of turns for all."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    number = _SETATTR.get(os.uname().machine)
    if number is not None:
        nice, slice_ns = os.getpriority(os.PRIO_PROCESS, 0), int(SLICE_S * 1e9)
        attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_BATCH, _NOT_THREADS, nice, 0, slice_ns, 0, 0, 0, 0)
        ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, attributes, 0)


def _end_with(run: Any, *arguments: Any) -> NoReturn:
    """End this process with what `run` returns, and run nothing that it was forked with."""
    status = 1
    try:
        status = run(*arguments)
    except BaseException:  # noqa: BLE001 - the process ends with it
        traceback.print_exc()
    finally:
        os._exit(status)
