"""Servers behind doors: sites that want a login, a cookie or a certificate, and the proxies in front of them.

`site` is a web server of a few pages that remembers every request's head; `proxy` is an HTTP or SOCKS5 proxy that
takes every name for this machine.
"""

import select
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socketserver import BaseRequestHandler, ThreadingTCPServer

from web_server import Answer, serving, web_server

LINKS = "<a href=/a>a</a><a href=/away>b</a>"


@dataclass
class Site:
    """What was asked of a server: path and header fields, names in small letters."""

    url: str
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    away: str = ""  # where /away redirects to

    def sent(self, name: str) -> set[str]:
        """The values of a header field that were ever sent."""
        return {fields[name] for _, fields in self.asked if name in fields}


@contextmanager
def site(
    allows: Callable[[dict[str, str]], bool] = lambda fields: True,
    *,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> Iterator[Site]:
    """A site with pages for requests that it `allows`; others get 401."""

    def answer(path: str, fields: dict[str, str]) -> Answer:
        path = "/" + path.split("/", 3)[3] if "://" in path else path
        found.asked.append((path, fields))
        status, extra = 200, {"Set-Cookie": "server=own; Path=/"}
        if path == "/robots.txt":
            status = 404
        elif not allows(fields):
            status = 401
        elif path == "/away" and found.away:
            status, extra = 302, {"Location": found.away}
        return status, {"Content-Type": "text/html", **extra}, f"<title>{path}</title>{LINKS}".encode()

    found = Site("")
    with web_server(answer, host, tls=tls) as found.url:
        yield found


@dataclass
class Proxy:
    """What was asked of a proxy."""

    port: int
    asked: list[str] = field(default_factory=list)  # host:port
    heads: list[bytes] = field(default_factory=list)


@contextmanager
def proxy(kind: str, login: str = "") -> Iterator[Proxy]:
    """An `http` or `socks5` proxy; with a `login`, user:password, for those who know it."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError, ValueError):
                (self.http if kind == "http" else self.socks)(self.request)

        def http(self, client: socket.socket) -> None:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (more := client.recv(65536)):  # who only looks whether somebody listens says nothing
                    return
                head += more
            found.heads.append(head)
            if login and b64encode(login.encode()) not in head:
                client.sendall(b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
                return
            method, target, _ = head.split(b" ", 2)
            name = target.decode() if method == b"CONNECT" else target.decode().split("/")[2]
            server = self.reach(name)
            if method == b"CONNECT":
                client.sendall(b"HTTP/1.1 200 Fine\r\nX-Proxy: yes\r\n\r\n")
            else:
                head = head.replace(target, b"/" + target.split(b"/", 3)[3], 1)  # as proxies do
                server.sendall(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            relay(client, server)

        def socks(self, client: socket.socket) -> None:
            client.recv(2 + client.recv(2, socket.MSG_PEEK)[1])
            client.sendall(b"\x05\x00")
            *_, kind_of_name, size = client.recv(5)
            assert kind_of_name == 3  # a name, which the proxy is to look up
            name, port = client.recv(size).decode(), int.from_bytes(client.recv(2), "big")
            server = self.reach(f"{name}:{port}")
            client.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
            relay(client, server)

        def reach(self, name: str) -> socket.socket:
            found.asked.append(name)
            return socket.create_connection(("127.0.0.1", int(name.rpartition(":")[2])))

    class Server(ThreadingTCPServer):
        allow_reuse_address, daemon_threads, block_on_close = True, True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        found = Proxy(server.server_address[1])
        with serving(server):
            yield found


def relay(one: socket.socket, other: socket.socket) -> None:
    """Bytes in both directions, until one side has no more."""
    with other:
        while True:
            for ready in select.select([one, other], [], [], 30)[0]:
                data = ready.recv(65536)
                if not data:
                    return
                (other if ready is one else one).sendall(data)
