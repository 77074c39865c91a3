"""A protocol plug-in brings a scheme of its own: its URLs are seeds and links like any other, and obey robots.txt."""

from collections.abc import Callable
from pathlib import Path

import pytest

import fyke
from crawl.runs import archived
from crawl.runs import fyke as command
from fyke.archive.directory import CrawlDirectory
from fyke.core.errors import BadUrl, PluginError
from fyke.explain import why

SITE = {
    "news2://127.0.0.1/robots.txt": b"User-agent: *\nDisallow: /private\n",
    "news2://127.0.0.1/": b'<title>News</title><a href=a>a</a> <a href="/private/b">b</a> <a href="NEWS2://127.0.0.1:119/c">'
    b'c</a> <a href="other://127.0.0.1/d">d</a>',
    "news2://127.0.0.1/a": b"a text",
    "news2://127.0.0.1:119/c": b"another",
}


class News:
    """Answers from `SITE`; remembers what it was asked."""

    schemes = ("news2",)

    def __init__(self) -> None:
        self.asked: list[str] = []

    def fetch(self, visit: fyke.Visit, address: str, done: Callable[[fyke.Exchange], None]) -> None:
        self.asked.append(visit.url)
        body = SITE.get(visit.url)
        outcome = fyke.Outcome.CLIENT_ERROR if body is None else fyke.Outcome.OK
        done(fyke.Exchange(visit, outcome, 0.0, 0.0, address, body=fyke.Document(body or b"")))


def test_its_urls_are_seeds_and_links(tmp_path: Path) -> None:
    news = News()
    with fyke.Crawl("News2://127.0.0.1", into=tmp_path / "crawl", protocols=[news]) as crawl:
        pages = {page.url for page in crawl}
    assert pages == {"news2://127.0.0.1/", "news2://127.0.0.1/a", "news2://127.0.0.1:119/c"}
    robots = {"news2://127.0.0.1/robots.txt", "news2://127.0.0.1:119/robots.txt"}
    assert sorted(news.asked) == sorted(pages | robots), "each once, rules of each origin, and nothing forbidden"
    assert set(archived(tmp_path / "crawl")) == pages
    said = why(CrawlDirectory(tmp_path / "crawl"), "news2://127.0.0.1/private/b")
    assert "robots.txt forbids it" in said.verdict
    for program in ("check", "index"):
        done = command(program, str(tmp_path / "crawl"))
        assert done.returncode == 0, done.stderr
    assert "news2://127.0.0.1:119/c" in command("search", str(tmp_path / "crawl"), "another").stdout


def test_without_it_they_are_no_seeds(tmp_path: Path) -> None:
    with pytest.raises(BadUrl, match=r"'news2://h/' .*http://"):
        fyke.Crawl("news2://h/", into=tmp_path / "crawl")
    with pytest.raises(BadUrl, match=r"'news3://h/' .*news2://"):
        fyke.Crawl("news3://h/", into=tmp_path / "crawl", protocols=[News()])
    assert not (tmp_path / "crawl").exists()


def test_a_scheme_that_is_none(tmp_path: Path) -> None:
    class Loud(News):
        schemes = ("News 2",)

    with pytest.raises(PluginError, match=r"Loud .*'News 2'"):
        fyke.Crawl("http://h/", into=tmp_path / "crawl", protocols=[Loud()])
