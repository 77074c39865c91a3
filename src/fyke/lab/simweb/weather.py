"""Passing troubles of all servers or of the DNS, on top of the spec.

Set from outside (`RunningWeb.change_weather`); `http` and `dns` ask it for each request. Invariant: a web without
weather answers as its spec says.
"""

import random
from dataclasses import dataclass
from enum import StrEnum


class ServerTrouble(StrEnum):
    """What happens to a request."""

    NONE = ""
    RESET = "reset"  # the connection is reset once the request has come
    STALL = "stall"  # no answer, ever
    REFUSE = "refuse"  # the connection is reset before anything is read


class NameTrouble(StrEnum):
    """What happens to a query."""

    NONE = ""
    SILENT = "silent"
    SERVFAIL = "servfail"
    MALFORMED = "malformed"  # the answer ends too soon


@dataclass
class Weather:
    """The present trouble, and the share of requests and queries that meets it."""

    server: ServerTrouble = ServerTrouble.NONE
    names: NameTrouble = NameTrouble.NONE
    share: float = 1.0

    def change(self, server: str, names: str, share: float) -> None:
        """Change the weather from now on. Raises ValueError for an unknown word."""
        self.server, self.names, self.share = ServerTrouble(server), NameTrouble(names), share

    def strikes_server(self, dice: random.Random) -> ServerTrouble:
        """Return the trouble of one request."""
        return self.server if self.server and dice.random() < self.share else ServerTrouble.NONE

    def strikes_name(self, dice: random.Random) -> NameTrouble:
        """Return the trouble of one query."""
        return self.names if self.names and dice.random() < self.share else NameTrouble.NONE
