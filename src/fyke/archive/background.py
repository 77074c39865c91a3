"""One job at a time beside the loop: work on a file that no longer changes.

The WARC writer has closed files finished here, the tables have segments sealed. A job must touch nothing but its own
files, because the loop goes on meanwhile. Invariant: a job that failed raises in the loop, at the next `finished`.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec

P = ParamSpec("P")


class Background:
    """A thread for one job, started when there is one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: ThreadPoolExecutor | None = None
        self._job: Future[None] | None = None

    def __repr__(self) -> str:
        return f"Background({self._name}, {'busy' if self.busy else 'idle'})"

    @property
    def busy(self) -> bool:
        """True if a job was started that `finished` has not yet reported."""
        return self._job is not None

    def start(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        assert self._job is None, "one job at a time"
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix=self._name)
        self._job = self._thread.submit(work, *args, **kwargs)

    def finished(self, *, wait: bool) -> bool:
        """Return whether a job has ended that was not reported before. Raises what the job raised."""
        if self._job is None or not (wait or self._job.done()):
            return False
        job, self._job = self._job, None
        job.result()
        return True

    def close(self) -> None:
        """Wait for the job, if any, and forget it."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)
        self._thread = self._job = None
