"""Broken links: every one with all pages it stands on, and none that is not broken."""

import json
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import in_process
from crawl.runs import crawl_here as crawl
from crawl.runs import fyke_here as fyke
from crawl.runs import settings as written
from crawl.small_site import SmallSite, small_site
from fyke.archive import arrivals, reading
from fyke.archive.directory import CrawlDirectory
from fyke.core.config import build, render
from fyke.core.outcomes import Outcome
from fyke.report import sql
from fyke.report.broken import BrokenLink, BrokenLinks
from fyke.report.page import page
from fyke.report.sql import Questions
from search.archives import Answer, Archive, html

HTML = {"Content-Type": "text/html"}


def url(number: int) -> str:
    return f"http://a.example/{number}"


def broken(folder: Path) -> dict[str, BrokenLink]:
    with Questions(folder) as questions:
        found = BrokenLinks(questions)
        links = [*found.worst(shown=1000)]
    assert len(links) == found.count == len({link.url for link in links})
    assert found.pages == len({one for link in links for one in link.on})
    assert all(link.pages == len(link.on) for link in links)
    assert [link.pages for link in links] == sorted((link.pages for link in links), reverse=True)
    return {link.url: link for link in links}


Site = Mapping[int, tuple[str, list[int]]]  # what a URL is, and where it leads
SITES = st.dictionaries(
    st.integers(0, 9),
    st.tuples(
        st.sampled_from(["page", "page", "redirect", "missing", "gone", "failed"]),
        st.lists(st.integers(0, 12), max_size=4),
    ),
)


def leads_nowhere(site: Site, number: int) -> bool:
    """By following redirects one at a time, as a browser does."""
    seen = set()
    while number in site:
        kind, links = site[number]
        if kind != "redirect" or not links:
            return kind in ("missing", "gone", "failed")
        if number in seen:
            return True
        seen.add(number)
        number = links[0]
    return False


def pages_now(*passes: Site) -> Mapping[int, list[int]]:
    """The links that each page has by now: what fails, or is missing for the first time, may be as it was."""
    pages = {}
    for site in passes:
        for number, (kind, links) in site.items():
            if kind not in ("missing", "failed"):
                pages[number] = links if kind == "page" or (kind == "redirect" and not links) else []
    return pages


@given(SITES, SITES)
@settings(max_examples=60)
def test_as_a_browser_would_find_them(before: Site, site: Site) -> None:
    """Of any web, where some URLs were visited twice and the last visit counts."""
    with tempfile.TemporaryDirectory() as name:
        made = Archive(Path(name), table_rows=3)
        for visits in (before, site):
            for number, (kind, links) in visits.items():
                if kind == "failed":
                    made.failure(url(number))
                elif kind == "redirect" and links:
                    made.visit(url(number), Answer(status=301, headers={"Location": url(links[0])}))
                elif kind in ("missing", "gone"):  # gone is what is missing twice in a row
                    made.visit(url(number), Answer("no", status=410), Outcome.GONE if kind == "gone" else None)
                else:
                    made.visit(url(number), html(f"{number}", "", {url(to): f"{to}" for to in links}))
        made.close()
        last = {**before, **site}
        standing = {}
        for number, links in pages_now(before, site).items():
            for to in links:
                if leads_nowhere(last, to):
                    standing.setdefault(url(to), set()).add(url(number))
        found = broken(Path(name))
        assert {to: set(link.on) for to, link in found.items()} == standing


@pytest.fixture
def site():
    with small_site(pages=3) as running:
        yield running


def test_redirects_that_end_nowhere(site: SmallSite, tmp_path: Path) -> None:
    """At a scheme that is not fetched, or never."""
    long = [f"/long/{n}" for n in range(30)]
    leads = {"/file": "file:///etc/passwd", "/script": "javascript:x()", "/": "/p1"} | dict(pairwise(long))
    for path, target in leads.items():
        site.answers[path] = 302, {"Location": target}, b""
    site.answers["/p1"] = 200, HTML, b"<a href=/file>1</a><a href=/script>2</a><a href=/long/0>3</a>"
    assert crawl(tmp_path / "there", written(tmp_path), site.url).status == 0
    assert {link.removeprefix(site.url) for link in broken(tmp_path / "there")} == {"file", "script", "long/0"}


def test_a_site_is_checked(site: SmallSite, tmp_path: Path) -> None:
    """By the commands a person types: the exit status says whether anything is broken."""
    into, config = tmp_path / "there", written(tmp_path, politeness={"host_failures": 2, "failure_delay_s": 0.1})
    site.answers["/"] = 200, HTML, b"<a href=/p1>1</a><a href=/gone>x</a><a href=/moved>x</a><img src=/none.png>"
    site.answers["/p1"] = 200, HTML, b"<a href=/gone>x</a><a href=/gone>again</a><a href=/fine>x</a>"
    site.answers["/moved"] = 301, {"Location": "/away"}, b""
    site.answers["/fine"] = 301, {"Location": "/p2"}, b""
    assert crawl(into, config, site.url, "--requisites").status == 0
    done = fyke("links", str(into), "--broken", "--on", "1")
    assert done.returncode == 1 and not done.stderr
    base = site.url
    assert done.stdout.splitlines() == [
        f"404   {base}gone  (client error)", f"      on {base}", "      and on 1 page more",
        f"404   {base}moved  (client error)", f"      -> {base}away", f"      on {base}",
        f"404   {base}none.png  (client error)", f"      on {base}",
        f"{into}: 3 broken links on 2 pages; links lead to 5 URLs",
    ]  # fmt: skip
    done = fyke("links", str(into), "--broken", "--json")
    first, *_ = map(json.loads, done.stdout.splitlines())
    assert first == {
        "url": f"{base}gone", "status": 404, "why": "client error", "redirects_to": "", "seed": False, "pages": 2,
        "on": [base, f"{base}p1"],
    }  # fmt: skip
    assert fyke("links", str(into)).returncode == 0
    text = page(CrawlDirectory(into), 1_795_100_000.0)
    assert "3 of them, on 2 pages" in text and f"{base}gone" in text and "404 client error" in text


