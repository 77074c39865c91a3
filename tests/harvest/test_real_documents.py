"""Real pages: the Python documentation as Debian ships it (package python3.11-doc)."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical
from fyke.core.visits import Exchange
from fyke.harvest import Parser

FOLDER = Path("/usr/share/doc/python3.11/html")
SITE = "http://docs.example/"

pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").exists(), reason="python3.11-doc is not installed")


def test_every_page_is_text_and_every_link_leads_somewhere(answer: Callable[..., Exchange]) -> None:
    parser, resolver = Parser(requisites=True), LinkResolver()
    linked: set[str] = set()
    files = sorted(FOLDER.rglob("*.html"))
    for file in files:
        url = canonical(f"{SITE}{file.relative_to(FOLDER)}")
        content = file.read_bytes() if file.exists() else b""
        page = parser.parse(answer(url, "text/html"), content)
        assert page.text == content.decode()
        assert page.title or not content
        links = resolver.resolve([(page.links.base, page.links.pages + page.links.requisites)]).locators()
        linked.update(at.url.decode() for at in links)
    paths = {unquote(urlsplit(url).path)[1:] for url in linked if url.startswith(SITE)}
    assert len(paths) > 500
    # Debian ships the change log elsewhere, under another name.
    assert {path for path in paths if not (FOLDER / path).exists()} <= {"whatsnew/changelog.html"}
    unlinked = {str(file.relative_to(FOLDER)) for file in files} - paths
    assert len(unlinked) < 20, unlinked
