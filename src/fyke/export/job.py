"""What a format has in common with the others: work in parts.

`fyke.export.run` makes one job of what was asked and carries it out. Invariant: each part is a function of the crawl
and of the mark before it, and its bytes are safe when its mark is given.
"""

from collections.abc import Iterator
from typing import Protocol

from fyke.export.staging import Mark


class Job(Protocol):
    """One export, to be carried out from any mark on."""

    total: int
    unit: str  # of the total, for people: pages, links, bytes
    unreadable: int  # pages whose record could not be read, since the job was made

    def parts(self, mark: Mark) -> Iterator[Mark]:
        """Do what comes after `mark`, a part at a time. Raises DiskFull or DirectoryError."""
        ...

    def finish(self, mark: Mark) -> None:
        """What is left when all parts are there; done again if it was interrupted."""
        ...
