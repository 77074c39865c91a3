"""Crawls whose seeds bring no page: what the person is told, and what `fyke why` says of redirects in a circle."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawl.runs import crawl, fyke, settings
from crawl.small_site import Answer, SmallSite, small_site


@pytest.fixture
def site() -> Iterator[SmallSite]:
    with small_site(pages=8) as running:
        yield running


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    return settings(tmp_path)


@pytest.mark.parametrize("agents", ["1", "2"])
@pytest.mark.parametrize(
    ("answers", "because"),
    [
        ({"/robots.txt": (200, {}, b"User-agent: *\nDisallow: /")}, "robots.txt forbids 1 URL"),
        ({"/": (302, {"Location": "/"}, b"")}, "1 redirect leads to no page"),
        ({"/": (302, {"Location": "/set"}, b""), "/set": (302, {"Location": "/"}, b"")}, "2 redirects lead to no page"),
        ({"/": (301, {"Location": "mailto:a@b.example"}, b"")}, "1 redirect leads to no page"),
        ({"/": (301, {"Location": "/none"}, b"")}, "1 redirect leads to no page, check the URL"),
    ],
)
def test_a_crawl_without_a_page_says_why(
    site: SmallSite, quick: Path, tmp_path: Path, agents: str, answers: dict[str, Answer], because: str
) -> None:
    """In a line and by its status, also when nothing is left to do."""
    site.answers |= answers
    into = tmp_path / "there"
    for _ in range(2):
        run = crawl(into, quick, site.url, "--agents", agents)
        assert run.status == 6 and run.summary["ending"] == "finished"
        assert run.errors.splitlines()[-1] == (
            f"fyke: no seed brought a page: {because}; fyke why {into} {site.url} says more"
        )


def test_a_crawl_with_a_page_ends_well_whatever_else_it_met(site: SmallSite, quick: Path, tmp_path: Path) -> None:
    site.answers |= {
        "/robots.txt": (200, {}, b"User-agent: *\nDisallow: /p1$"),
        "/p2": (302, {"Location": "/p2"}, b""),
        "/p3": (404, {}, b""),
    }
    seeds = [f"{site.url}p{number}" for number in range(1, 5)]
    assert crawl(tmp_path / "one", quick, *seeds[:3]).status == 6
    for _ in range(2):
        assert crawl(tmp_path / "two", quick, *seeds).status == 0
    assert crawl(tmp_path / "three", quick, *seeds, "--pages", "1").status == 0


def test_why_says_that_a_redirect_leads_to_itself(site: SmallSite, quick: Path, tmp_path: Path) -> None:
    into = tmp_path / "there"
    site.answers |= {
        "/": (302, {"Location": "/#top", "Set-Cookie": "a=b"}, b""),
        "/p1": (302, {"Location": "/p2"}, b""),
        "/p2": (302, {"Location": "/p1"}, b""),
        "/p3": (302, {"Location": "/p4"}, b""),
        "/p5": (302, {"Location": "/p1"}, b""),
    }
    crawl(into, quick, site.url, *(f"{site.url}p{number}" for number in range(1, 6)))
    for path, words in (
        ("", "redirected, status 302: it leads to itself, so a cookie may be missing"),
        ("p1", f"redirected, status 302: it leads to itself by way of {site.url}p2, so a cookie may be missing"),
        ("p3", "redirected, status 302"),
        ("p5", "redirected, status 302"),
    ):
        verdict = json.loads(fyke("why", str(into), f"{site.url}{path}", "--json").stdout)["verdict"]
        assert verdict.endswith(words), verdict
