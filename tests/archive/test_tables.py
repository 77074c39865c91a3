"""The tables: typed, readable by others, each row once over any crash."""

from pathlib import Path
from time import process_time

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive.conftest import link_rows
from fyke.archive.journal import read_journal
from fyke.archive.reading import read_table, scan_table, segments
from fyke.archive.schemas import SCHEMAS, journalled
from fyke.archive.summaries import HostRow, write_hosts
from fyke.archive.table_files import GROUP_BYTES, TableFiles, journal_path, parquet_writer, write_rows
from fyke.archive.tables import BYTES_IN_MEMORY, PIECE_BYTES, LinksTable, PagesTable, links_batch
from fyke.archive.warc import RecordPlace
from fyke.core.batches import LinkKind, binary_array
from fyke.core.errors import DirectoryError, NotACrawl, StateDamaged
from fyke.core.outcomes import Outcome
from fyke.core.pages import OWN_CODECS, Page


def test_a_page_row_says_what_happened(folder: Path, make_exchange) -> None:
    table = PagesTable(folder, 10)
    exchange = make_exchange("https://www.example.co.uk:8443/x?y")
    page = Page(
        exchange, "text/html", b"decoded", charset="utf-8", title="half a pair \ud83d", fingerprint=7, noindex=True
    )
    table.add(exchange, RecordPlace("warc/w", 10, 20, "sha1:X", "d"), page, links=3, redirect_to="http://to.example/")
    table.add(make_exchange("http://192.0.2.1/", outcome=Outcome.TIMED_OUT, detail="no answer"))
    table.close()
    one, two = read_table(folder, "pages").to_pylist()
    assert one["host"] == "www.example.co.uk" and one["domain"] == "example.co.uk" and one["kind"] == "page"
    assert one["title"] == "half a pair ?" and one["noindex"] and not one["duplicate"]
    assert (one["warc_file"], one["warc_offset"], one["warc_length"], one["digest"]) == ("warc/w", 10, 20, "sha1:X")
    assert one["body_bytes"] == 12 and one["content_bytes"] == 7 and one["links"] == 3
    assert str(one["fetched_at"]) == "2026-11-18 11:06:40.250000+00:00"
    assert two["host"] == two["domain"] == "192.0.2.1" and two["outcome"] == "timed_out"
    assert two["warc_file"] is two["warc_offset"] is two["redirect_to"] is None


def test_a_row_names_no_codec_that_only_we_know(folder: Path, make_exchange) -> None:
    table = PagesTable(folder, 10)
    exchange = make_exchange("http://www.example.org/")
    table.add(exchange, page=Page(exchange, "text/html", b"\x81", charset=f"{OWN_CODECS}windows-1252"))
    table.close()
    assert read_table(folder, "pages").to_pylist()[0]["charset"] == "windows-1252"


def test_duckdb_reads_files_and_scans(folder: Path, make_exchange) -> None:
    pages, links = PagesTable(folder, 3), LinksTable(folder, 1)
    for number in range(10):
        pages.add(make_exchange(f"http://www.example.org/{number}"))
        kind = LinkKind.REQUISITE if number % 2 else LinkKind.PAGE
        links.add(link_rows(number, *range(number), kind=kind))
    pages.close()
    links.close()
    count = duckdb.sql(f"select count(*), min(url), max(status) from '{folder}/tables/pages-*.parquet'").fetchall()
    assert count == [(10, "http://www.example.org/0", 200)]
    rows = duckdb.sql(
        f"select target_url, count(*) from '{folder}/tables/links-*.parquet' where kind = 0 group by 1 order by 1"
    ).fetchall()
    assert rows[0] == ("http://www.example.org/0", 4) and len(rows) == 8
    reader = scan_table(folder, "pages", ["url"], ds.field("url") == "http://www.example.org/3")
    with duckdb.connect() as connection:
        found = connection.from_arrow(reader).fetchall()
    assert found == [("http://www.example.org/3",)]


