"""A web brought up: nginx for its pages, a name server for its names, a log of requests.

Called inside a network of its own (`alone`). Each host has its own address in 127.0.0.0/8. nginx has one worker, on
the last of the machine's cores; crawlers are held on the first. Fetched pages are counted in the server's log, not by
what the crawler says.
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUDPServer

from dnslib import QTYPE, RCODE, RR, A, DNSRecord

from webs import FORBIDDEN, Web, hosts_of
from webs.alone import NAME_SERVER

_CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CRAWLER_CORE = _CORES[-1], _CORES[0]
_NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
_SETTINGS = """
daemon off; user root root; worker_processes 1; pid {0}/nginx.pid; error_log {0}/error.log; worker_rlimit_nofile 65536;
events {{ worker_connections 16384; }}
http {{
  types {{ text/html html; text/plain txt; text/css css; }}
  default_type text/html; charset utf-8; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000;
  server_names_hash_max_size 8192; server_names_hash_bucket_size 128; index index.html;
  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:sessions:32m;
  log_format told "$host$request_uri\t$status\t$body_bytes_sent\t$connection\t$ssl_session_reused";
  access_log {0}/access.log told;
  client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d;
  scgi_temp_path {0}/e;
  {1}
}}
"""
_FYKE_SETTINGS = """
[politeness]
host_delay_s = 0
address_delay_s = 0
delay_factor = 0
[dns]
servers = ["{dns}"]
private = ["test"]
[store]
links = false
[fetch]
ca_file = "{ca}"
"""


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of a crawl in the server's log."""

    pages: int  # different ones, answered with 200
    again: int  # requests for a page already fetched
    forbidden: int  # requests that robots.txt forbids
    robots: int  # hosts whose robots.txt was asked for
    missing: int  # other answers than 200
    body_bytes: int  # of pages, as sent
    connections: int
    resumed: int  # connections that resumed an earlier TLS session


class LogReader:
    """A counter of the server's log as it grows: lines as in `log_format`."""

    def __init__(self, log: Path) -> None:
        self._file = log.open()
        self._half = ""  # a line that is not yet whole
        self._pages: set[str] = set()
        self._robots: set[str] = set()
        self._connections: set[str] = set()
        self._resumed: set[str] = set()
        self._again = self._forbidden = self._missing = self._body_bytes = 0

    def read(self) -> Tally:
        """Return the counts until now."""
        *lines, self._half = (self._half + self._file.read()).split("\n")
        for line in lines:
            url, status, size, connection, resumed = line.split("\t")
            self._count(url, status, int(size))
            (self._resumed if resumed == "r" else self._connections).add(connection)
        counts = (self._again, self._forbidden, len(self._robots), self._missing, self._body_bytes)
        return Tally(len(self._pages), *counts, len(self._connections | self._resumed), len(self._resumed))

    def _count(self, url: str, status: str, size: int) -> None:
        host, _, path = url.partition("/")
        if path == "robots.txt":
            self._robots.add(host)
        elif f"/{path}".startswith(FORBIDDEN):
            self._forbidden += 1
        elif status == "200":
            self._again += url in self._pages
            self._pages.add(url)
            self._body_bytes += size
        elif status != "204":  # a resource that exists and is empty is no page
            self._missing += 1

    def urls(self) -> list[str]:
        """Return the pages asked for, without their scheme, in a fixed order."""
        return sorted(self._pages)

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class Served:
    """A running web. `settings` is a file for `fyke crawl --config`, `ca` the certificates to trust, if any."""

    web: Web
    settings: Path
    ca: str
    log: Path
    addresses: Mapping[str, str]  # by host

    @contextmanager
    def counted(self) -> Iterator[LogReader]:
        """Yield a reader of requests from now on; the log begins anew."""
        os.truncate(self.log, 0)
        reader = LogReader(self.log)
        try:
            yield reader
        finally:
            reader.close()


class _Names(ThreadingUDPServer):
    """A name server for the hosts of a web."""

    def __init__(self, addresses: dict[str, str]) -> None:
        super().__init__((NAME_SERVER, 53), _Answer)
        self.addresses = addresses


class _Answer(BaseRequestHandler):
    def handle(self) -> None:
        data, socket = self.request
        asked = DNSRecord.parse(data)
        answer = asked.reply()
        assert isinstance(self.server, _Names)
        address = self.server.addresses.get(str(asked.q.qname).rstrip(".").lower())
        if not address:
            answer.header.rcode = RCODE.NXDOMAIN
        elif asked.q.qtype == QTYPE.A:
            answer.add_answer(RR(asked.q.qname, QTYPE.A, rdata=A(address), ttl=86_400))
        socket.sendto(answer.pack(), self.client_address)


def address_of(number: int) -> str:
    """Return the address of a web's host."""
    return f"127.1.{number // 200}.{number % 200 + 1}"


@contextmanager
def served(web: Web, made: Path, folder: Path) -> Iterator[Served]:
    """Bring up `web`, whose files are in `made`; the servers write into `folder`."""
    folder.chmod(0o755)
    addresses = {host: address_of(number) for number, host in enumerate(hosts_of(made))}
    (folder / "nginx.conf").write_text(_SETTINGS.format(folder, web.settings(made, addresses)))
    log, settings = folder / "access.log", folder / "fyke.toml"
    log.touch()
    ca = str(made / "ca.pem") if web.tls else ""
    settings.write_text(_FYKE_SETTINGS.format(dns=NAME_SERVER, ca=ca))
    names = _Names(addresses)
    threading.Thread(target=names.serve_forever, daemon=True).start()
    writer = _writer(web, made)
    nginx = subprocess.Popen([_NGINX, "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL)
    try:
        _await_worker(nginx, folder)
        yield Served(web, settings, ca, log, addresses)
    finally:
        for server in filter(None, (nginx, writer)):
            server.terminate()
            server.wait()
        names.shutdown()
        names.server_close()


def _writer(web: Web, made: Path) -> "subprocess.Popen[bytes] | None":
    """Return the listening program that writes the pages of `web`, or None if it needs none."""
    if not web.writer:
        return None
    command = ["taskset", "-c", str(SERVER_CORE), sys.executable, "-m", web.writer, str(made)]
    writer = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE)
    if writer.stdout is None or not writer.stdout.readline():
        raise SystemExit(f"{web.writer} did not start")
    return writer


def _await_worker(nginx: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Wait until nginx has its worker, and put both on the server's core."""
    children = Path(f"/proc/{nginx.pid}/task/{nginx.pid}/children")
    while not (workers := children.read_text().split()):
        if nginx.poll() is not None:
            raise SystemExit(f"nginx did not start: {(folder / 'error.log').read_text().strip()}")
        time.sleep(0.01)
    for pid in [nginx.pid, *map(int, workers)]:
        os.sched_setaffinity(pid, {SERVER_CORE})
