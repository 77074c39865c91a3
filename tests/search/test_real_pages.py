"""Real pages, real questions: Debian's documentation of Python, crawled, indexed and asked."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawl.nginx import NGINX, nginx
from crawl.runs import crawl, fyke, settings
from fyke.search.searcher import Searcher

DOCS = Path("/usr/share/doc/python3.11/html")
QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text())["question"]
LEAST_RIGHT = 18

pytestmark = pytest.mark.skipif(not (NGINX.exists() and DOCS.is_dir()), reason="needs nginx and python3.11-doc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The documentation, crawled and indexed."""
    base = tmp_path_factory.mktemp("docs")
    with nginx(DOCS.resolve()) as start:
        run = crawl(base / "crawl", settings(base), start)
        assert run.status == 0, run.errors
        assert fyke("index", str(base / "crawl")).returncode == 0
        (base / "start").write_text(start)
    yield base / "crawl"


def test_the_page_is_in_the_first_three(folder: Path) -> None:
    start = (folder.parent / "start").read_text()
    wrong = {}
    with Searcher([folder]) as searcher:
        for question in QUESTIONS:
            hits = searcher.search(question["query"]).hits
            found = [hit.url.removeprefix(start) for hit in hits]
            if question["page"] not in found[:3]:
                wrong[question["query"]] = found[:5]
    assert len(QUESTIONS) == 20
    assert len(QUESTIONS) - len(wrong) >= LEAST_RIGHT, wrong


def test_the_command(folder: Path) -> None:
    done = fyke("search", str(folder), "asyncio", "gather")
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.splitlines()[0].startswith("Coroutines and Tasks")
    assert "\x1b" not in done.stdout
