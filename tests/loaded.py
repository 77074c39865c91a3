"""Fyke's command in a process of its own that finds Fyke loaded.

Loading is most of what a short command takes. So one process has loaded Fyke and does nothing else, and each command
is a fork of it, with the streams, folder, environment and session that it is to have. From there on it is as any
other: it has a number, hears signals, can be killed, and ends by itself. What loading does is tried in
`cli/test_loading.py`, and what measures memory loads Fyke itself.

Run as a program with the number of a socket, this module is the process that waits.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "fyke"]
_REQUEST_BYTES = 1 << 20
_ONE_AT_A_TIME = threading.Lock()


class Loaded(subprocess.Popen[Any]):
    """As Popen of `COMMAND` and its arguments. The process belongs to the one that waits, which says how it ended."""

    def _execute_child(self, args: list[str], executable: Any, preexec_fn: Any, *rest: Any) -> None:
        """What Popen calls when it has made the pipes; a stream that is -1 is inherited."""
        _, _, folder, environment, _, _, _, *pipes = rest[:13]
        assert args[:3] == COMMAND and preexec_fn is None, args
        given = [pipes[0], pipes[3], pipes[5]]
        self._ending, told = os.pipe()
        asked = {
            "arguments": args[3:],
            "folder": os.fspath(folder or Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
            "session": bool(rest[-2]),
        }
        files = [number if pipe == -1 else pipe for number, pipe in enumerate(given)]
        with _ONE_AT_A_TIME:
            socket.send_fds(_waiting(), [json.dumps(asked).encode()], [*files, told])
            self.pid = int(_waiting().recv(20))
        os.close(told)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """As waitpid(2): the number and how it ended, or 0 and 0 while it runs."""
        if wait_flags == os.WNOHANG and not select.select([self._ending], [], [], 0)[0]:
            return 0, 0
        status = os.read(self._ending, 20)
        os.close(self._ending)
        return self.pid, int(status)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                self._wait(0)  # type: ignore[attr-defined]
        return self.returncode


@cache
def _waiting() -> socket.socket:
    """Where the process listens that has loaded Fyke; it ends when this one does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST_BYTES)
    with theirs:
        theirs.set_inheritable(True)
        os.posix_spawn(sys.executable, [sys.executable, __file__, str(theirs.fileno())], os.environ)
    return ours


def _wait(asking: socket.socket) -> dict[str, Any]:
    """Fork for each request; in the fork, return it. Ends the process when nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody needs to know how those ended that only tell
    while True:
        data, files, _, _ = socket.recv_fds(asking, _REQUEST_BYTES, 4)
        if not data:
            os._exit(0)
        if not os.fork():
            break
        for number in files:
            os.close(number)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, told = files
    if child := os.fork():
        asking.send(str(child).encode())
        asking.close()
        for number in streams:
            os.close(number)
        os.write(told, str(os.waitpid(child, 0)[1]).encode())
        os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    asking.close()
    for number in files:
        os.close(number)
    return json.loads(data)  # type: ignore[no-any-return]


def _become(asked: dict[str, Any]) -> None:
    """What a new process of Python has, before its first line; it hears all signals, whatever whoever runs the tests
    does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if asked["session"]:
        os.setsid()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = ["fyke", *asked["arguments"]]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = open(number, "w" if number else "r", 1 if number == 2 else -1, "utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)


if __name__ == "__main__":
    import fyke.__main__
    from fyke.core.memory import give_back

    give_back()  # before Arrow is loaded
    from fyke import cli, explain  # noqa: F401
    from fyke.archive import inspect  # noqa: F401
    from fyke.crawl import run, summary, supervisor  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _become(_wait(socket.socket(fileno=int(sys.argv[1]))))
    fyke.__main__.main()
