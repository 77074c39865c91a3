"""Who names ports of a good host at which nobody listens takes nothing from it."""

import socket
from contextlib import ExitStack
from pathlib import Path

from crawl.raw_answers import raw_server
from crawl.runs import crawl, settings
from fyke.archive.reading import read_table

GOOD, STRANGER = "127.0.16.1", "127.0.16.2"
NO_RULES = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"


def test_dead_ports_of_a_good_host(tmp_path: Path, dead: int = 20, pages: int = 30) -> None:
    """Its first page leads to a stranger's, which names them before the others of the good host are done."""
    rests = {"host_delay_s": 0.05, "min_host_delay_s": 0.05, "failure_delay_s": 0.2, "max_sleep_s": 2.0}
    config = settings(tmp_path, politeness={**rests, "host_failures": 5}, dns={"private": [GOOD, STRANGER]})
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in range(dead)]
        for one in bound:
            one.bind((GOOD, 0))  # and nobody listens
        nobody = ["http://{}:{}/".format(*one.getsockname()) for one in bound]

        def answer(host: str, path: str) -> bytes:
            links = nobody if host == STRANGER else [server.seeds[1], *good] if path == "/" else []
            body = "".join(f'<a href="{link}">x</a>' for link in links).encode()
            return NO_RULES if path == "/robots.txt" else PAGE % (len(body), body)

        server = stack.enter_context(raw_server([GOOD, STRANGER], answer))
        good = [f"{server.seeds[0]}{number}" for number in range(pages)]
        run = crawl(tmp_path / "crawl", config, server.seeds[0], "--scope", "web")
    assert run.summary["ending"] == "finished", run.errors
    table = read_table(tmp_path / "crawl", "pages", ["url", "outcome"]).to_pydict()
    ends = dict(zip(table["url"], table["outcome"], strict=True))
    assert ends == dict.fromkeys(nobody, "robots_unreachable") | dict.fromkeys([*server.seeds, *good], "ok")
