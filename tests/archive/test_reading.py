"""Tables are read as they were written, or the file that cannot be is named: whatever was done to it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archive.conftest import link_rows
from damaging import damage
from fyke.archive.reading import read_table, segments
from fyke.archive.tables import LinksTable, PagesTable
from fyke.archive.warc import WarcWriter
from fyke.core.errors import StateDamaged

ROWS = 12  # of a file


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, make_exchange) -> Path:
    """Four files of pages, five of links, and a journal of each that was not closed."""
    folder = tmp_path_factory.mktemp("read") / "crawl"
    warc, pages, links = WarcWriter(folder, 1 << 20, "test"), PagesTable(folder, ROWS), LinksTable(folder, 1)
    for number in range(4 * ROWS + 5):
        exchange = make_exchange(f"http://www.example.org/{number}", b"%d" % number * 30)
        pages.add(exchange, warc.write(exchange))
        pages.flush()
        links.add(link_rows(number, 0, 1))
        links.flush()
    for table in (pages, links):
        table.state()
        table._files._settle(wait=True)
        table.state()
        table.durable()
        table.abandon()
    warc.close()
    return folder


@pytest.fixture(scope="module")
def copy(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its tables again; each example damages one file of it and brings that back."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(whole / "tables", folder / "tables")
    return folder


@pytest.fixture(scope="module")
def sound(whole: Path) -> dict[str, pa.Table]:
    return {name: read_table(whole, name) for name in ("pages", "links")}


@contextmanager
def damaged(path: Path, whole: Path) -> Iterator[None]:
    """Whatever is done to a file, it is as it was when the block has ended."""
    try:
        yield
    finally:
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        shutil.copy2(whole / "tables" / path.name, path)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["pages", "links"]),
    st.integers(0, 4),
    st.sampled_from(["directory", "flip", "cut", "empty", "gone"]),
    st.floats(0, 0.999),
)
@example("pages", 1, "gone", 0.0)
@example("links", 0, "gone", 0.0)
def test_other_rows_are_never_read(
    whole: Path, copy: Path, sound: dict[str, pa.Table], name: str, serial: int, how: str, share: float
) -> None:
    assert read_table(copy, name) == sound[name]
    path = segments(copy, name)[serial].path
    if path.suffix == ".arrows":
        return  # its end is what the checkpoint says
    with damaged(path, whole):
        damage(path, how, share)
        with pytest.raises(StateDamaged) as told:
            read_table(copy, name)
        assert str(path) in str(told.value) and f"fyke check --repair {copy}" in str(told.value)
        assert how != "gone" or "it is gone" in str(told.value)
        others = [one for one in segments(copy, name) if one.path != path]
        rows = sum(batch.num_rows for one in others for batch in one.batches(sound[name].column_names))
        assert rows == sound[name].num_rows - (ROWS if name == "pages" else 20)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["pages", "links"]), st.floats(0, 0.999), st.integers(1, 255))
def test_a_damaged_journal_has_rows_that_can_be_read_or_says_so(
    whole: Path, copy: Path, sound: dict[str, pa.Table], name: str, share: float, change: int
) -> None:
    """Arrow believes what stands in it: an offset that is another ended the process that read the rows."""
    journal = next(segment for segment in segments(copy, name) if segment.journal)
    data = journal.path.read_bytes()
    at = int(share * len(data))
    with damaged(journal.path, whole), suppress(StateDamaged):
        journal.path.write_bytes(data[:at] + bytes([data[at] ^ change]) + data[at + 1 :])
        for batch in journal.batches(sound[name].column_names):
            batch.to_pylist()
