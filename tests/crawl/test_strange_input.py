"""What a person may type and a server may send, and what one then expects."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawl.runs import FAST, Run, archived, crawl, crawl_apart, fyke, settings
from crawl.small_site import SmallSite, small_site
from fyke.archive.reading import read_table

HTML = {"Content-Type": "text/html"}


@pytest.fixture(scope="module")
def site() -> Iterator[SmallSite]:
    with small_site(pages=12) as running:
        yield running


def crawled(folder: Path, *arguments: str, status: int = 0, **sections: dict[str, object]) -> tuple[Run, set[str]]:
    run = crawl(folder / "crawl", settings(folder, **sections), *arguments)
    assert run.status == status, run.errors
    return run, set(archived(folder / "crawl"))


@pytest.mark.parametrize("name", ["localhost", "bücher.localhost", "xn--bcher-kva.localhost"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_names_of_this_machine(tmp_path: Path, site: SmallSite, name: str, scheme: str) -> None:
    """Also without a scheme, and in any script."""
    _, got = crawled(tmp_path, f"{scheme}{name}:{site.port}", "--pages", "2")
    ascii_name = name.encode("idna").decode()
    assert len(got) == 2 and all(url.startswith(f"http://{ascii_name}:{site.port}/") for url in got)


def test_an_address_of_version_6(tmp_path: Path) -> None:
    with small_site(pages=4, host="::1") as site:
        _, got = crawled(tmp_path, site.url)
        assert got == site.all_urls()


def test_a_seed_that_redirects_to_another_host(tmp_path: Path, site: SmallSite) -> None:
    """http://example.org → https://www.example.org: its pages are wanted, and after a restart still."""
    with small_site(pages=9, host="127.0.0.2") as other:
        site.answers["/moved"] = (301, {"Location": other.url}, b"")
        private = {"private": ["127.0.0.2"]}
        for limit in ("3", "100"):
            run, got = crawled(tmp_path, f"{site.url}moved", "--pages", limit, dns=private)
        assert run.summary["ending"] == "finished" and got == other.all_urls()
        into = str(tmp_path / "crawl")
        assert fyke("check", into).returncode == 0
        assert "not seen" in fyke("why", into, f"{other.url}elsewhere").stdout
        assert "filtered" in fyke("why", into, "http://127.0.0.3/").stdout


def test_where_a_seed_redirects_to_may_not_be_private(tmp_path: Path, site: SmallSite) -> None:
    with small_site(pages=2, host="127.0.0.2") as inside:
        site.answers["/inside"] = (302, {"Location": inside.url}, b"")
        run, got = crawled(tmp_path, f"{site.url}inside")
        assert not got and run.summary["outcomes"] == {"redirected": 1, "address_refused": 1}
        assert not inside.asked


def test_a_folder_without_its_slash(tmp_path: Path, site: SmallSite) -> None:
    """Scope prefix: the server says that it is a folder, and only what is in it is wanted."""
    site.answers["/docs"] = (301, {"Location": "/docs/"}, b"")
    site.answers["/docs/"] = (200, HTML, b'<a href="one">1</a> <a href="/p1">outside</a> <a href="/docs2">not</a>')
    site.answers["/docs/one"] = (200, HTML, b'<a href="../p2">outside</a>')
    _, got = crawled(tmp_path, f"{site.url}docs", "--scope", "prefix")
    assert got == {f"{site.url}docs/", f"{site.url}docs/one"}


def test_slashes_in_a_query_make_no_folder(tmp_path: Path, site: SmallSite) -> None:
    site.answers["/list?of=/a/b"] = (200, HTML, b'<a href="/p1">1</a>')
    _, got = crawled(tmp_path, f"{site.url}list?of=/a/b", "--scope", "prefix")
    assert f"{site.url}p1" in got


@pytest.mark.parametrize(
    ("path", "answer", "pages"),
    [
        ("one.bin", (200, {"Content-Type": "application/octet-stream"}, bytes(999)), 1),
        ("empty", (200, HTML, b""), 1),
        ("nothing", (204, {}, b""), 1),
        ("loop", (302, {"Location": "/loop"}, b""), 0),
        ("nowhere", (302, {"Location": "http://["}, b""), 0),
        ("untrue", (200, {**HTML, "Content-Encoding": "gzip"}, b"not gzip"), 1),
        ("no-length", (200, {**HTML, "Content-Length": "abc", "Connection": "close"}, b'<a href="/p11">1</a>'), 2),
        ("untyped", (200, {}, b'<a href="/p11">1</a>'), 2),
        ("odd", (200, HTML, b"""<a href="javascript:x()">1</a><a href='mailto:x'>2</a><a href="//">3</a>
            <a href=" /p11 ">4</a><a href="#a">5</a><a href="http:///[">6</a>"""), 2),
    ],
)  # fmt: skip
def test_single_answers(
    tmp_path: Path, site: SmallSite, path: str, answer: tuple[int, dict[str, str], bytes], pages: int
) -> None:
    site.answers[f"/{path}"] = answer
    run, got = crawled(tmp_path, f"{site.url}{path}", status=0 if pages else 6)
    assert run.summary["ending"] == "finished" and len(got) == pages


