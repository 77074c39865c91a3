"""Files of FTP and Gopher that never come whole: what came is kept, and what it links to is found."""

import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawl.runs import crawl, fyke, settings
from fyke.archive.reading import read_table
from web_server import serving

PAGES, LEAVES, TRIES = 8, 12, 2
POLITENESS = {"failure_delay_s": 0.01, "max_sleep_s": 0.04, "tries": TRIES, "host_failures": 4}
LEAF = b"<title>leaf</title>"
LINK = re.compile(r'href="(leaf[0-9-]+\.html)"')
WAYS = {  # in which the data end; WARC's word for it
    "short": "disconnect",  # with a reply that all is well
    "aborted": "disconnect",  # with a reply that it is not
    "reset": "disconnect",
    "dropped": "disconnect",  # and the conversation with them
    "resting": "time",
}


def body_of(page: int) -> bytes:
    links = (f'<p>words <a href="leaf{page}-{leaf}.html">leaf</a>' for leaf in range(LEAVES))
    return f"<!doctype html><title>broken {page}</title>{''.join(links)}".encode()


def beginning(page: int) -> bytes:
    whole = body_of(page)
    return whole[: Random(page).randrange(1, len(whole))]


def is_broken(path: str) -> bool:
    return path.startswith("broken")


class FileServer(ThreadingTCPServer):
    """Pages that break off in one way, and leaves that do not, by FTP or Gopher."""

    allow_reuse_address = daemon_threads = True
    block_on_close = False

    def __init__(self, way: str, protocol: type[StreamRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), protocol)
        self.way = way
        self.asked: Counter[str] = Counter()

    def handle_error(self, request: object, address: object) -> None:
        """Whoever asked went away."""


class Ftp(StreamRequestHandler):
    server: FileServer

    data: socket.socket | None = None

    def finish(self) -> None:
        if self.data is not None:
            self.data.close()
        super().finish()

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def handle(self) -> None:
        self.say("220 hello")
        while line := self.rfile.readline().decode().strip():
            verb, _, name = line.partition(" ")
            if verb == "EPSV":
                self.data = socket.create_server(("127.0.0.1", 0))
                self.say(f"229 Passive (|||{self.data.getsockname()[1]}|)")
            elif verb == "SIZE":
                self.say(f"213 {len(body_of(int(name[6:-5])) if is_broken(name) else LEAF)}")
            elif verb in ("RETR", "LIST"):
                self.say("150 here it comes")
                if not self.send(name):
                    return
            else:
                self.say({"USER": "331 go on", "PASS": "230 in", "PWD": '257 "/"'}.get(verb, "200 ok"))

    def send(self, name: str) -> bool:
        """Send a file or the list of all; return whether the conversation goes on."""
        self.server.asked[name] += 1
        assert self.data is not None
        to, _ = self.data.accept()
        self.data.close()
        with to:
            if not is_broken(name):
                names = [f"broken{page}.html" for page in range(PAGES)]
                rows = "".join(f"-rw-r--r-- 1 ftp ftp 999 Jan 01 2020 {one}\r\n" for one in names)
                to.sendall(LEAF if name else rows.encode())
                self.say("226 done")
                return True
            to.sendall(beginning(int(name[6:-5])))
            if not end_data(to, self.server.way):
                return False
        self.say("226 done" if self.server.way == "short" else "426 transfer aborted")
        return True


class GopherFiles(StreamRequestHandler):
    server: FileServer

    def handle(self) -> None:
        name = self.rfile.readline().decode().strip().lstrip("/")
        self.server.asked[name] += 1
        port = self.server.server_address[1]
        if name == "":
            rows = (f"hbroken {n}\t/broken{n}.html\t127.0.0.1\t{port}\r\n" for n in range(PAGES))
            self.wfile.write("".join(rows).encode() + b".\r\n")
        elif not is_broken(name):
            self.wfile.write(LEAF)
        else:
            self.wfile.write(beginning(int(name[6:-5])))
            end_data(self.connection, self.server.way)


def end_data(connection: socket.socket, way: str) -> bool:
    """End the data; return whether something is said of it."""
    if way == "reset":
        time.sleep(0.05)  # what was sent must be read before
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    elif way == "resting":
        connection.settimeout(20)
        with suppress(OSError):
            connection.recv(1)
        return False
    return way != "dropped"


@contextmanager
def file_server(way: str, protocol: type[StreamRequestHandler]) -> Iterator[FileServer]:
    with FileServer(way, protocol) as server, serving(server):
        yield server


@pytest.mark.parametrize(
    ("scheme", "way"), [*(("ftp", way) for way in WAYS), ("gopher", "reset"), ("gopher", "resting")]
)
def test_what_came_of_a_file_is_kept_and_its_links_are_followed(tmp_path: Path, scheme: str, way: str) -> None:
    """Its host is not given up for that. A file of Gopher whose connection just ends is whole."""
    into = tmp_path / "there"
    rests = way == "resting"  # which is a fault of the host too
    politeness = POLITENESS | ({"host_failures": 2 * PAGES} if rests else {})
    config = settings(tmp_path, politeness=politeness, fetch={"timeout_s": 0.5 if rests else 6.0})
    with file_server(way, Ftp if scheme == "ftp" else GopherFiles) as server:
        site = f"{scheme}://127.0.0.1:{server.server_address[1]}/"
        run = crawl(into, config, site)
    assert run.status == 0 and run.summary["ending"] == "finished", run.errors
    rows = {row["url"].rpartition("/")[2]: row for row in read_table(into, "pages").to_pylist()}
    records = records_of(into)
    leaves = set()
    for page in range(PAGES):
        name = f"broken{page}.html"
        assert rows[name]["outcome"] == "incomplete", rows[name]
        assert records[name] == (beginning(page), WAYS[way])
        assert server.asked[name] == TRIES or way == "dropped"
        leaves |= set(LINK.findall(beginning(page).decode()))
    assert {name for name, row in rows.items() if row["outcome"] == "ok"} - {"", "1"} == leaves
    assert len(leaves) > PAGES
    assert fyke("check", str(into)).returncode == 0


def records_of(into: Path) -> dict[str, tuple[bytes, str | None]]:
    """Body and `WARC-Truncated` of each file, by its name."""
    found = {}
    for path in sorted((into / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                if record.rec_type == "resource":
                    name = record.rec_headers["WARC-Target-URI"].rpartition("/")[2]
                    assert name not in found
                    found[name] = record.content_stream().read(), record.rec_headers.get_header("WARC-Truncated")
    return found
