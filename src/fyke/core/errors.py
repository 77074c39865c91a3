"""Errors of *ours*: of our configuration, our directory, our disk.

A fault of the web is a value (`fyke.core.outcomes.Outcome`), never an exception. Each error here
says in one line what happened, to what, and what to do; `fyke.cli` prints that line and exits
with the class's `exit_status`.
"""

import sys
from pathlib import Path

EXIT_UNABLE = 2  # as for wrong usage; 1 is an answer of some commands: nothing was found, links are broken
EXIT_NO_PAGE = 6  # of a crawl that came to its end, and met nothing but errors (4xx, 5xx), redirects and refusals
EXIT_INTERRUPTED = 130  # of a command that Ctrl-C ended, as shells show it
ROOM = "free some space"  # what to do if a disk is full
LIMIT = "raise the limit on the size of a file (ulimit -f)"  # the same if the file may not grow
ALLOW = "fix its permissions or this process's limits, then run the command again"


def whose(path: Path) -> str:
    """Return the owner of the file as a part of a sentence, empty if unknown."""
    try:
        return f", which belongs to {path.owner()}"
    except (OSError, KeyError):  # a folder that may not be read; a user without a name
        return ""


class FykeError(Exception):
    """Root of all errors a person can do something about."""

    exit_status = 1


class ConfigurationError(FykeError):
    """A key, option or value that cannot be used."""

    exit_status = 2


class BadUrl(ConfigurationError):
    """A seed that is not a URL Fyke can fetch."""


class MissingExtra(FykeError):
    """The command needs packages that were not installed with Fyke."""

    exit_status = EXIT_UNABLE

    def __init__(self, missing: ModuleNotFoundError, extra: str) -> None:
        """`extra` of the package has the `missing` module."""
        super().__init__(
            f"this needs {missing.name}; install the extra {extra}: {sys.executable} -m pip install 'fyke[{extra}]'"
        )


class Stopped(FykeError):
    """Ctrl-C or another signal came before there was a crawl to stop. Or something that was `asked` for: SIGTERM, or
    the end of the time (`time_is_up`)."""

    def __init__(self, said: str, *, asked: bool, time_is_up: bool) -> None:
        super().__init__(said)
        self.time_is_up = time_is_up
        self.exit_status = 0 if asked else EXIT_INTERRUPTED


class BadQuery(ConfigurationError):
    """A search whose filter is empty or wrong."""


class PluginError(ConfigurationError):
    """A plug-in that cannot be imported or does not fit its protocol."""


class DirectoryError(FykeError):
    """A crawl directory that cannot be used."""

    exit_status = 3


class DirectoryInUse(DirectoryError):
    """Another process is crawling into this directory."""


class OtherCrawl(DirectoryError):
    """The directory holds a crawl with other settings."""


class NotACrawl(DirectoryError):
    """The directory holds no crawl."""


class StateDamaged(DirectoryError):
    """No whole manifest, or a file that does not hold what its manifest says."""


class OtherVersion(DirectoryError):
    """A whole file of the state in a form that this version of Fyke does not know."""


class DiskFull(FykeError):
    """A write failed; earlier data is safe."""

    exit_status = 4


class LimitMet(DiskFull):
    """A write failed by a limit of this user or process: waiting makes no room."""


class AgentFailed(FykeError):
    """One of several agents failed by a fault of Fyke, or its process does not stay alive."""


class NetworkDown(FykeError):
    """No server could be reached."""

    exit_status = 5
