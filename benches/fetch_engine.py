"""CPU per request: Fyke's engine against bare pycurl, on 21 KB pages over kept connections.

    .venv/bin/python benches/fetch_engine.py [requests] [connections]

A local nginx serves; only this process's CPU is counted. `bare multi` is pycurl with the least Python: `perform()` in
a loop, bodies into lists, no event loop, no exchange. The ratio is the cost of the engine's promises.
"""

import asyncio
import subprocess
import tempfile
import time
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import pycurl
import uvloop
from usage import arguments

from fyke.core.clock import SystemClock
from fyke.core.config import AgentSection, FetchSection
from fyke.core.visits import Visit
from fyke.fetcher.wire.curl import CurlClient
from fyke.fetcher.wire.registry import build_registry

PORT = 18_431
CONFIG = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 2048; }}
http {{
  access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{ listen 127.0.0.1:{port} backlog=2048; root {folder}; default_type text/html; }}
}}
"""


@contextmanager
def nginx(page: bytes):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "page.html").write_bytes(page)
        (Path(folder) / "nginx.conf").write_text(CONFIG.format(folder=folder, port=PORT))
        server = subprocess.Popen(["/usr/sbin/nginx", "-c", f"{folder}/nginx.conf"], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        try:
            yield
        finally:
            server.terminate()
            server.wait()


def urls(connections: int) -> list[str]:
    return [f"http://h{n}.test:{PORT}/page.html" for n in range(connections)]


async def engine(requests: int, connections: int) -> tuple[float, float]:
    loop = asyncio.get_running_loop()
    fetch = CurlClient(loop, FetchSection(connections=connections), SystemClock())
    registry = build_registry(loop, fetch, AgentSection(), SystemClock())
    finished = loop.create_future()
    left = [requests, requests]

    def done(exchange):
        assert exchange.status == 200 and exchange.body.size > 20_000, exchange
        exchange.body.close()
        left[1] -= 1
        if left[0]:
            left[0] -= 1
            registry.fetch(exchange.visit, "127.0.0.1", done)
        elif not left[1]:
            finished.set_result(None)

    started = time.process_time(), time.perf_counter()
    for url in urls(connections):
        left[0] -= 1
        registry.fetch(Visit(url, 0, 0, 0), "127.0.0.1", done)
    await finished
    spent = time.process_time() - started[0], time.perf_counter() - started[1]
    fetch.close()
    return spent


def bare(requests: int, connections: int) -> tuple[float, float]:
    multi = pycurl.CurlMulti()
    for url in urls(connections):
        curl = pycurl.Curl()
        curl.body = []
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.CONNECT_TO, ["::127.0.0.1:"])
        curl.setopt(pycurl.BUFFERSIZE, 128 << 10)
        curl.setopt(pycurl.WRITEFUNCTION, curl.body.append)
        multi.add_handle(curl)
    left, finished = requests - connections, 0
    started = time.process_time(), time.perf_counter()
    while finished < requests:
        multi.perform()
        _, fine, failed = multi.info_read()
        assert not failed, failed
        for curl in fine:
            finished += 1
            curl.body.clear()
            multi.remove_handle(curl)
            if left:
                left -= 1
                multi.add_handle(curl)
        if not fine:
            multi.select(0.01)
    return time.process_time() - started[0], time.perf_counter() - started[1]


def main() -> None:
    requests, connections = arguments(__doc__, requests=20_000, connections=32)
    page = b"<!doctype html><title>a page</title>" + b"<p>word word word</p>" * 1000
    rounds = 3
    with nginx(page):
        best: dict[str, tuple[float, float]] = {}
        for _, (name, measure) in zip(range(2 * rounds), cycle({"bare multi": bare, "engine": engine}.items())):
            spent = measure(requests, connections) if measure is bare else uvloop.run(engine(requests, connections))
            best[name] = min(best.get(name, spent), spent)
    for name, (cpu_s, wall_s) in best.items():
        print(f"{name:12} {cpu_s / requests * 1e6:6.1f} µs CPU a request, {requests / wall_s:8,.0f} requests/s")
    print(f"ratio        {best['engine'][0] / best['bare multi'][0]:6.2f}")


if __name__ == "__main__":
    main()
