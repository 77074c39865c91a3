"""The check finds nothing in a whole archive, and any bit that was flipped."""

import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archive.conftest import link_rows
from fyke.archive import reading
from fyke.archive.check import FETCH, check_archive, repeated_fetches
from fyke.archive.checksum import checksum_holds, checksum_path, write_checksum
from fyke.archive.tables import LinksTable, PagesTable
from fyke.archive.warc import RecordPlace, WarcWriter
from fyke.archive.warc_reading import read_records
from fyke.core.document import Document
from fyke.core.urls import key_of
from fyke.disk.ranges import Buckets


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, make_exchange) -> Path:
    """A finished crawl of 40 pages in several files, of the archive and of each table."""
    folder = tmp_path_factory.mktemp("whole") / "crawl"
    warc, pages, links = WarcWriter(folder, 20_000, "test"), PagesTable(folder, 10), LinksTable(folder, 10)
    dice = random.Random(2)
    for number in range(40):
        exchange = make_exchange(f"http://www.example.org/{number}", dice.randbytes(dice.randint(0, 1500)) * 2)
        pages.add(exchange, warc.write(exchange))
        links.add(link_rows(number, *range(number)))
        if number % 10 == 9:
            pages.state()
            pages.durable()
    for _ in range(2):
        warc.write(make_exchange("http://www.example.org/robots.txt", b"User-agent: *"))
    warc.write(make_exchange("http://www.example.org/1", b"busy", head=b"HTTP/1.1 503 Busy\r\n\r\n", status=503))
    for writer in (warc, pages, links):
        writer.close()
        writer.state()
        writer.durable()
    return folder


def test_a_whole_archive_has_no_faults(archive: Path) -> None:
    told: list[tuple[str, int, int]] = []
    assert list(check_archive(archive, progress=lambda *at: told.append(at))) == []
    last = {name: (at, end) for name, at, end in told}
    assert len(last) > 1 and all(at == end == (archive / name).stat().st_size for name, (at, end) in last.items())


