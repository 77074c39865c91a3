"""What pages need to be shown is fetched two hops beyond the scope, as the fonts of a stylesheet, and no further."""

from collections import Counter
from pathlib import Path

import pytest

from commands import in_process
from crawl.raw_answers import RawServer, raw_server
from crawl.runs import begin, crawl, settings
from fyke.archive.reading import read_table

HOME, FIRST, SECOND, LANDED, THIRD, FOURTH = HOSTS = [f"127.0.17.{number}" for number in range(1, 7)]
SITE = {  # what each file needs, as path@host; `->`: it redirects there
    (HOME, "/"): f"a.css@{HOME}",
    (HOME, "/a.css"): f"b.css@{HOME}",
    (HOME, "/b.css"): f"font.woff@{FIRST} c.css@{FIRST} moved@{FIRST} news.rss@{FIRST}",
    (FIRST, "/c.css"): f"d.css@{FIRST} d.css@{SECOND} back.css@{HOME}",
    (FIRST, "/news.rss"): f"h.css@{SECOND}",
    (FIRST, "/moved"): f"-> e.css@{LANDED}",
    (SECOND, "/d.css"): f"no.css@{FOURTH} again.css@{HOME}",
    (LANDED, "/e.css"): f"f.css@{LANDED} f.css@{THIRD}",
    (LANDED, "/f.css"): f"no.css@{LANDED}",
    (THIRD, "/f.css"): f"-> moved.css@{LANDED}",
    (LANDED, "/moved.css"): f"no.css@{FOURTH}",
    (HOME, "/back.css"): f"late.css@{FIRST}",
    (FIRST, "/late.css"): f"g.css@{SECOND} c.css@{FIRST}",
}
WANTED = {
    HOME: {"/", "/a.css", "/b.css", "/back.css", "/again.css"},
    FIRST: {"/font.woff", "/c.css", "/moved", "/late.css", "/news.rss", "/d.css"},
    SECOND: {"/d.css", "/g.css", "/h.css"},
    LANDED: {"/e.css", "/f.css", "/moved.css"},
    THIRD: {"/f.css"},
}


class Sheets:
    """`SITE`, served; what was asked for."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self.origins: dict[str, str] = {}

    def answer(self, host: str, path: str) -> bytes:
        self.asked[host, path] += 1
        if path == "/robots.txt":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        way, *needs = SITE.get((host, path), "").rpartition("-> ")[1:]
        urls = [f"{self.origins[at]}/{name}" for name, _, at in (need.partition("@") for need in needs[0].split())]
        status, fields, body = "200 OK", ["Content-Type: text/css"], "".join(map("@import '{}';".format, urls))
        if way:
            status, fields = "302 Found", [f"Location: {urls[0]}"]
        elif path.endswith(".rss"):
            fields = ["Content-Type: application/rss+xml", *map("Link: <{}>; rel=stylesheet".format, urls)]
            body = "<rss version='2.0'><channel><title>news</title></channel></rss>"
        elif path == "/":
            fields, body = ["Content-Type: text/html"], "".join(map("<link rel=stylesheet href='{}'>".format, urls))
        return "\r\n".join([f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", body]).encode()

    def expect_two_hops(self, server: RawServer, into: Path) -> None:
        """No more was asked for than is wanted, not even rules; all of it was, and is a requisite in the table."""
        assert {host for host, _ in self.asked} == set(WANTED)
        wanted = {(host, path) for host, paths in WANTED.items() for path in paths}
        assert {one for one in self.asked if one[1] != "/robots.txt"} == wanted
        table = read_table(into, "pages", ["url", "kind"]).to_pydict()
        kinds = dict(zip(table["url"], table["kind"], strict=True))
        assert len(table["url"]) == len(wanted)
        assert kinds.pop(f"{self.origins[HOME]}/") == "seed"
        assert kinds == {f"{self.origins[host]}{path}": "requisite" for host, path in wanted if path != "/"}
        for beyond in (f"{self.origins[FOURTH]}/no.css", f"{self.origins[LANDED]}/no.css"):
            assert "filtered: it does not pass the rule scope host" in in_process("why", str(into), beyond).out


@pytest.mark.timeout(120)
@pytest.mark.parametrize("agents", [1, 2])
def test_no_requisite_leads_three_hops_beyond_the_scope(tmp_path: Path, agents: int) -> None:
    """Each host is of a shard of its own, as it may be. What was killed goes on, and a second pass goes no further."""
    sheets, into = Sheets(), tmp_path / "crawl"
    config = settings(tmp_path, crawl={"requisites": True}, dns={"private": HOSTS})
    options = ["--scope", "host", "--agents", str(agents)]
    with raw_server(HOSTS, sheets.answer) as server:
        sheets.origins = dict(zip(HOSTS, server.origins, strict=True))
        if agents == 1:
            with begin(into, config, server.seeds[0], *options) as killed:
                server.wait_until_asked(8)
                killed.kill()
        run = crawl(into, config, server.seeds[0], *options)
        assert run.summary["ending"] == "finished", run.errors
        sheets.expect_two_hops(server, into)
        sheets.asked.clear()
        run = crawl(into, config, "--again")
        assert run.summary["ending"] == "finished", run.errors
    assert {host for host, _ in sheets.asked} == set(WANTED)
    assert {one for one in sheets.asked if one[1] != "/robots.txt"} <= {
        (host, path) for host, paths in WANTED.items() for path in paths
    }
