"""The FTP server (RFC 959, 2428, 3659): anonymous, passive, read-only.

`web` calls it. Invariant: each RETR, LIST or NLST that is served or names a missing file is one row in the ledger.
Its arrival is the first command after the connection's opening or after the previous row; so a client that keeps the
control connection busy is seen to overlap.
"""

import asyncio
import posixpath
from collections.abc import Callable

from fyke.lab.simweb import old_tree
from fyke.lab.simweb.hosts import FTP_HOST
from fyke.lab.simweb.ledger import Ledger, LedgerRow

DATA_WAIT_S = 10.0


class FtpSite:
    """The FTP server of one web."""

    def __init__(self, port: int, entry: str, ledger: Ledger, now: Callable[[], float]) -> None:
        self.files = old_tree.ftp_files(entry, port)
        self.folders = {"/"} | {posixpath.dirname(path) + "/" for path in self.files} | {"/pub/"}
        self.ledger, self.now = ledger, now

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one control connection."""
        session = _FtpSession(self, writer)
        try:
            session.say("220 simweb")
            while not session.done:
                line = await reader.readline()
                if not line:
                    break
                await session.command(line.rstrip(b"\r\n").decode("latin-1"))
        except (ConnectionError, ValueError):
            session.done = True
        finally:
            session.close()


class _FtpSession:
    """One control connection, with its folder and its data listener, if any."""

    def __init__(self, ftp: FtpSite, writer: asyncio.StreamWriter) -> None:
        self._ftp, self._writer = ftp, writer
        self._folder = "/"
        self._arrived: float | None = None
        self._listener: asyncio.Server | None = None
        self._data: asyncio.Future[asyncio.StreamWriter] | None = None
        self.done = False

    def say(self, text: str) -> None:
        self._writer.write(text.encode("latin-1") + b"\r\n")

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._data is not None and self._data.done() and not self._data.cancelled():
            self._data.result().close()
        self._writer.close()

    async def command(self, line: str) -> None:
        """Answer one command."""
        verb, _, argument = line.partition(" ")
        verb = verb.upper()
        if self._arrived is None:
            self._arrived = self._ftp.now()
        if verb in _FIXED:
            self.say(_FIXED[verb])
            self.done = verb == "QUIT"
        elif verb in ("PASV", "EPSV"):
            await self._listen(verb)
        elif verb in ("RETR", "LIST", "NLST"):
            await self._transfer(verb, argument)
        elif verb == "PWD":
            self.say(f'257 "{self._folder.rstrip("/") or "/"}"')
        elif verb in ("CWD", "CDUP"):
            self._change(argument if verb == "CWD" else "..")
        elif verb in ("SIZE", "MDTM"):
            body = self._ftp.files.get(self._path(argument))
            said = old_tree.MODIFIED if verb == "MDTM" else str(len(body or b""))
            self.say("550 No such file" if body is None else f"213 {said}")
        else:
            self.say("502 Not implemented")

    def _path(self, argument: str) -> str:
        return posixpath.normpath(posixpath.join(self._folder, argument)).replace("//", "/")

    def _change(self, argument: str) -> None:
        folder = self._path(argument).rstrip("/") + "/"
        if folder in self._ftp.folders:
            self._folder = folder
            self.say("250 OK")
        else:
            self.say("550 No such directory")

    async def _listen(self, verb: str) -> None:
        if self._listener is not None:
            self._listener.close()
        address = self._writer.get_extra_info("sockname")[0]
        data: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if data.done():
                writer.close()
            else:
                data.set_result(writer)

        self._data = data
        self._listener = await asyncio.start_server(accept, address, 0)
        port = self._listener.sockets[0].getsockname()[1]
        if verb == "EPSV":
            self.say(f"229 Entering Extended Passive Mode (|||{port}|)")
        else:
            self.say(f"227 Entering Passive Mode ({address.replace('.', ',')},{port >> 8},{port & 255})")

    def _content(self, verb: str, argument: str) -> tuple[str, bytes | None]:
        """Return the requested path and its bytes, or None for a missing one."""
        if verb == "RETR":
            path = self._path(argument)
            return path, self._ftp.files.get(path)
        folder = self._path("" if argument.startswith("-") else argument).rstrip("/") + "/"
        if folder not in self._ftp.folders:
            return folder, None
        rows = []
        for name, size in old_tree.ftp_listing(self._ftp.files, folder):
            kind = "drwxr-xr-x 2" if size is None else "-rw-r--r-- 1"
            long = f"{kind} ftp ftp {size or 4096:>8} Feb 29  2020 {name}"
            rows.append(f"{long if verb == 'LIST' else name}\r\n")
        return folder, "".join(rows).encode()

    async def _transfer(self, verb: str, argument: str) -> None:
        path, body = self._content(verb, argument)
        if body is None:
            self._note(path, 404, 0)
            self.say("550 No such file or directory")
            return
        if self._data is None:
            self.say("425 Use PASV first")
            return
        self.say(f"150 Here comes {path}")
        try:
            writer = await asyncio.wait_for(self._data, DATA_WAIT_S)
        except TimeoutError:
            self.say("425 No data connection")
            return
        finally:
            self._data = None
        writer.write(body)
        writer.close()
        self._note(path, 200, len(body))
        self.say("226 Done")

    def _note(self, path: str, status: int, size: int) -> None:
        ftp = self._ftp
        server, client_port = self._writer.get_extra_info("sockname")[0], self._writer.get_extra_info("peername")[1]
        now = ftp.now()
        arrived = now if self._arrived is None else self._arrived
        ftp.ledger.add(LedgerRow(arrived, now, "ftp", server, client_port, FTP_HOST, path, "", status, size))
        self._arrived = None


_FIXED = {
    "USER": "331 Any password will do",
    "PASS": "230 Welcome",
    "TYPE": "200 OK",
    "SYST": "215 UNIX Type: L8",
    "NOOP": "200 OK",
    "MODE": "200 OK",
    "STRU": "200 OK",
    "OPTS": "200 OK",
    "FEAT": "211-Features\r\n EPSV\r\n MDTM\r\n SIZE\r\n211 End",
    "QUIT": "221 Goodbye",
}