def test_a_site_that_is_mended(site: SmallSite, tmp_path: Path) -> None:
    """By passes: what stays broken is told each time, and no link that was taken out."""
    into, config = tmp_path / "there", written(tmp_path)
    site.answers["/"] = 200, HTML, b"<a href=/p1>1</a><a href=/gone>x</a>"
    site.answers["/p1"] = 200, HTML, b"<a href=/away>x</a>"
    assert crawl(into, config, site.url).status == 0
    for page_links, expected in ((b"<a href=/p1>1</a><a href=/gone>y</a>", 2), (b"<a href=/p1>1</a>", 1)):
        site.answers["/"] = 200, HTML, page_links
        assert crawl(into, config, "--again").status == 0
        assert len(broken(into)) == expected
    site.answers["/p1"] = 200, HTML, b"no link any more"
    assert crawl(into, config, "--again").status == 0
    assert fyke("links", str(into), "--broken").returncode == 0


def test_the_beginning_of_a_page_has_its_present_links(site: SmallSite, tmp_path: Path) -> None:
    into, config = tmp_path / "there", written(tmp_path)
    one, other = b"<a href=/gone>x</a>", b"<a href=/lost>x</a>"
    breaks_off = {**HTML, "Content-Length": "1000", "Connection": "close"}
    for passes, (head, links, expected) in enumerate([
        (HTML, one + other, {"gone", "lost"}), (HTML, one, {"gone"}), (breaks_off, other + one, {"gone", "lost", "p1"})
    ]):  # fmt: skip
        site.answers["/p1"] = 200, head, links
        assert crawl(into, config, *([site.url] if not passes else ["--again"])).status == 0
        assert {link.removeprefix(site.url) for link in broken(into)} == expected


def test_a_sound_site(site: SmallSite, tmp_path: Path) -> None:
    into = tmp_path / "there"
    assert crawl(into, written(tmp_path), site.url).status == 0
    done = fyke("links", str(into), "--broken")
    assert done.returncode == 0 and done.stdout == f"{into}: no broken links; links lead to 2 URLs\n"
    assert "None: of 2 URLs" in page(CrawlDirectory(into), 1_795_100_000.0)


def test_a_seed_and_what_was_not_fetched(site: SmallSite, tmp_path: Path) -> None:
    into = tmp_path / "there"
    site.answers["/p1"] = 200, HTML, b"<a href=http://elsewhere.example/>x</a>"
    assert crawl(into, written(tmp_path), site.url, f"{site.url}nothing").status == 0
    done = fyke("links", str(into), "--broken")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"404   {site.url}nothing  (client error)",
        "      a seed",
        f"{into}: 1 broken link on 0 pages; links lead to 3 URLs, 1 of them not visited",
    ]


def test_mistakes(tmp_path: Path) -> None:
    done = fyke("links", str(tmp_path), "--broken")
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "holds no crawl" in done.stderr
    settings_of = render(build({"crawl": {"seeds": ["http://a.example/"]}, "store": {"links": False}}, "test"))
    (tmp_path / "fyke.toml").write_text(settings_of)
    done = fyke("links", str(tmp_path), "--broken")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "store.links = false" in done.stderr
    (tmp_path / "fyke.toml").write_text(render(build({"crawl": {"seeds": ["http://a.example/"]}}, "test")))
    done = fyke("links", str(tmp_path), "--broken")
    assert done.returncode == 0, done.stderr


def test_a_crawl_that_is_moved_away_meanwhile_is_not_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever that happens: who reads is told of it in a line, and nobody that all links are whole."""
    into, elsewhere = tmp_path / "crawl", tmp_path / "elsewhere"
    with small_site(pages=4) as site:
        assert crawl(into, written(tmp_path), site.url).status == 0

    def away(module: ModuleType, name: str) -> None:
        step = getattr(module, name)

        def moved(*arguments: Any, **named: Any) -> Any:
            if into.is_dir():
                into.rename(elsewhere)
            return step(*arguments, **named)

        monkeypatch.setattr(module, name, moved)

    for module, name in (
        (sql, "has_rows"),
        (sql, "safe_rows"),
        (arrivals, "require_rows"),
        (arrivals, "segments"),
        (reading, "_serials"),
    ):
        away(module, name)
        said = in_process("links", str(into), "--broken")
        monkeypatch.undo()
        elsewhere.rename(into)
        line = said.errors.splitlines()
        assert (said.status, said.out, len(line)) == (3, "", 1) and str(into) in line[0], (name, said)
    assert in_process("links", str(into), "--broken").status == 0