def test_a_huge_page(tmp_path: Path, site: SmallSite) -> None:
    """60 MB are archived whole in bounded memory, and read for links to their end."""
    filling = b"<p>" + b"word " * 200_000
    body = b'<a href="/p9">1</a>' + filling * 7 + b'<a href="/p10">2</a>' + filling * 53 + b'<a href="/p11">3</a>'
    site.answers["/huge"] = (200, HTML, body)
    run = crawl_apart(tmp_path / "crawl", settings(tmp_path), f"{site.url}huge", "--depth", "1")
    assert run.status == 0, run.errors
    assert {*archived(tmp_path / "crawl")} == {f"{site.url}{name}" for name in ("huge", "p9", "p10", "p11")}
    assert run.summary["bytes"] > len(body) > 60_000_000
    assert run.summary["peak_memory_bytes"] < 600 << 20


def test_a_sitemap_of_50_000(tmp_path: Path, site: SmallSite) -> None:
    locations = b"".join(b"<url><loc>%sp1?%d</loc></url>" % (site.url.encode(), n) for n in range(50_000))
    site.answers["/sitemap.xml"] = (200, {"Content-Type": "text/xml"}, b"<urlset>%s</urlset>" % locations)
    for number in range(60_000):
        site.answers[f"/p1?{number}"] = (200, HTML, b"a page")
    run, got = crawled(tmp_path, f"{site.url}sitemap.xml", "--pages", "50")
    assert len(got) == 1 + 50 and (run.summary["pages"], run.summary["urls"]) == (50, 50_001)


def test_limits(tmp_path: Path, site: SmallSite) -> None:
    for name, options, ending, pages in (
        ("one", ["--pages", "1"], "pages", 1),
        ("near", ["--depth", "1"], "finished", 3),
    ):
        folder = tmp_path / name
        folder.mkdir()
        run, got = crawled(folder, site.url, *options)
        assert (run.summary["ending"], len(got)) == (ending, pages)
    run, got = crawled(tmp_path, site.url, "--for", "2.5s", politeness={**FAST, "host_delay_s": 0.6})
    assert run.summary["ending"] == "time" and 0 < len(got) < 6 and run.summary["elapsed_s"] < 4


def test_what_is_said_can_be_typed(tmp_path: Path, site: SmallSite) -> None:
    """The line that says how to go on is a command, also where a folder's name needs quotes; stdout is JSON only."""
    into = tmp_path / "it's mine"
    base = [sys.executable, "-m", "fyke"]
    arguments = ["crawl", site.url, "--into", str(into), "--config", str(settings(tmp_path)), "--pages", "2", "--json"]
    done = subprocess.run([*base, *arguments], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["pages"] == 2
    said = next(line for line in done.stderr.splitlines() if line.startswith("Next: "))
    typed = said.removeprefix("Next: fyke ").partition(" goes on")[0].replace("MORE", "5")
    subprocess.run(f"{' '.join(base)} {typed}", shell=True, check=True, capture_output=True)
    assert read_table(into, "pages").num_rows == 5


def test_a_crawl_delay_of_31_years_is_cut_to_a_day_and_why_says_so(tmp_path: Path, site: SmallSite) -> None:
    """And a line of robots.txt cannot steer the terminal of who asks why."""
    rules = b"User-agent: *\nCrawl-delay: 999999999\nDisallow: /p1\x1b[2J\nDisallow: /p2\n"
    site.answers["/robots.txt"] = (200, {"Content-Type": "text/plain"}, rules)
    run, got = crawled(tmp_path, site.url)
    assert run.summary["ending"] == "resting" and 86300 < run.summary["rest_until"] - time.time() <= 86400
    assert not got and run.summary["waiting"] == 1
    told = fyke("why", str(tmp_path / "crawl"), site.url).stdout
    assert "asks for 1e+09 s between requests; fyke waits 86400 s at most" in told
    assert "\x1b" not in fyke("why", str(tmp_path / "crawl"), f"{site.url}p1%1B[2J").stdout


def test_of_a_page_with_more_links_than_are_taken_why_says_so(tmp_path: Path) -> None:
    links = "".join(f"<a href={number}.html>{number}</a>" for number in range(12_000))
    page = f"<base href='/deep/{'y' * 900}/'>{links}<a href=/last>last</a>"
    with small_site(pages=1) as site:
        site.answers["/many"] = (200, HTML, page.encode())
        run, _ = crawled(tmp_path, f"{site.url}many", "--deny", "/deep/")
    assert run.summary["cut"] == 1
    into = str(tmp_path / "crawl")
    assert "its end was not read for links" in fyke("why", into, f"{site.url}many").stdout
    assert "the ends of 1 page were not read" in fyke("why", into, f"{site.url}last").stdout


def test_of_a_link_that_asks_not_to_be_followed_why_does_not_say_that_there_is_none(tmp_path: Path) -> None:
    with small_site(pages=1) as site:
        site.answers["/shy"] = (200, HTML, b"<a rel=nofollow href=/shunned>x</a>")
        crawled(tmp_path, f"{site.url}shy")
    told = fyke("why", str(tmp_path / "crawl"), f"{site.url}shunned").stdout
    assert "not seen: no fetched page has a link to it that may be followed" in told


def test_rules_that_lie_elsewhere_are_not_said_to_be_made_up(tmp_path: Path) -> None:
    """The archive has them and no table, as it has what a probe brought; the record beside tells which is which."""
    with small_site(pages=2) as site:
        site.answers["/robots.txt"] = (301, {"Location": "/rules.txt"}, b"")
        site.answers["/rules.txt"] = (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /no\n")
        crawled(tmp_path, site.url)
        told = fyke("why", str(tmp_path / "crawl"), f"{site.url}rules.txt").stdout
    assert "not seen" in told and "made up" not in told
