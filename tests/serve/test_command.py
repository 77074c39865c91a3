"""`fyke serve` as a person starts it, and the dashboard's stream as a program hears it."""

import json
import logging
import os
import socket
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from crawl.runs import begin, fyke, settings, wait_for
from crawl.small_site import small_site
from fyke.archive.orders import SOCKET
from fyke.crawl.loop import Ending
from fyke.serve.server import MOST_FAULTS, FirstFaults
from fyke.serve.wording import state
from loaded import COMMAND, Loaded
from search.archives import archive, html
from serve.kit import TOKEN, served


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    made = str(archive(tmp_path / "crawl", [("http://a.example/", html("x"))]))
    (tmp_path / "empty").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, status, told in (
            ((str(tmp_path / "none"),), 3, "no such directory"),
            ((str(tmp_path / "empty"),), 3, "holds no crawl"),
            ((made, "--port", port), 2, "is in use: choose another with --port"),
            ((made, "--token", "short"), 2, "at least 8 characters"),
            ((made, "--host", "no.such.host.invalid"), 2, "no such address"),
            ((made, "--host", "\u202e"), 2, "no such address"),
            ((), 2, "missing argument"),
        ):
            done = fyke("serve", *arguments)
            assert done.returncode == status, done.stderr
            assert told in done.stderr and done.stderr.count("\n") == 1


def test_no_memory_to_begin_is_one_line(tmp_path: Path) -> None:
    made = archive(tmp_path / "crawl", [("http://a.example/", html("x"))])
    script = (
        "import sys; from fyke.cli import main; from fyke.serve.watch import Watch;"
        "Watch._read = lambda _: bytearray(1 << 60); sys.argv = ['fyke', 'serve', *sys.argv[1:]]; main()"
    )
    command = [sys.executable, "-c", script, str(made), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "ulimit -v" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_says_where_it_is(tmp_path: Path) -> None:
    made = archive(tmp_path / "crawl", [("http://a.example/", html("x"))])
    process = Loaded(
        [*COMMAND, "serve", str(made), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    assert lines[0].startswith("Search     http://127.0.0.1:") and "/crawl#token=" in lines[1]
    process.terminate()
    assert process.communicate(timeout=15)[1] == "" and process.returncode == 0  # as service managers expect


def test_what_is_no_request_says_nothing(tmp_path: Path) -> None:
    """Whoever may ask may do so without end: no log is filled with it."""
    made = archive(tmp_path / "crawl", [("http://a.example/", html("x"))])
    command = [*COMMAND, "serve", str(made), "--port", "0", "--json"]
    process = Loaded(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    port = int(json.loads(process.stdout.readline())["url"].rpartition(":")[2].strip("/"))
    upgrade = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    for sent, status in (
        (b"\x16\x03\x01\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n: no name\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"400"),
        (upgrade + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n", b""),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=15) as asking:
            asking.sendall(sent)
            assert status in asking.recv(100).partition(b"\r\n")[0]
    order = f"POST /crawl/{made.name}/order HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\ndo=".encode()
    for _ in range(3):  # and is gone in the middle of it
        with socket.create_connection(("127.0.0.1", port), timeout=15) as asking:
            asking.sendall(order)
    with urlopen(f"http://127.0.0.1:{port}/api/status", timeout=15) as answer:
        assert answer.status == 200
    process.terminate()
    assert process.communicate(timeout=15)[1] == "" and process.returncode == 0


def test_of_faults_that_strangers_find_few_are_said() -> None:
    said = StringIO()
    log = logging.Logger("a server's")
    log.addHandler(logging.StreamHandler(said))
    log.addFilter(FirstFaults())
    for number in range(1000):
        log.error("fault %d", number)
    lines = said.getvalue().splitlines()
    assert len(lines) == MOST_FAULTS and lines[0] == "fault 0" and "more" in lines[-1]


def test_nobody_hears_where_it_is(tmp_path: Path) -> None:
    made = archive(tmp_path / "crawl", [("http://a.example/", html("x"))])
    reading, writing = os.pipe()
    os.close(reading)
    command = [*COMMAND, "serve", str(made), "--port", "0"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=30, check=False)
    os.close(writing)
    assert done.returncode == 141 and not done.stderr


def test_stream_of_events(tmp_path: Path) -> None:
    """History first, then how it stands, again and again; it ends with the server, and orders reach the crawl."""
    into = tmp_path / "crawl"
    with small_site(pages=500) as site:
        slow = settings(tmp_path, politeness={"address_delay_s": 0.05}, store={"checkpoint_s": 0.5})
        crawling = begin(into, slow, site.url)
        wait_for(into / "state" / SOCKET)
        with served(into) as base, urlopen(f"{base}crawl/crawl/events", timeout=15) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            events = _events(stream)
            assert next(events)[0] == "history"
            seen = [next(events) for _ in range(3)]
            assert all(name == "standing" for name, _ in seen)
            live = next(data for _, data in events if data["live"])
            assert live["pages_s"] > 0, "it is told with its first figures"
            assert live["state"] == "running" and live["figures"]["slowest"][0]["host"] == "127.0.0.1"
            assert _order(base, do="stop")["said"].startswith("stopping")
            ended = next(data for _, data in events if not data["live"])
            assert ended["words"] == state(ended["state"])
            assert ended["state"] in ("stopped", "running") and crawling.wait(15) == 130
            told = json.load(urlopen(f"{base}api/domains", timeout=15))
            assert told[0]["domain"]["domain"] == "127.0.0.1"
            assert b'fyke_up{crawl="crawl"} 0.0' in urlopen(f"{base}metrics", timeout=15).read()
            hosts = json.load(urlopen(f"{base}api/hosts?q=127", timeout=15))
            assert hosts[0]["host"] == "127.0.0.1" and hosts[0]["pages"]


def _events(stream: Any) -> Any:
    name = ""
    for line in stream:
        if line.startswith(b"event: "):
            name = line[7:].decode().strip()
        elif line.startswith(b"data: "):
            yield name, json.loads(line[6:])


def _order(base: str, **fields: str) -> dict[str, Any]:
    headers = {"X-Fyke-Token": TOKEN, "Accept": "application/json", "Content-Type": "application/json"}
    request = Request(f"{base}crawl/crawl/order", json.dumps(fields).encode(), headers)
    with urlopen(request, timeout=15) as answer:
        return dict(json.load(answer))


def test_every_end_of_a_crawl_has_words() -> None:
    """One word says enough of a crawl that is finished or was stopped."""
    bare = {ending for ending in Ending if state(ending.value) == ending.value}
    assert bare == {Ending.FINISHED, Ending.STOPPED}
