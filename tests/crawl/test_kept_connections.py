"""Many host names at one address take few connections of its server."""

import threading
from pathlib import Path

from crawl.runs import crawl_here as crawl
from crawl.runs import settings
from fyke.fetcher.connections import KEPT_OF_ADDRESS
from web_server import Answer, web_server

HOSTS = 60
RESTS = {"address_delay_s": 0.01, "min_address_delay_s": 0.01}


def test_few_connections_to_an_address_are_kept(tmp_path: Path) -> None:
    open_at_once: list[int] = []

    def answer(path: str, _: object) -> Answer:
        serving = (thread for thread in threading.enumerate() if "process_request_thread" in thread.name)
        open_at_once.append(sum(1 for _ in serving))
        return 200, {"Content-Type": "text/html"}, b"<a href=/next>next</a>"

    with web_server(answer) as url:
        seeds = [url.replace("127.0.0.1", f"h{number}.localhost") for number in range(HOSTS)]
        run = crawl(tmp_path / "there", settings(tmp_path, politeness=RESTS), *seeds)
    assert run.status == 0 and run.summary["pages"] == 2 * HOSTS, run.errors
    assert max(open_at_once) <= KEPT_OF_ADDRESS + 4  # some that were closed end a little later


def test_an_address_that_needs_no_rest_may_have_a_connection_for_each_host(tmp_path: Path) -> None:
    all_here = threading.Barrier(2 * KEPT_OF_ADDRESS)

    def answer(path: str, _: object) -> Answer:
        if path == "/":
            all_here.wait(20)  # raises if fewer hosts are asked at once
        return 200, {"Content-Type": "text/html"}, b"a page"

    with web_server(answer) as url:
        seeds = [url.replace("127.0.0.1", f"h{number}.localhost") for number in range(2 * KEPT_OF_ADDRESS)]
        run = crawl(tmp_path / "there", settings(tmp_path), *seeds)
    assert run.status == 0 and run.summary["pages"] == 2 * KEPT_OF_ADDRESS, run.errors
