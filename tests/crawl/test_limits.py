"""When a crawl is told to stop, and what it says was left out."""

import os
import re
import threading
from pathlib import Path

import pytest

from crawl.runs import archived, begin, crawl, fyke, killed_after, settings
from crawl.small_site import SmallSite, small_site
from crawl.test_access import asked
from fyke.archive.directory import CrawlDirectory
from fyke.archive.reading import read_table
from fyke.core.config import literal
from fyke.explain import why

WISHES = """
import numpy as np


class Wishes:
    def accept(self, urls):
        return np.array([not url.endswith(b"{}") for url in urls.column("url").to_pylist()])
"""


@pytest.fixture
def site():
    with small_site(pages=200, page_bytes=10_000) as running:
        yield running


def test_bytes(site: SmallSite, tmp_path: Path) -> None:
    """It stops soon after so many bytes, says so, and goes on when it is told of more."""
    into, fetch = tmp_path / "there", {"connections": 4}
    rests = {"address_delay_s": 0.03}  # else a machine that is busy elsewhere comes to look when all are fetched
    config = settings(tmp_path, fetch=fetch, politeness=rests)
    run = crawl(into, config, site.url, "--bytes", "200kB")
    assert run.status == 0 and run.summary["ending"] == "bytes" and 200_000 <= run.summary["bytes"] < 400_000
    assert "reached the limit of bytes" in run.errors and "--bytes MORE goes on" in run.errors
    again = crawl(into, config, site.url, "--bytes", "200kB")
    assert again.status == 0 and again.summary["already"] and again.summary["bytes"] == run.summary["bytes"]
    assert "--bytes MORE" in fyke("status", str(into)).stdout
    more = crawl(into, settings(tmp_path, fetch=fetch), site.url, "--bytes", "1GB")
    assert more.status == 0 and more.summary["ending"] == "finished" and len(archived(into)) == 200


@pytest.mark.parametrize("text", ["lots", "-1", "0", "10 GiBs", ""])
def test_bytes_that_are_none(text: str, tmp_path: Path) -> None:
    run = crawl(tmp_path / "there", settings(tmp_path), "http://127.0.0.1:9/", f"--bytes={text}")
    assert run.status == 2 and run.errors.count("\n") == 1 and "--bytes" in run.errors and "8GB" in run.errors


def test_no_delay_on_ones_own_server(site: SmallSite, tmp_path: Path) -> None:
    slow = {"host_delay_s": 3600.0, "address_delay_s": 3600.0, "delay_factor": 10.0, "min_host_delay_s": 3600.0}
    run = crawl(tmp_path / "there", settings(tmp_path, politeness=slow), site.url, "--delay", "0", "--pages", "20")
    assert run.status == 0 and run.summary["pages"] == 20


def test_what_was_left_out(site: SmallSite, tmp_path: Path) -> None:
    """By which rule, also over a restart."""
    site.answers["/"] = (
        200,
        {"Content-Type": "text/html"},
        (b"<a href=http://elsewhere.example/>x</a><a href=/p150>y</a><a href=/p5>z</a><a href=tel:1>t</a>"),
    )
    into, config = tmp_path / "there", settings(tmp_path)
    limits = ["--depth", "1", "--deny", "p150$"]
    run = crawl(into, config, site.url, *limits, "--pages", "1")
    assert run.status == 0
    run = crawl(into, config, site.url, *limits, "--pages", "9")
    assert run.status == 0 and run.summary["ending"] == "finished"
    assert run.summary["left_out"] == {"scope host": 1, "depth 1": 2, "deny (?:p150$)": 1}
    assert "1  links left out by scope host" in run.errors


@pytest.mark.parametrize("agents", [1, 2])
@pytest.mark.parametrize("depth", [1, 3])
def test_why_names_the_rule_that_left_a_link_out(depth: int, agents: int, tmp_path: Path) -> None:
    """Also the rule that the settings had once. A URL that no page links to was not seen."""
    with small_site(pages=40) as site:
        limits = ["--depth", str(depth), "--deny", "p1$", "--agents", str(agents)]
        into, denied, every = tmp_path / "there", f"{site.url}p1", site.all_urls()
        assert crawl(into, settings(tmp_path), site.url, *limits).status == 0
    directory, fetched = CrawlDirectory(into), set(read_table(into, "pages")["url"].to_pylist())
    linked = set(read_table(into, "links")["target_url"].to_pylist()) - fetched
    refused = dict.fromkeys(linked, f"filtered: it does not pass the rule depth {depth}")
    refused[denied] = "filtered: it does not pass the rule deny (?:p1$)"
    told = {url: why(directory, url).verdict for url in every - fetched}
    assert len(refused) > 1 and {url: told[url] for url in linked} == refused
    assert all(told[url].startswith("not seen") for url in every - fetched - linked)
    directory.settings.write_text(re.sub("(?m)^deny = .*", "deny = []", directory.settings.read_text()))
    assert why(directory, denied).verdict.startswith("left out: when it was found, a rule refused it")
    assert all(why(directory, url).verdict == told[url] for url in told if url != denied)


