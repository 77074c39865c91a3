"""An archive that others wrote with care, and one that was written to do harm."""

from pathlib import Path

import pytest

from search.archives import archive, html, indexed
from serve.hostile import hostile_visits


@pytest.fixture(scope="session")
def plums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty pages on three sites, in English and German, indexed."""
    visits = []
    for number in range(30):
        links = {"http://fruit.example/0": "the first plum", "http://other.example/0": "another"} if number else {}
        text = f"Plums are a fruit with a stone, and this is page number {number} about them. " * 6
        visits.append((f"http://fruit.example/{number}", html(f"Plum {number}", text, links)))
        visits.append((f"http://other.example/{number}", html(f"Stone {number}", f"Stones and a plum, {number}. " * 9)))
    german = "Die Pflaume ist eine Frucht mit einem Stein, und hier steht einiges über sie geschrieben. " * 6
    visits.append(("http://obst.example/", html("Pflaumen", f"{german} plum")))
    made = archive(tmp_path_factory.mktemp("plums") / "fruit", visits)
    indexed(made)
    return made


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages that try to run in our origin, to call out, to break a page or to mislead."""
    made = archive(tmp_path_factory.mktemp("hostile") / "hostile", hostile_visits())
    indexed(made)
    return made
