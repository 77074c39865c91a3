"""A link that leads to itself, in a crawl's folder or as it is given: an answer or one line, never a trace."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import in_process
from serve.kit import client

FIELDS = '[[extract]]\ntable = "heads"\nfields.head = "h1"\n'
LATER = ("export", "extracted", "seeds.txt", "report.html", "rewrite.toml", "damaged")  # what commands make
COMMANDS = [
    "status @", "why @ http://127.0.0.1/", "check @", "links @ --broken", "report @", "search @ page",
    "index @", "rewrite @", "extract @ --config !/fields.toml", "copy @ !/copy", "move @ !/moved",
    "block @ a.example", "check @ --repair", "crawl --into @ --wait 0", "export @ --to jsonl",
    *(f"export @ --to {form} --out !/{name}" for form, name in (("jsonl", "x.jsonl"), ("wacz", "x.wacz"))),
]  # fmt: skip
GIVEN = [
    "copy @ #", "move @ #", "export @ --to jsonl --out #/x.jsonl", "export @ --to markdown --out #", "report @ --out #",
    "search @ page --also #", "serve #", "crawl --seeds # --into !/new", "crawl http://127.0.0.1:9/ --into #",
]  # fmt: skip


def circle(path: Path) -> None:
    """A link to itself in place of what is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def damaged_in(whole: Path, tmp_path: Path) -> Iterator[Path]:
    """Copies of the crawl, each with one thing in it, or the folder itself, in a circle."""
    names = ["", *(str(path.relative_to(whole)) for path in whole.rglob("*")), *LATER]
    assert {"warc", "tables", "state", "logs", "index", "fyke.toml"} < {*names}
    for number, name in enumerate(names):
        if name.count("/") < 2 and not name.startswith("index/"):
            there = tmp_path / str(number) / "crawl"
            shutil.copytree(whole, there, symlinks=True)
            circle(there / name)
            yield there


def told(line: str, there: Path) -> None:
    """Run the command: it has an answer, or one line says why not."""
    words = {"@": there, "#": there.parent / "circle", "!": there.parent}
    given = [
        next((word.replace(mark, str(path)) for mark, path in words.items() if mark in word), word)
        for word in line.split()
    ]
    said = in_process(*given)
    assert "Traceback" not in said.errors and said.status in range(7), (given, said)
    assert said.out or said.errors, (given, said)
    if said.status > 1:
        (complaint,) = said.errors.splitlines()
        assert complaint.startswith("fyke: "), (given, said)


@pytest.mark.parametrize("line", COMMANDS)
def test_in_the_folder(line: str, whole: Path, tmp_path: Path) -> None:
    for there in damaged_in(whole, tmp_path):
        (there.parent / "fields.toml").write_text(FIELDS)
        told(line, there)


@pytest.mark.parametrize("line", GIVEN)
def test_as_it_is_given(line: str, whole: Path, tmp_path: Path) -> None:
    there = Path(shutil.copytree(whole, tmp_path / "crawl"))
    circle(tmp_path / "circle")
    told(line, there)


def test_served(whole: Path, tmp_path: Path) -> None:
    """Pages that need nothing of it are shown."""
    for there in damaged_in(whole, tmp_path):
        if there.is_dir():
            with client(there) as asking:
                assert asking.get("/search?q=page").status_code in (200, 404), there