def test_columns_explain_themselves(folder: Path, make_exchange) -> None:
    table = PagesTable(folder, 1)
    table.add(make_exchange())
    table.close()
    schema = pq.read_schema(next((folder / "tables").glob("pages-*.parquet")))
    assert schema.equals(SCHEMAS["pages"])
    for known in SCHEMAS.values():
        assert all(field.metadata[b"description"].endswith(b".") for field in known)


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.sampled_from(["add", "add", "add", "state", "durable"]), max_size=30),
    lost=st.integers(0, 8),
    rows=st.integers(1, 5),
)
def test_restore_keeps_each_row_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], lost: int, rows: int
) -> None:
    folder = tmp_path_factory.mktemp("crawl")
    table = LinksTable(folder, 1)
    table._files._table_rows = rows  # fewer than a real file has
    state: dict[str, object] = {}
    added = kept = 0
    for step in steps:
        if step == "add":
            table.add(link_rows(added, added))
            table.flush()
            added += 1
        elif step == "state":
            state, kept = table.state(), added
            table.dirty_files()
        elif state:
            table.durable()
    for number in range(lost):
        table.add(link_rows(1000 + number, 1000 + number))
        table.flush()
    table.abandon()  # killed
    again = LinksTable(folder, 1)
    again._files._table_rows = rows
    again.restore(state)
    assert again.rows == kept
    assert read_table(folder, "links")["source"].to_pylist() == list(range(kept))
    for number in range(kept, added + 3):
        again.add(link_rows(number, number))
    again.close()
    assert read_table(folder, "links")["target"].to_pylist() == list(range(added + 3))
    assert sum(one.rows() or 0 for one in segments(folder, "links")) == added + 3
    again.state()
    again.durable()
    assert not list((folder / "tables").glob("*.arrows"))
    assert read_table(folder, "links").num_rows == added + 3


def test_rows_still_in_a_journal_are_read(folder: Path) -> None:
    table = LinksTable(folder, 10)
    table.add(link_rows(1, 5, 6))
    table.state()
    assert read_table(folder, "links", ["target"])["target"].to_pylist() == [5, 6]
    assert [segment.journal for segment in segments(folder, "links")] == [True]
    with (folder / "tables/links-00000.arrows").open("ab") as file:
        file.write(b"\xff\xff\xff\xff\x80torn")
    where = ds.field("target") == 6
    assert scan_table(folder, "links", ["source"], where).read_all()["source"].to_pylist() == [1]
    table.abandon()


def test_rows_handed_in_empty_change_nothing(folder: Path) -> None:
    table = LinksTable(folder, 10)
    table.add(link_rows(1))
    table.close()
    assert table.state() == {"sealed": 0, "sealed_rows": 0, "segments": [], "digests": []}
    assert read_table(folder, "links").num_rows == 0


def test_a_damaged_journal_stops_the_sealing(folder: Path) -> None:
    table = LinksTable(folder, 10)
    for number in range(3):
        table.add(link_rows(number, number))
        table.flush()
    state = table.state()
    table.abandon()
    path = folder / "tables/links-00000.arrows"
    data = bytearray(path.read_bytes())
    table = LinksTable(folder, 10)
    table.restore(state)
    data[-300] ^= 0xFF
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    path.write_bytes(data)
    with pytest.raises(StateDamaged, match="rows, but 3 were written"):
        table.close()
    table.abandon()
    with pytest.raises(StateDamaged, match="not those that were written"):
        LinksTable(folder, 10).restore(state)
    path.write_bytes(data[:100])
    with pytest.raises(StateDamaged, match="100 bytes long"):
        LinksTable(folder, 10).restore(state)


def test_hosts_are_a_whole_new_file(folder: Path) -> None:
    row = HostRow("www.example.org", "example.org", "192.0.2.1", "allowed", None, 3, 1, "", 1.5, None)
    assert write_hosts(folder, iter([row] * 5)) == 5
    assert write_hosts(folder, iter([row, row._replace(host="b.example", crawl_delay_s=2.5)])) == 2
    rows = read_table(folder, "hosts").to_pylist()
    assert [r["host"] for r in rows] == ["www.example.org", "b.example"]
    assert rows[1]["crawl_delay_s"] == 2.5 and rows[0]["crawl_delay_s"] is rows[0]["last_seen"] is None
    assert not list((folder / "tables").glob("*.part"))


