"""The webs of the benches are what they say they are, judged from what they serve."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from webs import Web, made
from webs.alone import can_go_alone
from webs.broad import BROAD, PAGES_OF_HOST
from webs.documents import at_hand
from webs.plain import FEWEST_PAGES_OF_HOST, PLAIN
from webs.serving import LogReader, Tally

BENCHES = Path(__file__).parents[2] / "benches"
let_alone = pytest.mark.skipif(not can_go_alone(), reason="this system gives nobody a network of its own")
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
        leads = {href: urljoin(url, href) for href in hrefs}
        assert len(set(leads.values())) == 60
        assert all(leads[href] in pages for href in [*paths, *whole, *across])


@pytest.mark.parametrize("web", [PLAIN, BROAD], ids=lambda web: web.name)
def test_every_page_is_reached_from_the_seed(web: Web, tmp_path):
    pages = pages_of(made(web, 1200, tmp_path))
    reached, waiting = {web.first_page}, [web.first_page]
    while waiting:
        page = waiting.pop()
        for url in {urljoin(page, href) for href in pages.get(page, [])} - reached:
            reached.add(url)
            waiting.append(url)
    assert len(pages) == 1200
    assert pages.keys() <= reached


def test_a_broad_web_has_a_host_for_every_third_page(tmp_path):
    pages = pages_of(made(BROAD, 1200, tmp_path))
    assert len({urlsplit(url).hostname for url in pages}) == 1200 / PAGES_OF_HOST
    for url, hrefs in pages.items():
        hosts = [urlsplit(urljoin(url, href)).hostname for href in hrefs]
        assert hosts.count(urlsplit(url).hostname) >= PAGES_OF_HOST  # its others, and what robots.txt forbids
        assert len(hrefs) == 15


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


def fetched(web: str, pages: int, kept: Path) -> list[dict]:
    """What the first pages of a web say, breadth first, as a client sees them that is let into it."""
    program = f"import fetching; fetching.fetch({pages})"
    command = [sys.executable, BENCHES / "web.py", web, "--pages", "600", "--into", kept]
    inside = [sys.executable, "-c", program, "{seed}", "{ca}"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([*command, "--", *inside], stdout=subprocess.PIPE, env=environment, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]


@let_alone
def test_no_link_of_the_endless_web_is_met_twice(tmp_path):
    pages = fetched("endless", 150, tmp_path)
    written = [href for page in pages for href in page["hrefs"]]
    resolved = [urljoin(page["url"], href) for page in pages for href in page["hrefs"]]
    assert len(pages) == 150
    assert all(page["status"] == 200 and len(page["hrefs"]) == 60 for page in pages)
    assert len(set(written)) == len(written)
    assert len(set(resolved)) == len(resolved)
    assert 17_000 < sum(page["size"] for page in pages) / len(pages) < 23_000
    for page in pages:
        hosts = [urlsplit(urljoin(page["url"], href)).hostname for href in page["hrefs"]]
        assert hosts.count(urlsplit(page["url"]).hostname) == 51


@let_alone
@pytest.mark.skipif(not at_hand(), reason="needs Debian's erlang-doc and scala-doc")
def test_todays_pages_are_as_pages_are_today(tmp_path):
    pages = fetched("today", 600, tmp_path)
    assert len(pages) == 600  # each is reached
    assert all(page["protocol"] == "2" and page["coding"] == "gzip" and page["status"] == 200 for page in pages)
    assert 130_000 < sum(page["size"] for page in pages) / 600 < 220_000
    out = [[href for href in page["hrefs"] if not href.startswith("#")] for page in pages]
    assert 115 < sum(len(set(hrefs)) for hrefs in out) / 600 < 160
    assert all(sum(href.startswith("/private/") for href in hrefs) == 1 for hrefs in out)
    known = {page["url"] for page in pages}
    met = {urldefrag(urljoin(page["url"], href)).url for page, hrefs in zip(pages, out, strict=True) for href in hrefs}
    assert {url for url in met if "/private/" not in url} <= known


@let_alone
def test_nothing_outside_is_reached_from_a_web(tmp_path):
    program = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('192.0.2.1', 53))"
    command = [sys.executable, BENCHES / "web.py", "endless", "--pages", "600", "--into", tmp_path, "--"]
    done = subprocess.run([*command, sys.executable, "-c", program], stderr=subprocess.PIPE, check=False)
    assert b"Network is unreachable" in done.stderr


def test_the_servers_log_tells_pages_from_the_rest(tmp_path):
    lines = [
        "a.test/robots.txt\t200\t30\t1\t.",
        "a.test/\t200\t100\t1\t.",
        "a.test/x?y=1\t200\t10\t2\tr",
        "a.test/x?y=1\t200\t10\t2\tr",
        "a.test/private/1\t404\t9\t3\t.",
        "a.test/gone\t404\t9\t3\t.",
        "a.test/style.css\t204\t0\t3\t.",
        "",
    ]
    text, log = "\n".join(lines), tmp_path / "access.log"
    log.touch()
    reader = LogReader(log)
    for start in range(0, len(text), 7):  # read while it is written, lines half there
        with log.open("a") as file:
            file.write(text[start : start + 7])
        told = reader.read()
    reader.close()
    assert told == Tally(pages=2, again=1, forbidden=1, robots=1, missing=1, body_bytes=120, connections=3, resumed=1)
