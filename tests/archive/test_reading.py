"""Tables are read as they were written, or the file that cannot be is named: whatever was done to it."""

import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
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


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["pages", "links"]),
    st.integers(0, 4),
    st.sampled_from(["directory", "flip", "cut", "empty", "gone"]),
    st.floats(0, 0.999),
)
@example("pages", 1, "gone", 0.0)
@example("links", 0, "gone", 0.0)
def test_other_rows_are_never_read(whole: Path, tmp_path: Path, name: str, serial: int, how: str, share: float) -> None:
    folder = tmp_path / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole / "tables", folder / "tables")
    sound = read_table(whole, name)
    path = segments(folder, name)[serial].path
    assert read_table(folder, name) == sound
    if path.suffix == ".arrows":
        return  # its end is what the checkpoint says
    damage(path, how, share)
    with pytest.raises(StateDamaged) as told:
        read_table(folder, name)
    assert str(path) in str(told.value) and f"fyke check --repair {folder}" in str(told.value)
    assert how != "gone" or "it is gone" in str(told.value)
    others = [one for one in segments(folder, name) if one.path != path]
    rows = pa.Table.from_batches([batch for one in others for batch in one.batches(sound.schema.names)])
    assert rows.num_rows == sound.num_rows - (ROWS if name == "pages" else 20)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["pages", "links"]), st.floats(0, 0.999), st.integers(1, 255))
def test_a_damaged_journal_has_rows_that_can_be_read_or_says_so(
    whole: Path, tmp_path: Path, name: str, share: float, change: int
) -> None:
    """Arrow believes what stands in it: an offset that is another ended the process that read the rows."""
    folder = tmp_path / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole / "tables", folder / "tables")
    path = next(segment.path for segment in segments(folder, name) if segment.journal)
    data = path.read_bytes()
    at = int(share * len(data))
    path.write_bytes(data[:at] + bytes([data[at] ^ change]) + data[at + 1 :])
    with suppress(StateDamaged):
        read_table(folder, name).to_pylist()