@pytest.mark.parametrize("agents", [1, 2])
def test_a_rule_that_is_edited_holds_for_links_found_before(agents: int, tmp_path: Path) -> None:
    """A new rule keeps waiting URLs from being fetched, and what the old one left out comes back; each is named."""
    with small_site(pages=60) as site:
        into, config = tmp_path / "there", settings(tmp_path)
        run = crawl(into, config, site.url, "--deny", "p[0-9]*7$", "--pages", "9", "--agents", str(agents))
        assert run.status == 0 and run.summary["ending"] == "pages"
        directory, before = CrawlDirectory(into), set(archived(into))

        def resume(deny: list[str]) -> None:
            edited = re.sub("(?m)^deny = .*", f"deny = {deny}", directory.settings.read_text())
            directory.settings.write_text(re.sub("(?m)^pages = .*", "pages = 0", edited))
            run = crawl(into, directory.settings)
            assert run.status == 0 and run.summary["ending"] == "finished" and not run.summary["already"], run.errors

        resume(["p[0-9]*3$"])
        every, asked = site.all_urls(), {site.url + path[1:] for path in site.asked}
        refused = {url for url in every if url.endswith("3")}
        assert asked & refused <= before, "asked for after the rule was added"
        assert {url for url in every if url.endswith("7")} & asked
        waited = {url for url in refused - asked if "rule deny (?:p[0-9]*3$)" in why(directory, url).verdict}
        assert waited
        resume([])
        assert set(archived(into)) == every and len(archived(into)) == len(every)


