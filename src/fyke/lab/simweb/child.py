"""A web in its own process, for tests and benchmarks.

Called as `with running_web(spec) as web:`. The child is `python -m fyke.lab.simweb --control`. It obeys lines on its
standard input and ends when that closes, so no web outlives its test.

Invariant: the child is ended by its own handle, and its ledger's file is whole when the block is left.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fyke.lab.simweb.layout import Ports
from fyke.lab.simweb.ledger import LedgerStatistics, read_queries, read_requests
from fyke.lab.simweb.spec import WebSpec
from fyke.lab.simweb.web import Guide

PATIENCE_S = 10.0


class RunningWeb(Guide):
    """A web that runs in a child process."""

    def __init__(self, spec: WebSpec, process: subprocess.Popen[str], path: Path, ready: dict[str, Any]) -> None:
        super().__init__(spec, Ports(*ready["ports"]))
        self._process = process
        self.pid = process.pid
        self.path = path
        self.authority_pem: bytes | None = ready["authority"].encode() or None

    def _ask(self, word: str) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the web was started without pipes")
        stdin.write(word + "\n")
        stdin.flush()
        return json.loads(stdout.readline())

    def ledger(self) -> Any:
        """Return all requests that have ended by now: a pyarrow Table, columns as `ledger.REQUESTS`."""
        self._ask("flush")
        return read_requests(self.path)

    def queries(self) -> Any:
        """Return all DNS queries by now: a pyarrow Table, columns as `ledger.QUERIES`."""
        self._ask("flush")
        return read_queries(self.path)

    def change_weather(self, server: str = "", names: str = "", share: float = 1.0) -> None:
        """Make this `share` of requests and queries meet trouble from now on, by the words of `weather`."""
        self._ask(f"weather {json.dumps([server, names, share])}")

    def statistics(self) -> LedgerStatistics:
        """Return requests, queries and bytes by now."""
        return LedgerStatistics(**self._ask("statistics"))

    def stalls(self) -> list[tuple[float, float]]:
        """Return the latest times, from and until (unix seconds), when the child did not run, as `Web.stalls`."""
        return [(begun, ended) for begun, ended in self._ask("stalls")]


@contextmanager
def running_web(spec: WebSpec, ledger: Path | None = None) -> Iterator[RunningWeb]:
    """Run a web in a child process; its ledger goes to `ledger` or to a temporary file."""
    with tempfile.TemporaryDirectory() as folder:
        path = ledger or Path(folder) / "ledger.arrows"
        command = [
            sys.executable,
            "-m",
            "fyke.lab.simweb",
            "--control",
            "--spec",
            spec.to_json(),
            "--ledger",
            str(path),
        ]
        source = str(Path(__file__).parents[3])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            try:
                line = process.stdout.readline() if process.stdout else ""
                if not line:
                    raise RuntimeError("the web did not start; its message is on standard error")
                yield RunningWeb(spec, process, path, json.loads(line))
            finally:
                if process.stdin is not None:
                    process.stdin.close()
                try:
                    process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
