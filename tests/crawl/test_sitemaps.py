"""Sitemaps and feeds are the crawler's own errands: archived, and read for their links; no pages."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fyke
from crawl.runs import archived, crawl, settings
from crawl.runs import fyke as command
from crawl.small_site import SmallSite, small_site
from fyke.archive.reading import read_table
from fyke.core.config import load
from fyke.harvest.named_sitemaps import DEEPEST_SITEMAP, NamedSitemaps

XML = {"Content-Type": "text/xml"}
HTML = {"Content-Type": "text/html"}


@pytest.fixture
def site() -> Iterator[SmallSite]:
    with small_site(pages=8) as running:
        yield running


def robots(site: SmallSite, *lines: str) -> None:
    site.answers["/robots.txt"] = (200, {"Content-Type": "text/plain"}, "\n".join(lines).encode())


def sitemap(*urls: str) -> tuple[int, dict[str, str], bytes]:
    return 200, XML, f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>".encode()


def index(*urls: str) -> tuple[int, dict[str, str], bytes]:
    named = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return 200, XML, f"<sitemapindex>{named}</sitemapindex>".encode()


def kinds(into: Path) -> dict[str, str]:
    """Path of each row of the pages table that is ok, and its kind."""
    rows = read_table(into, "pages", ["url", "outcome", "kind"]).to_pylist()
    return {"/" + row["url"].split("/", 3)[3]: row["kind"] for row in rows if row["outcome"] == "ok"}


def pages(into: Path) -> set[str]:
    return {path for path, kind in kinds(into).items() if kind != "listing"}


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_they_do_not_count(tmp_path: Path, site: SmallSite, limit: int) -> None:
    robots(site, *(f"Sitemap: {site.url}map{number}.xml" for number in range(9)))
    site.answers |= {f"/map{number}.xml": sitemap(f"{site.url}p{number}") for number in range(9)}
    run = crawl(tmp_path / "crawl", settings(tmp_path), site.url, "--pages", str(limit))
    assert (run.summary["ending"], run.summary["pages"], len(pages(tmp_path / "crawl"))) == ("pages", limit, limit)
    assert "/" in pages(tmp_path / "crawl")


def test_they_do_not_count_in_a_pass(tmp_path: Path, site: SmallSite) -> None:
    robots(site, "Sitemap: same.xml", "Sitemap: other.xml", "Sitemap: away.xml")
    into, names = tmp_path / "crawl", ("/same.xml", "/other.xml", "/away.xml")
    site.answers |= dict.fromkeys(names, sitemap(f"{site.url}p1"))
    assert crawl(into, settings(tmp_path), site.url).status == 0
    site.answers |= {"/other.xml": sitemap(f"{site.url}p2"), "/away.xml": (404, {}, b"")}
    found = crawl(into, settings(tmp_path), "--again").summary["again"]
    assert [found[word] for word in ("unchanged", "changed", "new", "gone")] == [8, 0, 0, 0]


def test_all_are_read_and_shown_apart(tmp_path: Path, site: SmallSite) -> None:
    """A feed that a page links to is known by what it is, a sitemap that robots.txt names by who names it."""
    feed = b"<rss><channel><item><link>%sp7</link></item></channel></rss>" % site.url.encode()
    robots(site, "Sitemap: index.xml", "Sitemap: /list", "Sitemap: missing.xml")
    site.answers |= {
        "/": (200, HTML, b'<a href="/feed?1"></a><a href="/feed?2"></a><a href="/p1">1</a>'),
        "/index.xml": index(f"{site.url}deep.xml"),
        "/deep.xml": sitemap(f"{site.url}p5"),
        "/list": (200, {"Content-Type": "text/plain"}, f"{site.url}p6\n".encode()),
        "/feed?1": (200, {"Content-Type": "application/rss+xml"}, feed),
        "/feed?2": (200, {"Content-Type": "application/rss+xml"}, feed),  # a duplicate is not parsed, and no page
    }
    into = tmp_path / "crawl"
    run = crawl(into, settings(tmp_path), site.url)
    found = kinds(into)
    assert {path for path, kind in found.items() if kind == "listing"} == {
        "/index.xml", "/deep.xml", "/list", "/feed?1", "/feed?2",
    }  # fmt: skip
    assert pages(into) == {"/", *(f"/p{number}" for number in (1, 3, 4, 5, 6, 7))}
    assert (run.summary["pages"], run.summary["visits"], run.summary["listings"]) == (7, 7, 6)
    assert "6  sitemaps and feeds read" in run.errors
    assert command("check", str(into)).returncode == 0
    with fyke.Crawl(site.url, into=tmp_path / "again", config=load(settings(tmp_path))) as reading:
        assert {"/" + page.url.split("/", 3)[3] for page in reading} == pages(into)


def test_a_seed_may_be_one(tmp_path: Path, site: SmallSite) -> None:
    site.answers["/index.xml"] = index(f"{site.url}deep.xml")
    site.answers["/deep.xml"] = sitemap(f"{site.url}p7")
    run = crawl(tmp_path / "crawl", settings(tmp_path), f"{site.url}index.xml", "--pages", "1")
    assert (run.summary["pages"], pages(tmp_path / "crawl")) == (1, {"/p7"})


def test_a_page_that_is_called_a_sitemap_stays_a_page(tmp_path: Path, site: SmallSite) -> None:
    robots(site, f"Sitemap: {site.url}p7")
    run = crawl(tmp_path / "crawl", settings(tmp_path), f"{site.url}p6")
    assert pages(tmp_path / "crawl") == {"/p6", "/p7"} and run.summary["pages"] == 2


STAY = {  # by media type: what is no list of pages, whoever calls it one
    "text/plain": b"Notes.\nhttp://127.0.0.1:1/a\nsay more than http://127.0.0.1:1/b\n",
    "application/json": b'{"items": [{"name": "http://127.0.0.1:1/a"}]}',
    "text/csv": b"url,weight\nhttp://127.0.0.1:1/a,1\n",
    "text/xml": b"<notes><note>http://127.0.0.1:1/a</note></notes>",
}


@pytest.mark.parametrize("media_type", STAY)
def test_what_a_stranger_calls_a_sitemap_stays_what_it_is(tmp_path: Path, site: SmallSite, media_type: str) -> None:
    into, config = (
        tmp_path / "crawl",
        settings(tmp_path, dns={"private": ["127.0.0.1", "127.0.0.2"]}, crawl={"scope": "web"}),
    )
    site.answers |= {
        "/": (200, HTML, b"<a href=/notes>notes</a>"),
        "/notes": (200, {"Content-Type": media_type}, STAY[media_type]),
        "/list": (200, {"Content-Type": "text/plain"}, f"\n{site.url}p6\r\n  {site.url}p7 \n".encode()),
        "/map.xml": sitemap(f"{site.url}p5"),
    }
    with small_site(pages=1, host="127.0.0.2") as stranger:
        robots(stranger, *(f"Sitemap: {site.url}{name}" for name in ("notes", "list", "map.xml")))
        stranger.answers["/"] = (200, HTML, f"<a href={site.url}>a site</a>".encode())
        run = crawl(into, config, stranger.url)
    found = kinds(into)
    assert {path for path, kind in found.items() if kind == "listing"} == {"/list", "/map.xml"}
    assert pages(into) == {"/", "/notes", "/p5", "/p6", "/p7"} and run.summary["pages"] == 6


def test_seeds_come_first(tmp_path: Path, site: SmallSite) -> None:
    robots(site, "Sitemap: /map.xml")
    asked: list[str] = []

    def noting(path: str, answer: tuple[int, dict[str, str], bytes]) -> Callable[[], tuple[int, dict[str, str], bytes]]:
        return lambda: asked.append(path) or answer

    site.answers["/map.xml"] = noting("/map.xml", sitemap(f"{site.url}p7"))
    site.answers |= {f"/p{number}": noting(f"/p{number}", (200, HTML, b"a page")) for number in (5, 6, 7)}
    crawl(tmp_path / "crawl", settings(tmp_path), f"{site.url}p5", f"{site.url}p6")
    assert asked == ["/p5", "/p6", "/map.xml", "/p7"]


def test_the_switch(tmp_path: Path, site: SmallSite) -> None:
    robots(site, "Sitemap: /map.xml")
    site.answers["/map.xml"] = sitemap(f"{site.url}p7")
    crawl(tmp_path / "crawl", settings(tmp_path, crawl={"sitemaps": False}), f"{site.url}p6")
    assert kinds(tmp_path / "crawl") == {"/p6": "seed"} and not site.asked["/map.xml"]


def test_one_that_waits_is_one_after_a_restart(tmp_path: Path, site: SmallSite) -> None:
    robots(site, *(f"Sitemap: /map{number}.xml" for number in range(1, 8)))
    site.answers |= {f"/map{number}.xml": sitemap(f"{site.url}p{number}") for number in range(1, 8)}
    into, config = tmp_path / "crawl", settings(tmp_path)
    for limit in (1, 2, 4, 100):
        run = crawl(into, config, site.url, "--pages", str(limit))
        assert run.summary["pages"] == len(pages(into)) == min(limit, 8)
    assert run.summary["listings"] == 7 and len(archived(into)) == 8 + 7
    assert all(times == 1 for path, times in site.asked.items() if path != "/robots.txt")


def test_indexes_end(tmp_path: Path, site: SmallSite) -> None:
    """Each names the next: no deeper than a few, whoever is asked."""
    robots(site, "Sitemap: /0.xml")
    site.answers |= {f"/{number}.xml": index(f"{site.url}{number + 1}.xml") for number in range(50)}
    run = crawl(tmp_path / "crawl", settings(tmp_path), f"{site.url}p7")
    assert run.summary["ending"] == "finished" and run.summary["listings"] == DEEPEST_SITEMAP + 1


def test_a_host_names_only_so_many() -> None:
    named = NamedSitemaps({}, most=15, hosts=4)
    assert [named.admitted(1, 10, 1) for _ in range(3)] == [10, 5, 0]
    assert NamedSitemaps(named.state(), most=15).admitted(1, 10, 1) == 0
    assert not named.admitted(2, 10, DEEPEST_SITEMAP + 1)
    for host in range(100, 120):  # others come and go: what is remembered is bounded, and the worst of them stays
        named.admitted(host, 1, 1)
        assert len(named.state()) <= 5
    assert not named.admitted(1, 10, 1)
