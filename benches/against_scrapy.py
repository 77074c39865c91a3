"""The whole job, Fyke against Scrapy: crawl 100 hosts of a real nginx, obey robots.txt, archive every page.

    make bench        or        .venv/bin/python benches/against_scrapy.py [pages] [pages for Scrapy] [rounds]

The same pages (21 KB, 60 links each, most of them repeated), the same server, one after the other in one
run, each crawler pinned to one core and nginx to the other. Delays are zero. Scrapy writes its WARC
through warcio, with gzip, as people do; it may hold several connections to a host, Fyke holds one. It
is stopped after fewer pages, when it has taken about as long, its start counted like ours. Fyke's table of links is
off, as Scrapy keeps none. What counts is the ratio. Where other programs run beside it, let the two take
turns for some rounds: the run of each with the median of CPU time is shown.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUDPServer

from dnslib import QTYPE, RR, A, DNSRecord

from fyke.lab.simweb import tree_url, write_tree

HOSTS = 100
PORT = 18_472
SERVER_CPU, CRAWLER_CPU = (max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0)))
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
NGINX_CONF = """
daemon off; worker_processes 1; pid {0}/nginx.pid; error_log {0}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000; default_type text/html;
  open_file_cache max=8000 inactive=600s;
  client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d;
  scgi_temp_path {0}/e;
  server {{ listen 127.0.0.1:{1} backlog=4096; root {0}/www/$host; index index.html; }}
}}
"""
SETTINGS = """
[politeness]
host_delay_s = 0
address_delay_s = 0
delay_factor = 0
[dns]
private = ["sim"]
[store]
links = false
"""


class _Names(BaseRequestHandler):
    """Every name is at 127.0.0.1."""

    def handle(self) -> None:
        data, socket = self.request
        asked = DNSRecord.parse(data)
        answer = asked.reply()
        if asked.q.qtype == QTYPE.A:
            answer.add_answer(RR(asked.q.qname, QTYPE.A, rdata=A("127.0.0.1"), ttl=3600))
        socket.sendto(answer.pack(), self.client_address)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """nginx over the tree in `folder`, and a name server; gives the latter's address."""
    folder.chmod(0o755)
    (folder / "nginx.conf").write_text(NGINX_CONF.format(folder, PORT))
    server = subprocess.Popen([NGINX, "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL)
    names = ThreadingUDPServer(("127.0.0.1", 0), _Names)
    threading.Thread(target=names.serve_forever, daemon=True).start()
    time.sleep(0.5)
    for pid in [server.pid, *_children(server.pid)]:
        os.sched_setaffinity(pid, {SERVER_CPU})
    try:
        yield f"127.0.0.1:{names.server_address[1]}"
    finally:
        names.shutdown()
        server.terminate()
        server.wait()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def pinned(command: list[str]) -> tuple[float, float, int, str]:
    """Run `command` on one core: wall seconds, CPU seconds, peak bytes, its output."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {CRAWLER_CPU})
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with {process.returncode}")
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, output


def fyke(folder: Path, dns: str) -> dict[str, float]:
    settings = folder / "settings.toml"
    settings.write_text(SETTINGS)
    command = [sys.executable, "-m", "fyke", "crawl", tree_url(0, HOSTS, PORT), "--scope", "web", "--dns", dns]
    shutil.rmtree(folder / "fyke", ignore_errors=True)
    command += ["--config", str(settings), "--into", str(folder / "fyke"), "--json"]
    _, cpu, _, output = pinned(command)
    found = json.loads(output)
    pages = found["pages"]
    return {
        "pages": pages,
        "pages_s": pages / found["elapsed_s"],
        "cpu_us": cpu / pages * 1e6,
        "memory": found["peak_memory_bytes"],
    }


def scrapy(folder: Path, pages: int) -> dict[str, float]:
    spider = Path(__file__).with_name("scrapy_spider.py")
    command = [sys.executable, str(spider), tree_url(0, HOSTS, PORT), str(pages), str(folder / "scrapy.warc.gz")]
    _, cpu, peak, output = pinned(command)
    found = json.loads(output.splitlines()[-1])
    return {
        "pages": found["pages"],
        "pages_s": found["pages"] / found["elapsed_s"],
        "cpu_us": cpu / found["pages"] * 1e6,
        "memory": peak,
    }


def median(runs: list[dict[str, float]]) -> dict[str, float] | None:
    """The run in the middle by CPU time, or None of none."""
    return sorted(runs, key=lambda run: run["cpu_us"])[len(runs) // 2] if runs else None


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 60_000
    scrapy_pages = int(sys.argv[2]) if len(sys.argv) > 2 else 2_500
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    our_runs, their_runs = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tree(folder / "www", pages, HOSTS, PORT)
        with served(folder) as dns:
            for _ in range(rounds):
                our_runs.append(fyke(folder, dns))
                their_runs += [scrapy(folder, scrapy_pages)] if scrapy_pages else []
    ours, theirs = median(our_runs), median(their_runs)
    print(f"{'':<8} {'pages':>8} {'pages/s':>9} {'CPU µs/page':>12} {'peak MB':>8}")
    for who, row in (("fyke", ours), ("scrapy", theirs)):
        if row:
            megabytes = row["memory"] / 1e6
            print(f"{who:<8} {row['pages']:>8,} {row['pages_s']:>9,.0f} {row['cpu_us']:>12,.0f} {megabytes:>8,.0f}")
    if ours and theirs:
        speed, cpu = ours["pages_s"] / theirs["pages_s"], theirs["cpu_us"] / ours["cpu_us"]
        print(f"{'ratio':<8} {'':>8} {speed:>8.1f}x {cpu:>11.1f}x")


if __name__ == "__main__":
    main()
