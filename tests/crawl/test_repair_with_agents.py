"""A crawl by several agents is damaged, and mended: each agent's files out of its own archive, then what they share."""

import random
import shutil
from pathlib import Path

import pytest

from crawl.runs import crawl, fyke, settings
from crawl.test_repair import HOWS, ROUNDED, damage, files, mended
from fyke.archive.reading import read_table
from fyke.archive.warc_reading import read_records
from fyke.lab.simweb import plain, running_web

STORE = {"table_rows": 16, "warc_bytes": 40_000, "checkpoint_s": 0.2}
pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agents")
    with running_web(plain(pages=150, hosts=12)) as web:
        run = crawl(folder / "crawl", settings(folder, web, store=STORE), *web.seeds, "--scope", "web", "--agents", "2")
    assert run.status == 0, run.errors
    return folder / "crawl"


def rows(folder: Path, name: str) -> list[tuple[object, ...]]:
    """The rows of a table that the archive holds, in the order of each agent."""
    table = read_table(folder, name)
    found = table.drop_columns(list(ROUNDED & set(table.column_names))).to_pylist()
    return [tuple(row.values()) for row in found if "warc_file" not in row or row["warc_file"]]


@pytest.mark.parametrize("seed", range(3))
def test_tables_of_each_agent_come_back_out_of_its_archive(finished: Path, tmp_path: Path, seed: int) -> None:
    folder, dice = tmp_path / "crawl", random.Random(seed)
    shutil.copytree(finished, folder)
    patterns = ("tables/pages-*.parquet", "tables/links-*.parquet", "warc/*.cdxj")
    damaged = dice.sample(files(folder, *patterns), 5)
    if seed:
        damaged.append(folder / "tables" / "turns")
    for path in damaged:
        damage(path, dice.choice([how for how in HOWS if how != "directory"]), 0.1 + 0.8 * dice.random())
    assert fyke("check", str(folder)).returncode == 1
    notes = mended(folder)
    assert not [note for note in notes if note.lost and "visits without an answer" not in note.what]
    for name in ("pages", "links"):
        assert rows(folder, name) == rows(finished, name)
    checked = fyke("check", str(folder))
    assert checked.returncode == 0, checked.stdout
    assert mended(folder) == []
    indexed = fyke("index", str(folder))
    assert indexed.returncode == 0, indexed.stderr


def test_a_record_of_one_agent_costs_its_page_alone(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    shutil.copytree(finished, folder)
    for path in files(folder, "tables/pages-1-*.parquet"):
        path.unlink()
    hit = files(folder, "warc/fyke-crawl-1-*.warc.gz")[0]
    answers = [record for record in read_records(hit) if record.get("warc-type") == "response"]
    pages = [record for record in answers if not record.get("warc-target-uri").endswith("/robots.txt")]
    record = pages[len(pages) // 2]
    damage(hit, "flip", (record.offset + record.length // 2) / hit.stat().st_size)
    notes = mended(folder)
    assert any(note.lost and note.place.startswith(f"warc/{hit.name}") for note in notes)
    before, after = rows(finished, "pages"), rows(folder, "pages")
    assert 0 < len(before) - len(after) < 3
    assert set(after) < set(before)
    assert fyke("index", str(folder)).returncode == 0
