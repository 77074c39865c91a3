"""Tables of a database that follow a crawl: each row once, whatever is killed, and whenever."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from crawl.runs import command, crawl, settings
from crawl.runs import fyke as run
from crawl.small_site import SmallSite, small_site
from export.test_databases import database as database
from fyke.core.errors import ConfigurationError
from fyke.export.databases import PlacedDatabase, TablePosition

TABLES = """
[[extract]]
table = "numbers"
match = "/p[0-9]+$"
fields.title = "title"
fields.links = { select = "a::attr(href)", type = "url", many = true }

[[extract]]
table = "nothing"
fields.number = "h6"
"""


@pytest.fixture(scope="module")
def site():
    with small_site(pages=60) as running:
        yield running


def asked(folder: Path, agents: int = 1) -> Path:
    path = settings(
        folder,
        store={"checkpoint_s": 0.1, "table_rows": 7},
        politeness={"host_delay_s": 0.1},
        crawl={"agents": agents},
    )
    path.write_text(path.read_text() + TABLES)
    return path


def following(into: Path, address: str) -> list[str]:
    return [sys.executable, "-m", "fyke", "extract", str(into), "--to", address, "--follow"]


def killed(arguments: list[str], after_s: float) -> None:
    """Run a command, and kill it after a time, with what it started."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with subprocess.Popen(arguments, **quiet) as process:
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def rows_of_crawl(into: Path) -> list[str]:
    files = [str(path) for path in (into / "tables").glob("numbers-*.parquet")]
    return sorted(map(repr, ds.dataset(files).to_table().to_pylist()))


@pytest.mark.parametrize("agents", [1, 2])
def test_each_row_is_there_once_whatever_is_killed(
    agents: int, database: tuple[str, Callable[[str], list[Any]]], site: SmallSite, tmp_path: Path
) -> None:
    address, ask = database
    into, config, chance = tmp_path / "there", asked(tmp_path, agents), Random(agents)
    crawling = command(into, config, site.url)
    killed(crawling, 3.0)
    for _ in range(3):
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        with subprocess.Popen(crawling, **quiet) as process:
            killed(following(into, address), 1.0 + 2 * chance.random())
            os.killpg(process.pid, signal.SIGKILL)
    assert crawl(into, config, site.url).status == 0
    for _ in range(2):  # the second finds nothing new
        done = subprocess.run(following(into, address), capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
    assert "numbers: 0 rows" in done.stdout
    found = sorted(map(repr, ask("select * from numbers")))
    assert found == rows_of_crawl(into) and len(found) >= 59
    assert ask("select * from nothing") == []


def test_what_breaks_off_leaves_rows_and_place_as_they_were(database: tuple[str, Callable[[str], list[Any]]]) -> None:
    address, ask = database
    schema = pa.schema([("url", pa.string()), ("title", pa.string())])
    rows = pa.record_batch([["http://a.example/"], ["new"]], schema=schema)
    for broken in (False, True, True):
        with suppress(ZeroDivisionError), PlacedDatabase(address) as opened:
            position = opened.position("numbers", schema, "numbers", "this-0")
            assert position == (TablePosition(0, 1) if broken else TablePosition(0, 0))
            opened.add("numbers", rows)
            opened.move("numbers", TablePosition(0, position.rows + 1))
            if broken:
                raise ZeroDivisionError
        assert len(ask("select * from numbers")) == 1
    with pytest.raises(ConfigurationError, match="belongs to another crawl"), PlacedDatabase(address) as opened:
        opened.position("numbers", schema, "numbers-1", "other-0")


def test_mistakes_are_one_line(site: SmallSite, tmp_path: Path) -> None:
    """A table of another crawl, one that was made in another way, and a crawl that was taken back, are not added to."""
    config, address = asked(tmp_path), f"duckdb:{tmp_path / 'made.duckdb'}"
    for name in ("first", "second"):
        assert crawl(tmp_path / name, config, site.url, "--pages", "9" if name == "first" else "20").status == 0
    assert run("extract", str(tmp_path / "first"), "--to", address).returncode == 0
    for arguments, words in [
        (("first", address), "exists"),
        (("first", "jsonl"), "--follow adds"),
        (("second", f"duckdb:{tmp_path / 'new.duckdb'}"), ""),
        (("first", f"duckdb:{tmp_path / 'new.duckdb'}"), "more rows of numbers than the crawl"),
    ]:
        done = run("extract", str(tmp_path / arguments[0]), "--to", arguments[1], "--follow")
        assert done.returncode == (2 if words else 0) and words in done.stderr, done.stderr
        assert done.stderr.count("\n") == bool(words)
    other = settings(tmp_path)
    other.write_text(other.read_text() + TABLES.replace("title", "h1"))
    assert crawl(tmp_path / "third", other, site.url, "--pages", "2").status == 0
    done = run("extract", str(tmp_path / "third"), "--to", f"duckdb:{tmp_path / 'new.duckdb'}", "--follow")
    assert done.returncode == 2 and "belongs to another crawl" in done.stderr and done.stderr.count("\n") == 1
    plain = settings(tmp_path)
    assert crawl(tmp_path / "plain", plain, site.url, "--pages", "2").status == 0
    done = run("extract", str(tmp_path / "plain"), "--to", address, "--follow")
    assert done.returncode == 2 and "extracts nothing" in done.stderr
