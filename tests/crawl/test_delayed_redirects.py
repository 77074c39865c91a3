"""A redirect may ask to wait before its target is requested (`Retry-After`; RFC 9110, 10.2.3): then that is not asked
sooner, whichever host it is at, by whichever agent, and whatever becomes of the process."""

import time
from email.utils import formatdate
from pathlib import Path

import pytest

from commands import in_process
from crawl.raw_answers import raw_server
from crawl.runs import begin, crawl, settings, wait_until
from crawl.test_hours import stands

HOME, TARGET, *SENDERS = HOSTS = [f"127.0.18.{number}" for number in range(1, 7)]
WAITS = dict(zip(SENDERS, [2, 4, 6, 3600], strict=True))


class Redirects:
    """`HOME` links to all; each of `SENDERS` redirects to `TARGET`, and asks to wait: `of_rules`, with its robots.txt,
    otherwise with its page."""

    def __init__(self, *, of_rules: bool = False) -> None:
        self.of_rules = of_rules
        self.origins: dict[str, str] = {}
        self.sent: dict[str, list[float]] = {f"/of/{sender}": [] for sender in SENDERS}
        self.asked: dict[str, float] = {}

    def answer(self, host: str, path: str) -> bytes:
        status, fields, body = "200 OK", ["Content-Type: text/html"], ""
        if path == "/robots.txt" and not (self.of_rules and host in SENDERS):
            status = "404 Not Found"
        elif self.of_rules and host in SENDERS and path == "/page":
            self.asked[host] = time.time()
        elif host == HOME:
            body = "".join(f"<a href='{origin}/page'>{origin}</a>" for origin in self.origins.values())
        elif host == TARGET:
            self.asked[path] = time.time()
        else:
            path, wait_s = f"/of/{host}", WAITS[host]
            self.sent[path].append(time.time())
            asks = str(wait_s) if wait_s != 4 else formatdate(time.time() + wait_s + 1, usegmt=True)
            status, fields = "302 Found", [f"Location: {self.origins[TARGET]}{path}", f"Retry-After: {asks}"]
        return "\r\n".join([f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", body]).encode()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("agents", [1, 2])
def test_no_target_is_asked_before_its_redirect_allows_it(tmp_path: Path, agents: int) -> None:
    web, into = Redirects(), tmp_path / "crawl"
    config = settings(
        tmp_path,
        crawl={"scope": "web", "wait_s": 30.0, "agents": agents},
        dns={"private": HOSTS},
        store={"checkpoint_s": 0.2},
    )
    with raw_server(HOSTS, web.answer) as server:
        web.origins = dict(zip(HOSTS, server.origins, strict=True))
        with begin(into, config, server.seeds[0]) as killed:
            server.wait_until_asked(len(HOSTS) * 2 + 1)
            before = stands(into).get("checkpoint", 0)
            wait_until(lambda: stands(into).get("checkpoint", 0) > before + 1)
            killed.kill()
        run = crawl(into, config)
        assert run.summary["ending"] == "resting", run.errors
        last = f"/of/{SENDERS[-1]}"
        why = in_process("why", str(into), f"{web.origins[TARGET]}{last}").out
    assert set(web.asked) == {"/page", *web.sent} - {last}
    assert "waiting: " in why
    for sender, wait_s in WAITS.items():
        asked = web.asked.get(f"/of/{sender}", float("inf"))
        latest = max(sent for sent in web.sent[f"/of/{sender}"] if sent < asked)
        assert asked - latest >= wait_s, f"{asked - latest} s after a redirect that asked for {wait_s}"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("agents", [1, 2])
def test_nor_is_the_target_of_a_redirect_of_robots_txt(tmp_path: Path, agents: int) -> None:
    web = Redirects(of_rules=True)
    config = settings(tmp_path, crawl={"scope": "web", "wait_s": 8.0, "agents": agents}, dns={"private": HOSTS})
    with raw_server(HOSTS, web.answer) as server:
        web.origins = dict(zip(HOSTS, server.origins, strict=True))
        run = crawl(tmp_path / "crawl", config, server.seeds[0])
    assert run.summary["ending"] == "resting", run.errors
    *soon, late = SENDERS
    for sender in soon:
        sent = web.sent[f"/of/{sender}"]
        assert len(sent) == 1
        assert web.asked[f"/of/{sender}"] - sent[0] >= WAITS[sender]
        assert web.asked[sender] > web.asked[f"/of/{sender}"], "its pages wait for its rules"
    assert not {late, f"/of/{late}"} & set(web.asked)
    assert len(web.sent[f"/of/{late}"]) == 1, "who asks to wait for an hour is asked again after that"
