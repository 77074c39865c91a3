"""The gopher server (RFC 1436): menus of type 1 and texts of type 0.

`web` calls it. Invariant: one connection, one selector, one row in the ledger; the row's path is the selector as
received, its status 200 or 404.
"""

import asyncio
from collections.abc import Callable

from fyke.lab.simweb import old_tree
from fyke.lab.simweb.hosts import GOPHER_HOST
from fyke.lab.simweb.ledger import Ledger, LedgerRow


class GopherSite:
    """The gopher hole of one web."""

    def __init__(self, port: int, entry: str, ledger: Ledger, now: Callable[[], float]) -> None:
        self._ledger, self._now = ledger, now
        self._items = old_tree.gopher_menus(port, entry) | old_tree.gopher_texts()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            line = await reader.readuntil(b"\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            writer.close()
            return
        arrived = self._now()
        selector = line.rstrip(b"\r\n").decode("latin-1")
        body = self._items.get(selector)
        data = body if body is not None else b"3No such thing\tfake\t(NULL)\t0\r\n.\r\n"
        server, client_port = writer.get_extra_info("sockname")[0], writer.get_extra_info("peername")[1]
        status = 200 if body is not None else 404
        ended = self._now()
        self._ledger.add(
            LedgerRow(arrived, ended, "gopher", server, client_port, GOPHER_HOST, selector, "", status, len(data))
        )
        writer.write(data)
        writer.close()
