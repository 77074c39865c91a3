"""What is wrong for a while with all servers, or with the DNS: faults that pass, whatever the spec says.

Set from outside (`RunningWeb.change_weather`), asked by `http` and `dns` for each request. Invariant: a web without
weather answers as its spec says.
"""

import random
from dataclasses import dataclass
from enum import StrEnum


class ServerTrouble(StrEnum):
    """What befalls a request."""

    NONE = ""
    RESET = "reset"  # the connection is reset once the request has come
    STALL = "stall"  # never an answer
    REFUSE = "refuse"  # the connection is reset before anything is read


class NameTrouble(StrEnum):
    """What befalls a query."""

    NONE = ""
    SILENT = "silent"
    SERVFAIL = "servfail"
    MALFORMED = "malformed"  # the answer ends too soon


@dataclass
class Weather:
    """The trouble of now, and which share of requests and queries meets it."""

    server: ServerTrouble = ServerTrouble.NONE
    names: NameTrouble = NameTrouble.NONE
    share: float = 1.0

    def change(self, server: str, names: str, share: float) -> None:
        """Another weather from now on. Raises ValueError for a word that is none."""
        self.server, self.names, self.share = ServerTrouble(server), NameTrouble(names), share

    def strikes_server(self, dice: random.Random) -> ServerTrouble:
        """The trouble of one request."""
        return self.server if self.server and dice.random() < self.share else ServerTrouble.NONE

    def strikes_name(self, dice: random.Random) -> NameTrouble:
        """The trouble of one query."""
        return self.names if self.names and dice.random() < self.share else NameTrouble.NONE
