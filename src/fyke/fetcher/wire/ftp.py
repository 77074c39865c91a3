"""FTP: anonymous login; a path that ends in a slash is a listing.

Called by the registry. libcurl opens the data connection to the address of the control connection,
whatever the server's PASV answer says (FTP_SKIP_PASV_IP), so a server cannot send us elsewhere.

The reply code is the status. 421 (too many users) is THROTTLED, other 4xx are the server's passing
trouble (SERVER_ERROR), 5xx are final (CLIENT_ERROR): nearly the reverse of HTTP (RFC 959, 4.2.1).
Not the reply but libcurl's view decides whether a transfer went well. In listings, which FTP sends as
text, libcurl turns CRLF into LF; files are kept byte for byte.
"""

from collections.abc import Iterable
from typing import Any

import pycurl

from fyke.core.config import AgentSection
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.wire.curl import CurlEngine
from fyke.fetcher.wire.transfer import Done, Option, Request

# Faults libcurl reports for a server that answered with a refusal; the reply code says which.
_REFUSALS = frozenset({Outcome.BAD_ANSWER, Outcome.BROKEN_OFF})


class Ftp:
    """The protocol module for `ftp`."""

    schemes = ("ftp",)

    def __init__(self, engine: CurlEngine, agent: AgentSection) -> None:
        self._engine = engine
        self._password = agent.contact or f"{agent.user_agent}@"

    def fetch(self, visit: Visit, address: str, done: Done) -> None:
        """Start fetching `visit` from `address`; `done` is called once."""
        self._engine.start(Request(visit, address, self, blocks=True), done)

    def options(self) -> Iterable[Option]:
        """What libcurl must know once for each handle."""
        return [
            (pycurl.USERNAME, "anonymous"),
            (pycurl.PASSWORD, self._password),
            (pycurl.FTP_SKIP_PASV_IP, 1),
        ]

    def conclude(self, exchange: Exchange, lines: list[bytes], curl: Any) -> None:
        """Status and outcome of an answer; control lines are not kept."""
        exchange.effective_protocol = "ftp"
        exchange.status = code = curl.getinfo(pycurl.RESPONSE_CODE)
        if code == 421 or (code >= 400 and exchange.outcome in _REFUSALS):
            exchange.outcome = _outcome(code)
            exchange.detail = lines[-1].decode("latin-1").strip() if lines else exchange.detail
            exchange.truncated = ""


def _outcome(code: int) -> Outcome:
    if code == 421:
        return Outcome.THROTTLED
    return Outcome.CLIENT_ERROR if code >= 500 else Outcome.SERVER_ERROR
