"""Real pages, real questions: documentation that Debian packages, crawled, indexed and asked.

`questions/` has a file for each site: 20 questions as people type them, written before anybody saw what they find, and
the pages that answer. Those of the sites marked `held_back` were not looked at when the ranking was made.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

import pytest

from crawl.nginx import NGINX, nginx
from crawl.runs import crawl, fyke, settings
from fyke.search.searcher import Searcher
from once import once

LEAST_RIGHT = {  # of 20; others are not installed where these tests always run
    "python": 18, "postgresql": 17, "cmake": 17, "sqlite": 16, "handbook": 15,
    "git": 11, "django": 17, "apache": 17, "nodejs": 16,
}  # fmt: skip
MISSPELT_WRONG = 3  # more of 20, at most
SITES = {
    path.stem: tomllib.loads(path.read_text()) for path in sorted((Path(__file__).parent / "questions").glob("*.toml"))
}

pytestmark = pytest.mark.skipif(not NGINX.exists(), reason="needs nginx")


@pytest.fixture
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, str]]:
    """A function that gives the directory of a site, crawled and indexed, and its address."""

    def give(name: str) -> tuple[Path, str]:
        root = Path(SITES[name]["root"])
        if not root.is_dir():
            pytest.skip(f"needs {SITES[name]['package']}")

        def make(base: Path) -> None:
            with nginx(root.resolve()) as start:
                run = crawl(base / "crawl", settings(base), start)
            assert run.status == 0, run.errors
            assert fyke("index", str(base / "crawl")).returncode == 0
            (base / "start").write_text(start)

        base = once(tmp_path_factory, f"real-{name}", make)
        return base / "crawl", (base / "start").read_text()

    return give


def misspelt(query: str, dice: Random) -> str:
    """The query with two neighbours of its longest word swapped."""
    word = max(query.split(), key=len)
    at = dice.choice([n for n in range(len(word) - 1) if word[n] != word[n + 1]])
    return query.replace(word, word[:at] + word[at + 1] + word[at] + word[at + 2 :], 1)


@pytest.mark.parametrize("swapped", [0, 1])
@pytest.mark.parametrize("name", SITES)
def test_the_page_is_in_the_first_three(name: str, swapped: int, crawled: Callable[[str], tuple[Path, str]]) -> None:
    """Also if a word is misspelt, with a few exceptions: what was typed may be another word."""
    folder, start = crawled(name)
    questions: list[dict[str, Any]] = SITES[name]["question"]
    wrong, dice = {}, Random(name)
    with Searcher([folder]) as searcher:
        for question in questions:
            query = misspelt(question["query"], dice) if swapped else question["query"]
            found = [unquote(hit.url.removeprefix(start)) for hit in searcher.search(query).hits]
            if not set(question["pages"]) & set(found[:3]):
                wrong[query] = found[:5]
    assert len(questions) == 20
    assert len(questions) - len(wrong) >= LEAST_RIGHT[name] - MISSPELT_WRONG * swapped, wrong


@pytest.mark.parametrize(
    ("name", "query", "navigation"),
    [("postgresql", "inserting data", "Prev Up"), ("sqlite", "drop index", "Choose any three")],
)
def test_snippets_have_no_navigation(
    name: str, query: str, navigation: str, crawled: Callable[[str], tuple[Path, str]]
) -> None:
    with Searcher([crawled(name)[0]]) as searcher:
        shown = ["".join(text for text, _ in hit.snippet) for hit in searcher.search(query).hits]
    assert len(shown) == 10 and not [snippet for snippet in shown if navigation in snippet]


def test_the_command(crawled: Callable[[str], tuple[Path, str]]) -> None:
    done = fyke("search", str(crawled("python")[0]), "asyncio", "gather")
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.splitlines()[0].startswith("Coroutines and Tasks")
    assert "\x1b" not in done.stdout
