"""Gopher (RFC 1436): one line out, a document or a menu back, and the connection ends.

Called by the registry. The first character of the path is the item type and is not sent. The protocol has no status. An
empty answer is CLIENT_ERROR, and so is an answer that is nothing but a menu line of type 3 (error). That holds for
texts too, because servers say "not found" in this way. A cut connection cannot be told from the end of a document.
"""

import re
from collections.abc import Iterable
from typing import Any

from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.wire.curl import CurlClient
from fyke.fetcher.wire.request import Done, Option, Request

_MAX_ERROR_BYTES = 4096
_ERROR = re.compile(rb"3([^\t\r\n]*)\t[^\t\r\n]*\t[^\t\r\n]*(?:\t[^\r\n]*)?(?:\r?\n|$)")
_EMPTY = frozenset({b"", b".", b".\n", b".\r\n"})


class Gopher:
    """The protocol module for `gopher`."""

    schemes = ("gopher",)

    def __init__(self, curl: CurlClient) -> None:
        self._curl = curl

    def fetch(self, visit: Visit, address: str, done: Done) -> None:
        """Start fetching `visit` from `address`; `done` is called once."""
        self._curl.start(Request(visit, address, self), done)

    def options(self) -> Iterable[Option]:
        """Return nothing: libcurl needs no option."""
        return ()

    def conclude(self, exchange: Exchange, lines: list[bytes], curl: Any) -> None:
        """Set the outcome, from the body alone."""
        exchange.effective_protocol = "gopher"
        if exchange.outcome is not Outcome.OK or exchange.body.size > _MAX_ERROR_BYTES:
            return
        body = exchange.body.read()
        if body in _EMPTY:
            exchange.outcome, exchange.detail = Outcome.CLIENT_ERROR, "an empty answer"
        elif error := _ERROR.match(body):
            exchange.outcome = Outcome.CLIENT_ERROR
            exchange.detail = error[1].decode("utf-8", "replace") or "an error line"
