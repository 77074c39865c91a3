"""A host that answers each request is not given up because some of its pages are odd."""

from pathlib import Path

import pytest

from crawl.raw_answers import raw_server
from crawl.runs import crawl, settings
from fyke import explain
from fyke.archive.directory import CrawlDirectory
from fyke.archive.reading import read_table

GOOD = "127.0.16.3"
NO_RULES = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"
ODD = [
    b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nhi",
    b"HTTP/1.1 304 Not Modified\r\n\r\n",
    b"HTTP/1.1 305 Use Proxy\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
]


def test_parts_and_notices_that_nobody_asked_for_cost_other_pages_nothing(tmp_path: Path) -> None:
    rests = {"host_delay_s": 0.05, "min_host_delay_s": 0.05, "failure_delay_s": 0.05, "max_sleep_s": 0.2}
    config = settings(tmp_path, politeness={**rests, "host_failures": 3}, dns={"private": [GOOD]})
    paths = [*(f"odd{number}" for number in range(9)), *(f"good{number}" for number in range(9))]

    def answer(_: str, path: str) -> bytes:
        if path.startswith("/odd"):
            return ODD[int(path[4:]) % len(ODD)]
        body = "".join(f'<a href="{to}">x</a>' for to in paths if path == "/").encode()
        return NO_RULES if path == "/robots.txt" else PAGE % (len(body), body)

    with raw_server([GOOD], answer) as server:
        run = crawl(tmp_path / "crawl", config, server.seeds[0])
    assert run.summary["ending"] == "finished", run.errors
    table = read_table(tmp_path / "crawl", "pages", ["url", "outcome"]).to_pydict()
    ends = {url.rpartition("/")[2]: end for url, end in zip(table["url"], table["outcome"], strict=True)}
    assert ends == {path: "bad_answer" if path.startswith("odd") else "ok" for path in ["", *paths]}


def test_the_visit_to_another_page_with_the_same_key_is_not_told_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path, dns={"private": [GOOD]})
    with raw_server([GOOD], lambda _, path: NO_RULES if path == "/robots.txt" else PAGE % (2, b"hi")) as server:
        crawl(tmp_path / "crawl", config, server.seeds[0])
    directory = CrawlDirectory(tmp_path / "crawl")
    first = explain.why(directory, server.seeds[0])
    assert first.verdict.startswith("fetched")
    rows, _ = explain.visits_to(directory, explain.seed_of(server.seeds[0]).key)
    monkeypatch.setattr(explain, "visits_to", lambda *_: (rows, []))
    other = explain.why(directory, f"{server.seeds[0]}with-the-same-key")
    assert other.verdict == f"left out: it has the same key as {server.seeds[0]}, which was met first"