def test_each_table_file_is_read_for_those_archive_files_alone_that_it_names(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crawl has thousands of both."""
    read: list[tuple[Path, bool]] = []
    true = reading.read_file

    def counted(path: Path, columns: Sequence[str], *given: Any) -> Iterator[Any]:
        read.append((path, "url" in columns))
        return true(path, columns, *given)

    monkeypatch.setattr(reading, "read_file", counted)
    assert list(check_archive(archive)) == []
    files = len(list((archive / "warc").glob("*.warc.gz")))
    tables = sorted((archive / "tables").glob("pages-*.parquet"))
    assert files > 2 and len(tables) > 2
    assert sorted(path for path, rows in read if not rows) == tables
    assert sum(rows for _, rows in read) < files + len(tables)


def test_any_flipped_bit_is_found(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(archive, folder)
    dice = random.Random(3)
    files = [*(folder / "warc").glob("*.gz"), *(folder / "tables").glob("*.parquet"), *(folder / "warc").glob("*.cdxj")]
    for _ in range(40):
        path = dice.choice(files)
        data = path.read_bytes()
        at = dice.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
        if path.suffix == ".cdxj":
            continue
        name = f"{path.parent.name}/{path.name}"
        assert any(name in fault.place for fault in check_archive(folder)), f"{name} at {at}"
        path.write_bytes(data)


def test_flipped_bits_are_found_without_a_checksum_too(archive: Path) -> None:
    """Of a file still being written only gzip, framing and digests tell; all but padding bits are covered."""
    dice = random.Random(4)
    path = min((archive / "warc").glob("*.gz"))
    data, copy = path.read_bytes(), path.with_name("copy")
    whole = [(r.offset, r.length, r.fields) for r in read_records(path)]
    for _ in range(300):
        at = dice.randrange(len(data))
        copy.write_bytes(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
        records = list(read_records(copy))
        hit = next(offset for offset, length, _ in reversed(whole) if offset <= at)
        assert any(r.faults for r in records) or [(r.offset, r.length, r.fields) for r in records] == whole
        assert all(r.offset == hit for r in records if r.faults)
    copy.unlink()


def faults_of(archive: Path, tmp_path: Path, name: str, change) -> list[tuple[str, str]]:
    folder = tmp_path / "copy"
    shutil.copytree(archive, folder)
    path = next(iter(sorted(folder.glob(name))))
    change(path)
    return list(check_archive(folder))


def test_an_index_that_differs_is_found(archive: Path, tmp_path: Path) -> None:
    def drop_a_line(path: Path) -> None:
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))

    other, fault = faults_of(archive, tmp_path, "warc/*.cdxj", drop_a_line)
    assert "00000.cdxj" in other.place and "its checksum" in other.what
    assert "00000.warc.gz:" in fault.place and "no line" in fault.what


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b'"digest": "sha1:', b'"digest": "sha1:A', "no such record"),
        (b"org,example", b"org,examplf", "no such record"),
        (b'"url": "', b'"url: "', "cannot be read"),
    ],
)
def test_a_line_that_differs_is_found(archive: Path, tmp_path: Path, old: bytes, new: bytes, what: str) -> None:
    faults = faults_of(
        archive, tmp_path, "warc/*.cdxj", lambda path: path.write_bytes(path.read_bytes().replace(old, new, 1))
    )
    assert any("00000.cdxj, line 1" in fault.place and what in fault.what for fault in faults)


def test_missing_files_are_found(archive: Path, tmp_path: Path) -> None:
    faults = faults_of(archive, tmp_path, "warc/*.cdxj", Path.unlink)
    assert [fault.what for fault in faults] == ["the index is missing"]
    shutil.rmtree(tmp_path / "copy")
    faults = faults_of(archive, tmp_path, "warc/*.warc.gz", Path.unlink)
    assert any("which is missing" in fault.what for fault in faults)


def test_a_row_that_points_elsewhere_is_found(folder: Path, make_exchange) -> None:
    warc, pages = WarcWriter(folder, 1 << 30, "test"), PagesTable(folder, 15)
    place = warc.write(make_exchange("http://www.example.org/1"))
    pages.add(make_exchange("http://www.example.org/2"), place)
    pages.add(make_exchange("http://www.example.org/1"), place._replace(offset=3))
    pages.add(make_exchange("http://www.example.org/1"), RecordPlace("warc/none", 1, 2, "", ""))
    pages.add(make_exchange("http://www.example.org/1"), place)
    warc.close()
    pages.close()
    whats = [fault.what for fault in check_archive(folder)]
    assert len(whats) == 3
    assert "says that http://www.example.org/2 is here" in whats[0]
    assert "warc/none, which is missing" in whats[2]


def test_a_page_archived_twice_is_found(folder: Path, make_exchange) -> None:
    warc = WarcWriter(folder, 1, "test")
    warc.write(make_exchange("http://www.example.org/1"))
    again = warc.write(make_exchange("http://www.example.org/1", b"other"))
    warc.close()
    (fault,) = check_archive(folder)
    assert fault.place == f"{again.file}:{again.offset}" and "archived before" in fault.what
    assert list(check_archive(folder, once=False)) == []


def test_what_a_robots_txt_redirects_to_may_be_archived_again(folder: Path, make_exchange) -> None:
    """It has no row among the pages, and is fetched whenever rules are; a page has one, and is archived once."""
    warc, pages = WarcWriter(folder, 1, "test"), PagesTable(folder, 15)
    for url in ("http://www.example.org/rules-of-another", "http://www.example.org/page"):
        for body in (b"User-agent: *", b"User-agent: *\nDisallow:"):
            place = warc.write(make_exchange(url, body))
            if url.endswith("page"):
                pages.add(make_exchange(url, body), place)
    warc.close()
    pages.close()
    (fault,) = check_archive(folder)
    assert fault.place == f"{place.file}:{place.offset}" and "archived before" in fault.what


def test_a_crawl_that_runs_is_checked_to_its_lengths(folder: Path, make_exchange) -> None:
    warc, pages = WarcWriter(folder, 1 << 30, "test"), PagesTable(folder, 15)
    warc.write(make_exchange("http://www.example.org/1"))
    state = warc.state()
    big = make_exchange("http://www.example.org/2", Document(random.Random(1).randbytes(600_000)))
    pages.add(big, warc.write(big))
    warc._file.flush()  # type: ignore[union-attr]
    pages.flush()  # as many rows do, or a checkpoint that never came about
    lengths = {state["file"]: state["length"]}
    assert list(check_archive(folder, lengths)) == []
    fault = next(check_archive(folder, {state["file"]: 10**7}))
    assert "should be 10000000" in fault.what
    for writer in (warc, pages):
        writer.close()


def test_repeats_are_found_in_any_memory(tmp_path: Path) -> None:
    fetched = Buckets(tmp_path, "fetched", FETCH, 64, waiting_rows=7)
    for number in range(100):
        row = np.array([(key_of(b"%d" % (number % 90)), 0, number)], FETCH)
        fetched.add(row["key"], row)
    found = [(first["offset"], again["offset"]) for rows in fetched for first, again in repeated_fetches(rows)]
    assert sorted(found) == [(n, 90 + n) for n in range(10)]


def test_a_checksum_is_read_by_others(tmp_path: Path) -> None:
    """The line has the form of BSD's tools, which xxhsum reads since 0.8.0."""
    path = tmp_path / "a (1) b.parquet"
    path.write_bytes(b"abc")
    write_checksum(path, path)
    line = "XXH3 (a (1) b.parquet) = 78af5f94892f3950\n"
    assert checksum_path(path).read_text() == line and checksum_holds(path)
    if xxhsum := shutil.which("xxhsum"):
        subprocess.run([xxhsum, "--check", checksum_path(path).name], check=True, capture_output=True, cwd=tmp_path)
    path.write_bytes(b"abd")
    assert checksum_holds(path) is False