@pytest.mark.parametrize("agents", [1, 2])
def test_a_plug_in_with_other_code_is_an_edited_rule(
    agents: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its earlier code left out comes back, and is not counted any more; nothing is asked anew otherwise."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    into, config = tmp_path / "there", settings(tmp_path, plugins={"filters": ["wishes:Wishes"]})
    with small_site(pages=40) as site:
        for refused, already in (("p7", False), ("p7", True), ("nothing", False)):
            (tmp_path / "wishes.py").write_text(WISHES.format(refused))
            run = crawl(into, config, site.url, "--agents", str(agents))
            assert run.summary["ending"] == "finished" and run.summary["already"] is already, run.errors
            left = refused == "p7"
            assert (f"{site.url}p7" in archived(into)) is not left
            assert run.summary["left_out"] == ({"Wishes": 1} if left else {})
    assert sorted(archived(into)) == sorted(site.all_urls())


@pytest.mark.parametrize("agents", [1, 2])
def test_pages_of_a_host(agents: int, tmp_path: Path) -> None:
    """As many as it may have, of each host, also when the crawl is killed; what is left out is counted and named."""
    with small_site(pages=60) as site, small_site(pages=60, host="127.0.0.2") as other:
        both = f"<a href={site.url}p1>a</a><a href={site.url}p2>b</a><a href={other.url}p1>c</a><a href=/none>d</a>"
        site.answers["/"] = 200, {"Content-Type": "text/html"}, both.encode()
        config = asked(
            tmp_path, {"match": "*", "pages": 20}, {"match": "127.0.0.2", "pages": 7}, store={"checkpoint_s": 0.2}
        )
        into, arguments = tmp_path / "there", [site.url, "--scope", "web", "--agents", str(agents)]
        for _ in range(2):
            site.hanging.clear()
            site.hang["/p9"] = threading.Event()
            process = begin(into, config, *arguments, start_new_session=True)
            assert site.hanging.wait(30)
            assert killed_after(process, 0.7)  # what came before it is in a checkpoint
        run = crawl(into, config, *arguments)
        assert run.status == 0 and run.summary["ending"] == "finished", run.errors
        pages = archived(into)
        assert len(set(pages)) == len(pages) == 27
        assert sum(url.startswith(other.url) for url in pages) == 7
        ((rule, count),) = run.summary["left_out"].items()
        assert rule == "the limit of pages of their host" and f"{count}  links left out by {rule}" in run.errors
        met = [n for n in range(1, 60) if f"{site.url}p{(n - 1) // 2}" in pages and f"{site.url}p{n}" not in pages]
        said = fyke("why", str(into), f"{site.url}p{met[0]}").stdout
        assert "left out: its host has reached its limit of 20 pages" in said, said
        edited = into / "fyke.toml"
        edited.write_text(edited.read_text().replace("pages = 20", "pages = 30"))
        run = crawl(into, edited, *arguments)
        assert run.status == 0 and not run.summary["already"], run.errors
        assert len(set(archived(into))) == len(archived(into)) == 30 + 7
        more = asked(tmp_path, {"match": "*", "pages": 0})
        run = crawl(into, more, *arguments)
        assert run.status == 0 and not run.summary["already"], run.errors
        assert len(set(archived(into))) == len(archived(into)) == 60 + 31


def test_bytes_of_a_media_type(tmp_path: Path) -> None:
    """The answer is broken off as soon as it says that it is longer, or is; the head is archived, and says why."""
    with small_site(pages=1) as site:
        links = "".join(f"<a href=/{name}>x</a>" for name in ("a.mp4", "b.png", "c.png", "d.pdf", "e"))
        site.answers["/"] = 200, {"Content-Type": "text/html"}, links.encode()
        site.answers["/a.mp4"] = 200, {"Content-Type": "Video/MP4; codecs=x"}, bytes(5_000_000)
        site.answers["/b.png"] = 200, {"Content-Type": "image/png"}, bytes(2000)
        site.answers["/c.png"] = 200, {"Content-Type": "image/png"}, bytes(1000)
        chunks = b"".join(b"3e8\r\n" + bytes(1000) + b"\r\n" for _ in range(5)) + b"0\r\n\r\n"
        site.answers["/d.pdf"] = 200, {"Content-Type": "application/pdf", "Transfer-Encoding": "chunked"}, chunks
        site.answers["/e"] = 404, {"Content-Type": "video/mp4"}, bytes(100)
        site.answers["/robots.txt"] = 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /x\n"
        longest = {"*": 0, "text/html": 10_000, "image/*": 1000, "video/*": 0, "application/pdf": 1500}
        config, into = asked(tmp_path, {"match": "*", "media_bytes": longest}), tmp_path / "there"
        run = crawl(into, config, site.url)
    assert run.status == 0 and run.summary["outcomes"] == {"ok": 2, "media_refused": 3, "client_error": 1}, run.summary
    assert "3  media refused" in run.errors
    rows = {row["url"].rpartition("/")[2]: row for row in read_table(into, "pages").to_pylist()}
    assert rows["c.png"]["outcome"] == "ok"
    assert (
        rows["a.mp4"]["detail"] == "longer than the 0 bytes that media_bytes of a [[site]] table allows for video/mp4"
    )
    said = fyke("why", str(into), f"{site.url}a.mp4").stdout
    assert "media refused" in said and "media_bytes" in said and "[[site]]" in said
    assert sum(path.stat().st_size for path in (into / "warc").iterdir()) < 20_000
    assert fyke("check", str(into)).returncode == 0


@pytest.mark.parametrize("longest", [100, 2000, 10**6])
def test_rules_are_read_to_their_end_however_short_pages_may_be(tmp_path: Path, longest: int) -> None:
    with small_site(pages=1) as site:
        site.answers["/"] = 200, {"Content-Type": "text/html"}, b"<a href=/private>x</a>"
        rules = b"User-agent: *\n" + b"Disallow: /x\n" * 1000 + b"Disallow: /private\n"
        site.answers["/robots.txt"] = 200, {"Content-Type": "text/plain"}, rules
        run = crawl(tmp_path / "there", settings(tmp_path, fetch={"max_body_bytes": longest}), site.url)
    assert run.status == 0 and site.asked["/"] == 1 and not site.asked["/private"], run.summary


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"match": "http://a.example/", "pages": 3}, "let match be a host"),
        ({"match": "*", "pages": -1}, "greater than or equal to 0"),
        ({"match": "*", "media_bytes": {"Video": 3}}, "text/html, video/*"),
        ({"match": "*", "media_bytes": {"video/*": -3}}, "greater than or equal to 0"),
    ],
)
def test_limits_that_are_none(table: dict[str, object], words: str, tmp_path: Path) -> None:
    config = settings(tmp_path)
    lines = [f"{key} = {literal(value)}" for key, value in table.items()]
    config.write_text("\n".join([config.read_text(), "[[site]]", *lines]))
    run = crawl(tmp_path / "there", config, "http://127.0.0.1:9/")
    assert run.status == 2 and run.errors.count("\n") == 1 and words in run.errors
