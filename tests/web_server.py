"""A web server on this machine, whose answers a function gives."""

import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

Answer = tuple[int, Mapping[str, str], bytes]  # status, header, body


@contextmanager
def web_server(
    answer: Callable[[str, dict[str, str]], Answer],
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """The server's URL. `answer` is given a path and a header, names in small letters; each in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each body waits 40 ms until its head has been acknowledged

        def do_GET(self) -> None:
            status, header, body = answer(self.path, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **header}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:  # who asked went away
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads, block_on_close, request_queue_size = True, False, 128

        def get_request(self) -> tuple[socket.socket, object]:
            client, address = super().get_request()
            if tls is not None:
                client.settimeout(10)
                client = tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
            return client, address

        def handle_error(self, request: object, address: object) -> None:
            if not isinstance(sys.exception(), OSError):
                super().handle_error(request, address)

    with Server((host, port), Handler) as server, serving(server):
        name = f"[{host}]" if ":" in host else host
        yield f"{'https' if tls else 'http'}://{name}:{server.server_port}/"


@contextmanager
def serving(server: TCPServer) -> Iterator[None]:
    """Have it serve until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
