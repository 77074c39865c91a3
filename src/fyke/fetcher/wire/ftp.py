"""FTP: anonymous login; a path that ends in a slash is a listing.

Called by the registry. libcurl opens the data connection to the address of the control connection, whatever the
server's PASV answer says (FTP_SKIP_PASV_IP), so a server cannot send us elsewhere. Other services at its address may be
somebody else's, so their ports are refused (`_is_for_data`).

The reply code is the status. 421 (too many users) is THROTTLED, other 4xx are the server's passing trouble
(SERVER_ERROR), 5xx are final (CLIENT_ERROR): nearly the reverse of HTTP (RFC 959, 4.2.1). libcurl's view, not the
reply, decides whether a transfer went well. A file of which some came has broken off, whatever the reply to that. In
listings, which FTP sends as text, libcurl turns CRLF into LF; files are kept byte for byte.
"""

import re
import socket
from collections.abc import Iterable
from typing import Any

import pycurl

from fyke.core.config import AgentSection
from fyke.core.outcomes import Outcome
from fyke.core.ports import OTHERS_PORTS
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.wire.curl import CurlClient
from fyke.fetcher.wire.request import Done, Option, Request

LEAST_DATA_PORT = 1024  # lower ones belong to services
_PORT = re.compile(rb"227 \D*(?:\d{1,3},){4}(\d{1,3}),(\d{1,3})|229 [^(]*\(.{3}(\d{1,5})")
# Faults that libcurl reports if a server refused; the reply code says which.
_REFUSALS = frozenset({Outcome.BAD_ANSWER, Outcome.BROKEN_OFF})


class Ftp:
    """The protocol module for `ftp`."""

    schemes = ("ftp",)

    def __init__(self, curl: CurlClient, agent: AgentSection) -> None:
        self._curl = curl
        self._password = agent.contact or f"{agent.user_agent}@"

    def fetch(self, visit: Visit, address: str, done: Done) -> None:
        """Start fetching `visit` from `address`; `done` is called once."""
        self._curl.start(Request(visit, address, self, blocks=True), done)

    def options(self) -> Iterable[Option]:
        """Return what libcurl must know once for each handle."""
        return [
            (pycurl.USERNAME, "anonymous"),
            (pycurl.PASSWORD, self._password),
            (pycurl.FTP_SKIP_PASV_IP, 1),
            (pycurl.OPENSOCKETFUNCTION, _FtpSockets().open),
        ]

    def conclude(self, exchange: Exchange, lines: list[bytes], curl: Any) -> None:
        """Set status and outcome of an answer; control lines are not kept."""
        exchange.effective_protocol = "ftp"
        exchange.status = code = curl.getinfo(pycurl.RESPONSE_CODE)
        if exchange.outcome is Outcome.CONNECT_FAILED and (wrong := _refused(lines)):
            exchange.outcome, exchange.detail = Outcome.BAD_ANSWER, wrong
        refused = code >= 400 and exchange.outcome in _REFUSALS and not exchange.truncated
        if code == 421 or refused:
            exchange.outcome = _outcome(code)
            exchange.detail = lines[-1].decode("latin-1").strip() if lines else exchange.detail
            exchange.truncated = ""


class _FtpSockets:
    """Sockets of one transfer: the first is for the control connection, to the port of the URL."""

    def __init__(self) -> None:
        self._controlled = False

    def open(self, _purpose: int, address: tuple[int, int, int, Any]) -> Any:
        """Return a socket for `address` (family, type, protocol, peer), or SOCKET_BAD if its port is not for data."""
        *how, peer = address
        if self._controlled and not _is_for_data(peer[1]):
            return pycurl.SOCKET_BAD
        self._controlled = True
        return _FtpSocket(*how)


class _FtpSocket(socket.socket):
    """A socket that libcurl has a copy of as soon as it is returned."""

    def __del__(self) -> None:
        self.close()


def _refused(lines: list[bytes]) -> str:
    """Return what is wrong with the port for data that the last of `lines` names; empty if nothing is."""
    named = _PORT.match(lines[-1]) if lines else None
    if named is None:
        return ""
    port = int(named[3]) if named[3] else (int(named[1]) << 8) + int(named[2])
    return "" if _is_for_data(port) else f"the server names port {port} for its data, which is for another service"


def _is_for_data(port: int) -> bool:
    return port >= LEAST_DATA_PORT and port not in OTHERS_PORTS


def _outcome(code: int) -> Outcome:
    if code == 421:
        return Outcome.THROTTLED
    return Outcome.CLIENT_ERROR if code >= 500 else Outcome.SERVER_ERROR
