"""The least FTP server, which may fall silent."""

import asyncio

from tests.fetcher.wire.conftest import LOCAL

FILES = {"hello.txt": b"hello", "big": b"x" * 300_000}
LISTING = b"-rw-r--r-- 1 ftp ftp 5 Jan 01 2020 hello.txt\r\n"


class FtpServer:
    """The least FTP server: one folder `pub`, passive only; its PASV answer lies about the address."""

    def __init__(self, greeting=b"220 hello", extended=True, refuse=(), silent_at="", says_port=None):
        """It says no more at a command (or at `GREETING`, `DATA`, or `226`, which may be `dribbled`). `says_port`: for
        data, whatever is there."""
        self.greeting, self.extended, self.refuse = greeting, extended, dict(refuse)
        self.silent_at, self.says_port = silent_at, says_port
        self.silent, self.left = asyncio.Event(), asyncio.Event()  # it says no more; the client has gone
        self.commands = []
        self.opened = []
        self.connections = 0

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            await self.converse(reader, writer)
        except OSError:
            pass
        finally:
            self.left.set()
            for opened in (*self.opened, writer):
                opened.close()

    async def pause_at(self, stage, reader, writer):
        """Whether it says no more: then until the client goes."""
        dribbled = self.silent_at == f"{stage} dribbled"
        if not (dribbled or self.silent_at == stage):
            return False
        self.silent.set()
        while dribbled:
            writer.write(b"226-x\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)
        while await reader.read(1000):
            pass
        return True

    async def converse(self, reader, writer):
        self.writer = writer
        if await self.pause_at("GREETING", reader, writer):
            return
        writer.write(self.greeting + b"\r\n")
        while line := await reader.readline():
            command, _, argument = line.strip().decode().partition(" ")
            self.commands.append((command, argument))
            if await self.pause_at(command, reader, writer):
                return
            reply = self.refuse.get(command) or await getattr(self, f"on_{command.lower()}", self.unknown)(argument)
            for stage in ("DATA", "226"):
                if command in ("RETR", "LIST") and await self.pause_at(stage, reader, writer):
                    return
            writer.write(reply + b"\r\n")

    async def unknown(self, _argument):
        return b"500 what?"

    async def on_user(self, _name):
        return b"331 password, please"

    async def on_pass(self, _word):
        return b"230 welcome"

    async def on_quit(self, _):
        return b"221 bye"

    async def on_pwd(self, _):
        return b'257 "/"'

    async def on_type(self, _):
        return b"200 ok"

    async def on_cwd(self, folder):
        return b"250 ok" if folder in ("pub", "/", "/pub") else b"550 no such folder"

    async def on_size(self, name):
        return b"213 %d" % len(FILES[name]) if name in FILES else b"550 no such file"

    async def on_epsv(self, _):
        return b"229 passive (|||%d|)" % await self.data_port() if self.extended else b"500 no"

    async def on_pasv(self, _):
        port = await self.data_port()
        return b"227 passive (192,0,2,1,%d,%d)" % divmod(port, 256)

    async def data_port(self):
        if self.says_port is not None:
            return self.says_port
        self.data = data = asyncio.get_running_loop().create_future()

        async def connected(_reader, writer):
            self.opened.append(writer)
            data.set_result(writer)

        listener = await asyncio.start_server(connected, LOCAL, 0)
        self.opened.append(listener)
        return listener.sockets[0].getsockname()[1]

    async def on_retr(self, name):
        if name not in FILES:
            return b"550 no such file"
        return await self.send(FILES[name])

    async def on_list(self, _):
        return await self.send(LISTING)

    async def send(self, data):
        self.writer.write(b"150 here it comes\r\n")
        writer = await self.data
        if self.silent_at != "DATA":
            writer.write(data)
            writer.close()
        return b"226 done"
