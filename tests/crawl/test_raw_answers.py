"""Whatever bytes a server sends, the visit ends with a named outcome and the crawl goes on, also after a kill."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from fastwarc.warc import ArchiveIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from crawl.raw_answers import RawServer, raw_answer, raw_server
from crawl.runs import begin, crawl, fyke, settings
from fyke.archive.reading import read_table
from fyke.core.outcomes import Outcome

NO_RULES = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"
ODD = [b"101 Switching Protocols", b"101", b"100 Continue", b"100", b"199 x", b"0 x", b"000 x", b"099 x", b"600 x"]
ODD += [b"999 x", b"1000 x", b"-1", b"204 with a body", b"205 x", b"304 nobody asked", b"", b"200 "]


def killed_and_resumed(into: Path, server: RawServer, kill_at: int, **politeness: object) -> dict[str, Outcome]:
    """Crawl all of `server`, killed once it was asked so often: the outcome of each URL.

    Waits for nothing and gives no host up. Every URL must have one row, with a word of the closed list; the archive
    must be without fault, and the same for other people's tools.
    """
    patience = {"failure_delay_s": 0.0, "max_sleep_s": 0.0, "tries": 2}
    config = settings(
        into.parent,
        politeness={**patience, "host_failures": 1_000_000, **politeness},
        fetch={"connect_timeout_s": 20, "timeout_s": 20, "stall_s": 1, "max_body_bytes": 1 << 20},
        store={"checkpoint_s": 0.2},
    )
    process = begin(into, config, *server.seeds)
    server.wait_until_asked(kill_at)
    process.kill()
    process.wait()
    run = crawl(into, config, *server.seeds)
    assert run.status == 0, run.errors
    assert run.summary["ending"] == "finished"
    checked = fyke("check", str(into))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert_tools_agree(into)
    rows = read_table(into, "pages", ["url", "outcome"]).to_pydict()
    assert max(Counter(rows["url"]).values()) == 1
    return {url: Outcome(word) for url, word in zip(rows["url"], rows["outcome"], strict=True)}


def assert_tools_agree(into: Path) -> None:
    for path in sorted((into / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            theirs = [record.rec_type for record in WarcioIterator(file) if record.raw_stream.read() is not None]
        with path.open("rb") as file:
            others = [record.headers["WARC-Type"] for record in ArchiveIterator(file, parse_http=False)]
        assert theirs == others


@contextmanager
def hostile(hosts: int, paths: int, seed: int) -> Iterator[RawServer]:
    """A server whose every page but the first of each host is a raw answer."""
    links = "".join(f'<a href="/{number}">x</a>' for number in range(paths)).encode()
    named = {f"/{number}" for number in range(paths)}

    def answer(host: str, path: str) -> bytes:
        if path in named:
            return raw_answer(Random(f"{seed} {host} {path}"))
        return HTML % (len(links), links) if path == "/" else NO_RULES

    with raw_server([f"127.0.7.{number}" for number in range(1, hosts + 1)], answer) as server:
        yield server


def test_every_answer_has_an_outcome(tmp_path: Path, hosts: int = 12, paths: int = 250, seed: int = 1) -> None:
    with hostile(hosts, paths, seed) as server:
        met = killed_and_resumed(tmp_path / "crawl", server, hosts * paths // 3)
    assert {f"{origin}/{number}" for origin in server.origins for number in range(paths)} <= met.keys()
    assert {*met.values()} >= {
        "ok",
        "redirected",
        "client_error",
        "server_error",
        "throttled",
        "broken_off",
        "bad_answer",
    }


def test_every_robots_has_a_meaning(tmp_path: Path, hosts: int = 60, seed: int = 1) -> None:
    def answer(host: str, path: str) -> bytes:
        return raw_answer(Random(f"{seed} {host}")) if path == "/robots.txt" else HTML % (2, b"hi")

    with raw_server([f"127.0.{number % 7 + 8}.{number // 7 + 1}" for number in range(hosts)], answer) as server:
        met = killed_and_resumed(tmp_path / "crawl", server, hosts // 3, host_failures=3)
    assert {*server.seeds} <= met.keys()
    assert {*met.values()} >= {"ok", "robots_unreachable"}


def odd(number: int) -> bytes:
    return b"HTTP/1.1 %s\r\nUpgrade: websocket\r\nContent-Type: text/html\r\n\r\nhello" % ODD[number]


def test_odd_statuses_of_pages(tmp_path: Path) -> None:
    """101 once ended the crawl, and each one that went on with it."""
    links = "".join(f'<a href="/{number}">x</a>' for number in range(len(ODD))).encode()
    answers = {"/": HTML % (len(links), links), "/robots.txt": NO_RULES}
    with raw_server(["127.0.7.99"], lambda _, path: answers.get(path) or odd(int(path[1:]))) as server:
        met = killed_and_resumed(tmp_path / "crawl", server, len(ODD) // 2)
    assert {met[f"{server.seeds[0]}{number}"] for number in (0, 1)} == {Outcome.BAD_ANSWER}
    assert {*met.values()} >= {"ok", "server_error"} and len(met) == len(ODD) + 1


def test_odd_statuses_of_robots(tmp_path: Path) -> None:
    hosts = [f"127.0.15.{number}" for number in range(len(ODD))]

    def answer(host: str, path: str) -> bytes:
        return odd(hosts.index(host)) if path == "/robots.txt" else HTML % (0, b"")

    with raw_server(hosts, answer) as server:
        met = killed_and_resumed(tmp_path / "crawl", server, len(ODD), host_failures=3)
    assert {*met} == {*server.seeds}
    assert {*met.values()} >= {"ok", "host_retired", "robots_unreachable"}
