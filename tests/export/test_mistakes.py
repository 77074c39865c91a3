"""Whatever a person does wrong: one line, the right exit status, nothing damaged."""

import gc
import os
from pathlib import Path

import pytest

from commands import in_process, told
from disks import grow, small_disk
from export.crawls import contents, exported
from search.archives import Answer, Archive

USAGE, DIRECTORY, FULL = 2, 3, 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["DIR"]),
        (["@"], ["--to"]),
        (["@", "--to", "docx"], ["docx", "parquet, jsonl"]),
        (["@", "--to", "jsonl", "--out", "!/x.parquet"], ["x.parquet", ".jsonl.gz"]),
        (["@", "--to", "markdown", "--out", "!/x.csv"], ["x.csv", "folder"]),
        (["@", "--to", "csv", "--out", "!/none/x.csv"], ["none", "make it"]),
        (["@", "--to", "parquet", "--out", "@/tables/mine"], ["tables", "belongs to the crawl"]),
        (["@", "--to", "wacz", "--out", "@/warc/x.wacz"], ["warc", "belongs to the crawl"]),
        (["@", "--to", "csv", "--out", "!/mine.csv"], ["mine.csv", "already"]),
        (["@", "--to", "markdown", "--out", "."], [". exists already", "choose another place"]),
        (["@", "--to", "parquet", "--out", "/"], ["/ exists already"]),
        (["@", "--to", "links", "--out", ".."], [".. exists already"]),
        (["@", "--to", "links", "--out", ""], ["--out': it is empty"]),
        (["@", "--to", "csv", "--out", "!/x.csv", "--since", ""], ["--since", "2026-01-31"]),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    words: list[str],
    crawl_of_the_web: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.csv").write_text("mine")
    before = sorted(crawl_of_the_web.rglob("*"))
    given = [word.replace("@", str(crawl_of_the_web)).replace("!", str(tmp_path)) for word in arguments]
    told(USAGE, ["export", *given], words)
    assert sorted(crawl_of_the_web.rglob("*")) == before
    assert contents(tmp_path) == {"mine.csv": b"mine"}


def test_what_is_no_crawl(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        told(DIRECTORY, ["export", str(place), "--to", "csv"], [str(place), "holds no crawl"])
    assert not list(tmp_path.iterdir())


def eight_pages(folder: Path, words: int) -> str:
    """A crawl of pages of so many words that nothing packs."""
    made = Archive(folder)
    for number in range(8):
        text = "".join(os.urandom(8).hex() + " " for _ in range(words))
        made.visit(f"http://a.example/{number}", Answer(f"<title>{number}</title><main><p>{text}</p></main>"))
    made.close()
    return str(folder)


@pytest.mark.parametrize("name", ["pages.jsonl", "pages"])
def test_a_full_disk(name: str, tmp_path: Path) -> None:
    """It stops with one line, and goes on when there is room."""
    made = eight_pages(tmp_path / "crawl", 20_000)
    to = {"pages.jsonl": "jsonl", "pages": "parquet"}[name]
    with small_disk(tmp_path / "disk", "1m") as disk:
        told(FULL, ["export", made, "--to", to, "--out", str(disk / name)], ["free some"])
        assert not (disk / name).exists()
        grow(disk)
        exported(Path(made), to, disk / name)
        assert contents(disk / name) == contents(exported(Path(made), to, tmp_path / name))


@pytest.mark.parametrize(
    ("room", "to"),
    [
        ("300k", ["--to", "duckdb:!/texts.duckdb"]),
        ("64k", ["--out", "!/texts"]),
        ("64k", ["--out", "!/texts", "--to", "jsonl"]),
    ],
)
def test_a_full_disk_of_what_is_extracted(
    room: str, to: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """What is not whole is not there, and holds no room; the same command makes it once there is some."""
    made = eight_pages(tmp_path / "crawl", 3_000)
    (tmp_path / "fields.toml").write_text('[[extract]]\ntable = "texts"\nfields.text = { select = "p", many = true }\n')
    request.addfinalizer(gc.enable)
    gc.disable()  # else it might close what nobody did
    with small_disk(tmp_path / "disk", room) as disk:
        extract = ["extract", made, "--config", str(tmp_path / "fields.toml")]
        extract += [word.replace("!", str(disk)) for word in to]
        told(FULL, extract, ["texts", "free some"])
        names = [place.readlink() for place in Path("/proc/self/fd").iterdir() if place.is_symlink()]
        assert not [name for name in names if name.is_relative_to(disk)]
        grow(disk)
        assert in_process(*extract).status == 0


def test_a_full_disk_of_a_new_database(tmp_path: Path) -> None:
    """Nothing is left that the same command would take for a damaged database."""
    made = eight_pages(tmp_path / "crawl", 10)
    (tmp_path / "fields.toml").write_text('[[extract]]\ntable = "texts"\nfields.text = "p"\n')
    with small_disk(tmp_path / "disk", "4k") as disk:
        extract = ["extract", made, "--config", str(tmp_path / "fields.toml"), "--to", f"duckdb:{disk / 'new.duckdb'}"]
        told(FULL, extract, ["free some"])
        grow(disk)
        assert in_process(*extract).status == 0
