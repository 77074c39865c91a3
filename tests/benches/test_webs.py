"""The webs of the benches are what they say they are, judged from what they serve."""

import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from webs import made
from webs.plain import FEWEST_PAGES_OF_HOST, PLAIN

_HREF = re.compile(rb'<a href="([^"]*)"')


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    return made(PLAIN, 20 * FEWEST_PAGES_OF_HOST, tmp_path_factory.mktemp("kept"))


def pages_of(folder: Path) -> dict[str, list[str]]:
    """URL of each page of a plain web: its links as written."""
    found = {}
    for file in folder.rglob("*.html"):
        host, _, path = str(file.relative_to(folder)).partition("/")
        path = "" if path == "index.html" else path
        found[f"http://{host}/{path}"] = [href.decode() for href in _HREF.findall(file.read_bytes())]
    return found


def test_a_plain_page_has_the_links_it_claims(plain):
    pages = pages_of(plain)
    assert len(pages) == 1200
    for url, hrefs in pages.items():
        host = f"http://{urlsplit(url).hostname}/"
        forbidden = [href for href in hrefs if href.startswith("/private/")]
        paths = [href for href in hrefs if href.startswith("/") and href not in forbidden]
        whole = [href for href in hrefs if href.startswith(host)]
        across = [href for href in hrefs if not href.startswith(("/", host))]
        assert [len(paths), len(whole), len(across), len(forbidden)] == [25, 25, 9, 1]
        assert len({urljoin(url, href) for href in hrefs}) == 60
        assert all(urljoin(url, href) in pages for href in [*paths, *whole, *across])


def test_every_plain_page_is_reached_from_the_seed(plain):
    pages = pages_of(plain)
    reached, waiting = {PLAIN.seed_url}, [PLAIN.seed_url]
    while waiting:
        page = waiting.pop()
        for url in {urljoin(page, href) for href in pages.get(page, [])} - reached:
            reached.add(url)
            waiting.append(url)
    assert pages.keys() <= reached


def test_plain_pages_weigh_20_kb_and_no_two_are_the_same(plain):
    bodies = [file.read_bytes() for file in plain.rglob("*.html")]
    assert len(set(bodies)) == len(bodies)
    assert 19_000 < sum(map(len, bodies)) / len(bodies) < 21_000


def test_the_same_seed_gives_the_same_web_and_it_is_made_once(plain, tmp_path):
    again = made(PLAIN, 1200, tmp_path)
    files = sorted(file.relative_to(again) for file in again.rglob("*.*") if file.is_file())
    assert all((again / file).read_bytes() == (plain / file).read_bytes() for file in files)
    assert len(files) == 1200 + 20  # and a robots.txt for each host
    assert made(PLAIN, 1200, tmp_path) == again
    other = made(PLAIN, 1200, tmp_path, seed=7)
    assert (other / files[0]).read_bytes() != (again / files[0]).read_bytes()


def test_a_web_that_could_not_be_made_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="at least"):
        made(PLAIN, 5, tmp_path)
    assert list(tmp_path.iterdir()) == []