def test_a_folder_without_tables_is_no_crawl(folder: Path) -> None:
    with pytest.raises(NotACrawl, match="holds no tables"):
        read_table(folder, "pages")


def test_what_fails_in_the_thread_fails_the_table(folder: Path) -> None:
    table = LinksTable(folder, 10)
    table.add(link_rows(1, 1))
    (folder / "tables/links-00000.parquet.part").mkdir(parents=True)
    with pytest.raises(DirectoryError, match=r"cannot write .*links-00000.parquet"):
        table.close()
    table.abandon()


def test_what_must_be_synced_is_named(folder: Path) -> None:
    files = TableFiles(folder, "links", SCHEMAS["links"], 2)
    assert files.dirty_files() == []
    table = LinksTable(folder, 10)
    table.add(link_rows(1, 1))
    table.state()
    assert {path.name for path in table.dirty_files()} == {"tables", "links-00000.arrows"}
    table.durable()
    assert table.dirty_files() == []
    table.close()
    table.state()
    assert {path.name for path in table.dirty_files()} == {"tables", "links-00000.parquet", "links-00000.parquet.xxh3"}


@pytest.mark.parametrize(("links", "length"), [(150_000, 10), (20_000, 2000), (600, 60_000)])
def test_of_very_many_links_a_portion_is_written_at_a_time(folder: Path, links: int, length: int) -> None:
    """However many a page has, and however long they are."""
    table, written = LinksTable(folder, 1_000_000), [0]
    path, none = journal_path(folder, "links", 0), np.zeros(links, np.uint64)
    table.add(links_batch(none, none, binary_array([f"{at:0{length}}".encode() for at in range(links)]), none))
    while True:
        written.append(path.stat().st_size)
        if not table.write():
            break
    assert max(np.diff(written)) < BYTES_IN_MEMORY + 2 * PIECE_BYTES
    assert table.rows == links and sum(rows.nbytes for rows in table._waiting) < BYTES_IN_MEMORY
    table.flush()
    urls = [
        url for batch in read_journal(path, journalled(SCHEMAS["links"])) for url in batch["target_url"].to_pylist()
    ]
    assert urls == [f"{at:0{length}}" for at in range(links)]
    table.abandon()


def test_what_memory_holds_of_long_rows_is_bounded_in_bytes(folder: Path) -> None:
    """In the table that is written, and in the groups of its file."""
    table = LinksTable(folder, 10_000)
    kinds = np.zeros(500, np.uint64)
    for number in range(40):
        urls = binary_array([b"http://h/%s/%d" % (b"x" * 2000, at) for at in range(500)])
        table.add(links_batch(kinds, kinds, urls, kinds))
        assert table.rows == 500 * (number + 1)
        assert sum(rows.nbytes for rows in table._waiting) < BYTES_IN_MEMORY
    table.close()
    file = pq.ParquetFile(next((folder / "tables").glob("links-*.parquet")))
    groups = [file.metadata.row_group(group) for group in range(file.num_row_groups)]
    assert sum(group.num_rows for group in groups) == 20_000
    assert len(groups) > 1 and max(group.num_rows * 2000 for group in groups) < GROUP_BYTES + 2 * BYTES_IN_MEMORY


def test_many_small_batches_are_written_in_linear_time(tmp_path: Path) -> None:
    """As a repair has them that makes a table anew of the archive: one of each page."""
    schema = pa.schema([(f"column{number}", pa.int64()) for number in range(12)])
    one = pa.RecordBatch.from_arrays([pa.array([1])] * 12, schema=schema)

    def seconds(batches: int) -> float:
        with parquet_writer(tmp_path / "table", schema) as writer:
            begun = process_time()
            assert write_rows(writer, [one] * batches, schema) == batches
            return process_time() - begun

    seconds(10)
    small = min(seconds(500) for _ in range(3))
    assert seconds(8_000) < 16 * 3 * small + 0.2
