"""The program of `make crawl`: it starts a synthetic web on this machine, crawls it, searches it and reports on it.

    python examples/first_crawl.py [FOLDER]

If you call it again, it goes on where it stopped, or says that nothing is left to do.
"""

import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fyke.archive.directory import CrawlDirectory
from fyke.archive.reading import read_table
from fyke.core.config import build, load, render
from fyke.lab.simweb import RunningWeb, lively, running_web

PORTS = (8470, 8453)  # of HTTP and DNS; fixed, so that a crawl can go on another day
SIZE: dict[str, Any] = {"pages": 1000, "hosts": 60, "crawl_delay_s": 0.05}  # it takes a quarter of a minute
WORD = "river"  # a word on the pages of the web
HASTE: dict[str, dict[str, Any]] = {  # delays for one's own web; the defaults are for the webs of others
    "politeness": {
        "host_delay_s": 0.02, "address_delay_s": 0.01, "delay_factor": 0.5,
        "failure_delay_s": 0.1, "max_sleep_s": 0.5, "host_failures": 3, "tries": 3,
    },
    "fetch": {"connect_timeout_s": 1.5, "timeout_s": 3.0, "stall_s": 1},  # do not wait for its slowest hosts
    "dns": {"private": ["sim"], "timeout_s": 0.5, "negative_ttl_s": 1.0},
}  # fmt: skip


def main(folder: str = "demo") -> int:
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the crawler: it stops, and says so
    into, ports = place(Path(folder))
    spec = lively(http_port=ports[0], dns_port=ports[1], **SIZE)
    with tempfile.TemporaryDirectory() as scratch, running_web(spec) as web:
        print(f"A web of {spec.pages:,} pages on {spec.hosts} hosts runs on this machine; crawling it.\n", flush=True)
        status = crawl(into, web, Path(scratch) / "settings.toml")
    if status == 0:
        what_next(into)
    else:
        print(f"(Its web has ended with it: here, python {sys.argv[0]} {into} is what goes on.)")
    return status


def place(wanted: Path) -> tuple[Path, tuple[int, int]]:
    """Return the folder to crawl into and the ports of the web: the old ones if that crawl can go on, or new ones."""
    for into in folders(wanted):
        if not into.is_dir() or not any(into.iterdir()):
            return into, PORTS if free(PORTS) else (0, 0)
        ports = ports_of(CrawlDirectory(into))
        if ports and free(ports):
            return into, ports
        print(f"{into} is taken; trying another folder.", flush=True)
    raise AssertionError("there is always another name")


def folders(wanted: Path) -> Iterator[Path]:
    yield wanted
    yield from (wanted.with_name(f"{wanted.name}-{number}") for number in count(2))


def ports_of(directory: CrawlDirectory) -> tuple[int, int] | None:
    """Return the ports of HTTP and DNS of the crawl in `directory`, or None if it is not of our web."""
    if not directory.holds_crawl:
        return None
    asked = load(directory.settings)
    seeds, servers = asked.crawl.seeds, asked.dns.servers
    if len(seeds) != 1 or len(servers) != 1 or not (urlsplit(seeds[0]).hostname or "").endswith(".sim"):
        return None
    return urlsplit(seeds[0]).port or 80, int(servers[0].rpartition(":")[2])


def free(ports: tuple[int, int]) -> bool:
    try:
        for port, kind in zip(ports, (socket.SOCK_STREAM, socket.SOCK_DGRAM), strict=True):
            with socket.socket(socket.AF_INET, kind) as one:
                if kind is socket.SOCK_STREAM:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def crawl(into: Path, web: RunningWeb, settings: Path) -> int:
    """Run `fyke crawl`, as anyone would."""
    settings.write_text(render(build(HASTE | {"dns": {**HASTE["dns"], "servers": [web.dns]}}, "first crawl")))
    command = [sys.executable, "-m", "fyke", "crawl", *web.seeds, "--scope", "web"]
    return subprocess.call([*command, "--config", str(settings), "--into", str(into)])


def what_next(into: Path) -> None:
    """Show the results, and print a few commands to try, each of which works as printed."""
    print(flush=True)
    for arguments in (["index", into], ["search", into, WORD, "--limit", "3"], ["report", into], ["links", into]):
        subprocess.call([sys.executable, "-m", "fyke", *map(str, arguments)])
    beside = Path(sys.executable).with_name("fyke")
    fyke = str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)
    pages = read_table(into, "pages", ["url", "outcome"]).to_pylist()
    refused = [page["url"] for page in pages if page["outcome"] == "robots_forbade"]
    print("\nOpen the report in a browser. Now try:")
    print(f"  {fyke} serve {into}                  # search page, archived pages, dashboard")
    print(f"  {fyke} links {into} --broken")
    print(f"  {fyke} status {into}")
    if refused:
        print(f"  {fyke} why {into} {shlex.quote(refused[0])}")
    print(f"  {fyke} check {into}")
    query = f"select media_type, count(*) as pages from '{into}/tables/pages-*.parquet' group by 1 order by 2 desc"
    print(f'  {fyke.removesuffix("fyke")}python -c "import duckdb; print(duckdb.sql(\\"{query}\\"))"')


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
