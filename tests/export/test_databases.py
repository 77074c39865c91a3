"""Extracted tables in a database: the rows that a file would have, all of them or those of before."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import adbc_driver_duckdb.dbapi
import adbc_driver_postgresql.dbapi
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawl.runs import crawl, settings
from crawl.runs import fyke as command
from crawl.small_site import small_site
from fyke.core.errors import ConfigurationError
from fyke.export.databases import Database

TABLES = """
[[extract]]
table = "numbers"
match = "/p[0-9]+$"
fields.number = {{ select = "title", type = "integer" }}
fields.half = {{ select = "json:number", type = "number" }}
fields.links = {{ select = "a::attr(href)", type = "url", many = true }}
fields.first = "{first}"

[[extract]]
table = "nothing"
fields.number = "h6"
"""
ODD = b"""<title>7</title><script type="application/ld+json">{"number": "0.5", "said": "a\\u0000b"}</script>"""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    with small_site(pages=20) as site:
        site.answers["/p19"] = 200, {"Content-Type": "text/html"}, ODD
        assert crawl(folder / "there", settings(folder), site.url).status == 0
    return folder / "there"


def selectors(folder: Path, first: str = "a") -> Path:
    path = folder / "fields.toml"
    path.write_text(TABLES.format(first=first))
    return path


@contextmanager
def _postgres() -> Iterator[str]:
    """A server of our own, at a socket in a folder of its own; it refuses to be run by root."""
    initdb = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
    if initdb is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    home = Path(tempfile.mkdtemp(prefix="fyke-pg-"))
    user: dict[str, Any] = {}
    if home.owner() == "root":
        shutil.chown(home, "nobody")
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    binaries = Path(initdb).resolve().parent
    common: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": home, **user}
    subprocess.run(
        [initdb, "-D", home / "data", "-A", "trust", "-U", "fyke", "--no-sync", "-E", "UTF8", "--locale=C"], **common
    )
    options = f"-k {home} -c listen_addresses='' -c fsync=off"
    control = [binaries / "pg_ctl", "-D", home / "data", "-w", "-l", home / "log"]
    subprocess.run([*control, "-o", options, "start"], **common)
    try:
        yield f"postgresql:///postgres?host={home}&user=fyke"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **common)
        shutil.rmtree(home)


@pytest.fixture(params=["duckdb", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Callable[[str], list[Any]]]]:
    """An address, and what asks there."""
    if request.param == "duckdb":
        address = f"duckdb:{tmp_path / 'made.duckdb'}"
        yield address, partial(_asked, adbc_driver_duckdb.dbapi, address.removeprefix("duckdb:"))
        return
    with _postgres() as served:
        yield served, partial(_asked, adbc_driver_postgresql.dbapi, served)


def _asked(driver: Any, address: str, question: str) -> list[Any]:
    with driver.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(question)
        return list(cursor.fetch_arrow_table().to_pylist())


def test_the_rows_are_those_of_a_file(database, crawled: Path, tmp_path: Path) -> None:
    """And again with another selector; where that fails, those of before stay, and nothing tells the address."""
    address, ask = database
    for first in ("a", "a:last-of-type"):
        config = selectors(tmp_path, first)
        done = command("extract", str(crawled), "--config", str(config), "--out", str(tmp_path / "files"))
        assert done.returncode == 0, done.stderr
        expected = sorted(map(repr, pq.read_table(tmp_path / "files" / "numbers.parquet").to_pylist()))
        done = command("extract", str(crawled), "--config", str(config), "--to", address)
        assert done.returncode == 0, done.stderr
        kind = address.partition(":")[0]
        assert done.stdout == f"{kind} table numbers: 19 rows\n{kind} table nothing: 0 rows\n"
        assert sorted(map(repr, ask("select * from numbers"))) == expected
        assert ask("select * from nothing") == [] and any(row["first"] for row in ask("select * from numbers"))
    (tmp_path / "fields.toml").write_text(TABLES.format(first="json:said"))
    done = command("extract", str(crawled), "--config", str(config), "--to", address)
    assert done.returncode == 0, done.stderr  # a NUL is no character that a database takes
    said = "select first from numbers where first is not null"
    assert ask(said) == [{"first": "ab"}]
    schema = pa.schema([("url", pa.string()), ("first", pa.string())])
    with pytest.raises(ZeroDivisionError), Database(address) as opened:
        opened.table("numbers", schema)[1].write([("http://a.example/", "new")])
        raise ZeroDivisionError
    assert ask(said) == [{"first": "ab"}]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("mysql://x", "write parquet, jsonl, postgresql://HOST/NAME or duckdb:FILE"),
        ("postgresql://me:a-secret@127.0.0.1:1/x", "postgresql refused"),
        ("duckdb:/nowhere/at/all.duckdb", "duckdb refused"),
    ],
)
def test_mistakes_are_one_line(address: str, words: str, crawled: Path, tmp_path: Path) -> None:
    done = command("extract", str(crawled), "--config", str(selectors(tmp_path)), "--to", address)
    assert done.returncode == 2 and not done.stdout and "a-secret" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert words in line


def test_a_file_that_another_process_makes_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds no file, and then one that is in use, is refused, and takes nothing from who made it."""
    made, connect = tmp_path / "made.duckdb", adbc_driver_duckdb.dbapi.connect
    script = (
        "import sys; from fyke.export.databases import Database\n"
        "with Database('duckdb:' + sys.argv[1]) as opened:\n"
        "    opened._cursor.execute('create table kept as select 7 as number')\n"
        "    print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(made)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None and other.stdout is not None

        def late(path: str) -> Any:
            assert other.stdout is not None and other.stdout.readline()
            return connect(path)

        monkeypatch.setattr(made.__class__, "exists", lambda _: False)
        monkeypatch.setattr(adbc_driver_duckdb.dbapi, "connect", late)
        with pytest.raises(ConfigurationError, match="refused"), Database(f"duckdb:{made}"):
            pass
        monkeypatch.undo()
        other.communicate(b"\n")
    assert _asked(adbc_driver_duckdb.dbapi, str(made), "select * from kept") == [{"number": 7}]
