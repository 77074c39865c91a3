"""A server of a `Dust` site and of the names of its hosts, on this machine.

Tests and benches call it: `with dust_web(site) as web:`. Invariant: every request is in `asked` before it is
answered.
"""

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fyke.lab.simweb.dns import NOERROR, NXDOMAIN, A, answer, parse, record
from fyke.lab.simweb.dust import NOTHING, Dust

TTL_S = 300


class DustWeb:
    """A running site."""

    def __init__(self, site: Dust, port: int, dns_port: int) -> None:
        self.site = site
        self.seed = f"http://{site.host}:{port}/"
        self.dns = f"127.0.0.1:{dns_port}"
        self.port = port
        self.asked: Counter[tuple[str, str]] = Counter()  # by host and target
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"<DustWeb at {self.seed}, dns {self.dns}>"

    def note(self, host: str, target: str) -> int:
        """Count a request; return a number that grows with each one for the same URL."""
        with self._guard:
            self.asked[host, target] += 1
            return self.asked[host, target] + len(self.asked)

    @property
    def fetched(self) -> Counter[str]:
        """The pages that were shown, by true name, and how often."""
        with self._guard:
            found: Counter[str] = Counter()
            for (host, target), count in self.asked.items():
                name = self.site.page_of(host, target)
                if name is not None:
                    found[name] += count
            return found

    @property
    def missed(self) -> set[str]:
        """Pages that were never shown."""
        return set(self.site.pages()) - self.fetched.keys()

    def page_of_url(self, url: str) -> str | None:
        """Return the true name of the page at `url`, a URL of this web."""
        authority, _, target = url.partition("//")[2].partition("/")
        return self.site.page_of(authority.partition(":")[0], f"/{target}")

    @property
    def distinct(self) -> int:
        """Number of pages, including `NOTHING` if it was shown."""
        return len(self.site.pages()) + (NOTHING in self.fetched)


def _handler(web: DustWeb) -> type[BaseHTTPRequestHandler]:
    """Return the handler of requests to `web`."""
    site = web.site

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            host = self.headers["Host"].partition(":")[0]
            name = site.page_of(host, self.path)
            count = web.note(host, self.path)
            view, _ = site.seen(self.path)
            body = b"not found" if name is None else site.body(name, site.session_of(self.path), count, view)
            body = body.replace(f'"//{site.host}/'.encode(), f'"//{site.host}:{web.port}/'.encode())
            for alias in site.aliases:
                body = body.replace(f'"//{alias}/'.encode(), f'"//{alias}:{web.port}/'.encode())
            self.send_response(404 if name is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class DustServer(ThreadingHTTPServer):
    """A server that ends at once."""

    daemon_threads, block_on_close, request_queue_size = True, False, 128


@contextmanager
def dust_web(site: Dust) -> Iterator[DustWeb]:
    """Serve `site` until the block ends."""
    server = DustServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 0))
    names.settimeout(0.2)
    over = threading.Event()
    web = DustWeb(site, server.server_port, names.getsockname()[1])
    server.RequestHandlerClass = _handler(web)
    threads = [
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}),
        threading.Thread(target=_answer_names, args=(names, {site.host, *site.aliases}, over)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        over.set()
        for thread in threads:
            thread.join()
        names.close()


def _answer_names(at: socket.socket, known: set[str], over: threading.Event) -> None:
    """Answer queries for the `known` names with this machine's address, until it is `over`."""
    while not over.is_set():
        try:
            packet, asker = at.recvfrom(4096)
        except TimeoutError:
            continue
        question = parse(packet)
        if question is None:
            continue
        if question.name not in known:
            at.sendto(answer(question, NXDOMAIN, [], negative=True), asker)
        elif question.type != A:
            at.sendto(answer(question, NOERROR, [], negative=True), asker)
        else:
            found = record(b"\xc0\x0c", A, TTL_S, socket.inet_aton("127.0.0.1"))
            at.sendto(answer(question, NOERROR, [found]), asker)
