"""Tables of what pages say are damaged, and mended: what was whole is there, what is not is told, the crawl goes on."""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import in_process
from crawl.runs import archived, begin, killed_at, settings
from crawl.small_site import SmallSite, small_site
from damaging import damage
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.reading import rows_recorded
from fyke.crawl.repair import Note, repair
from fyke.disk import manifest as manifests

WORD = "extract titles"
TABLE = '[[extract]]\ntable = "titles"\nfields.title = "title"\nfields.key = "title"\n'  # a key of its own kind
HOWS = ["flip", "flip", "cut", "empty", "directory", "gone"]


@pytest.fixture(scope="module")
def site() -> Iterator[SmallSite]:
    with small_site(pages=110) as site:
        yield site


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that was killed in the middle: with files of the table, and a journal."""
    folder = tmp_path_factory.mktemp("killed")
    config = settings(folder, store={"table_rows": 16, "checkpoint_s": 0.1}, politeness={"address_delay_s": 0.04})
    with config.open("a") as file:
        file.write(TABLE)
    for number in range(9):  # at the moment when it died all rows may have been in files
        into = folder / f"crawl-{number}"
        killed_at(begin(into, config, site.url), into, WORD, 50 + number)
        if [*into.glob("tables/titles-*.arrows")]:
            return into
    raise AssertionError("there is always a journal but at that moment")


def rows(folder: Path) -> Counter[str]:
    """The titles that the checkpoint counts."""
    state, found = saved_state(CrawlDirectory(folder).shard)[WORD], []
    for serial in range(state["sealed"]):
        found += pq.read_table(folder / f"tables/titles-{serial:05}.parquet")["title"].to_pylist()
    for serial, (_, count) in enumerate(state["segments"], state["sealed"]):
        titles: list[str] = []
        stream = pa.ipc.open_stream((folder / f"tables/titles-{serial:05}.arrows").read_bytes())
        while len(titles) < count:
            titles += stream.read_next_batch()["title"].to_pylist()
        found += titles[:count]
    return Counter(found)


def mended(folder: Path) -> list[Note]:
    return list(repair(CrawlDirectory(folder), lambda place, at, end: None))


def goes_on(folder: Path, site: SmallSite) -> None:
    done = in_process("crawl", "--into", str(folder))
    assert done.status == 0, done.errors
    assert set(archived(folder)) == site.all_urls()
    checked = in_process("check", str(folder))
    assert checked.status == 0, checked.out


@pytest.mark.parametrize("seed", range(5))
def test_what_is_whole_stays_and_the_crawl_goes_on(seed: int, killed: Path, site: SmallSite, tmp_path: Path) -> None:
    dice, folder = random.Random(seed), tmp_path / "crawl"
    shutil.copytree(killed, folder)
    files, journals = ([*folder.glob(f"tables/titles-*.{kind}")] for kind in ("parquet", "arrows"))
    assert files and journals
    for path in {dice.choice(journals), *dice.sample([*files, *journals], dice.randint(0, 2))}:
        damage(path, dice.choice(HOWS), dice.random())
    before = rows(killed)
    notes = mended(folder)
    after = rows(folder)
    assert after <= before
    told = [note.what for note in notes if note.lost]
    assert bool(told) == (after < before) and all(f"fyke extract {folder}" in what for what in told)
    assert mended(folder) == []
    assert rows(folder) == after
    goes_on(folder, site)
    assert in_process("extract", str(folder)).status == 0  # what was lost can be had again


def test_a_checkpoint_before_loses_no_file_made_since(killed: Path, site: SmallSite, tmp_path: Path) -> None:
    """Its journals may be gone: their rows are in files by now."""
    folder = tmp_path / "crawl"
    shutil.copytree(killed, folder)
    shard = CrawlDirectory(folder).shard
    newest, older = manifests.numbers(shard)[:2]
    damage(shard / manifests.Manifest(newest).name, "flip", 0.5)
    counted = rows_recorded(manifests.load(shard, older).participants, WORD)  # type: ignore[union-attr]
    assert not [note for note in mended(folder) if "titles" in note.place and note.lost]
    assert rows(folder).total() == counted
    goes_on(folder, site)
