"""An index on a disk that errs: check names the file, and a search is an answer or one line."""

import shutil
from pathlib import Path
from random import Random

import pytest

from commands import in_process
from damaging import damage
from fyke.archive.check import Fault
from fyke.core.errors import StateDamaged
from fyke.search import damage as looking
from fyke.search import live_index
from fyke.search.damage import index_faults
from fyke.search.folder import IndexFolder
from fyke.search.searcher import Searcher
from search.archives import Archive, archive, html, indexed
from search.webs import WORDS

# What nobody decides anything by: the engine counts on from the last number, whatever it is.
NO_MATTER = b'"opstamp": '
# Files that have no digest: that they are gone is seen, and not which byte is another.
WITHOUT_DIGEST = {"lots", "near", "merge", "ranks", "lines", "lock", ".tantivy-meta", ".tantivy-writer"}


def pages(begin: int, end: int) -> list[tuple[str, object]]:
    dice = Random(begin)
    links = {"http://a.example/1": "words"}
    text = [" ".join(dice.choices(WORDS, k=50)) for _ in range(begin, end)]
    return [(f"http://a.example/{at}", html(f"Plum {at}", text[at - begin], links)) for at in range(begin, end)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that was written twice, so that there are deletes too."""
    folder = tmp_path_factory.mktemp("damage") / "crawl"
    made = Archive(folder)
    for round_ in range(2):
        for url, answer in pages(round_ * 15, 30):
            made.visit(url, answer)
        made.flush()
        indexed(folder)
    made.close()
    return folder


def files(folder: Path, *, with_digest: bool) -> list[Path]:
    found = []
    for path in sorted((folder / "index").rglob("*")):
        kind = path.relative_to(folder / "index").parts[0]
        kind = path.stem if kind.startswith("engine") else kind.partition("-")[0]
        if path.is_file() and path.suffix != ".lock" and (kind in WITHOUT_DIGEST) is not with_digest:
            found.append(path)
    return found


def told(faults: list[Fault], path: Path, folder: Path) -> bool:
    """Whether the file is named, once, with what to do; where `meta.json` names others, these are missed."""
    others = path.name in ("meta.json", "state.json")
    named = [fault for fault in faults if folder / fault.place == path]
    return all(str(folder / "index") in fault.what for fault in faults) and (len(named) == 1 or (others and faults))


def renewed(path: Path, data: bytes) -> None:
    """Another file of that name: who has the old one mapped dies where that gets shorter."""
    path.unlink()
    path.write_bytes(data)


def test_a_whole_index_has_no_faults(whole: Path) -> None:
    engine = IndexFolder(whole).engine(IndexFolder(whole).state())
    assert any(engine.glob("*.del")) and len(list(engine.glob("*.term"))) > 1
    assert index_faults(whole) == []


@pytest.mark.parametrize("seed", range(3))
def test_any_byte_that_is_another_is_seen(seed: int, whole: Path, tmp_path: Path) -> None:
    folder, dice = shutil.copytree(whole, tmp_path / "crawl"), Random(seed)
    for path in files(folder, with_digest=True):
        data = path.read_bytes()
        at = dice.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
        counts = not (path.name == "meta.json" and NO_MATTER in data[data.rfind(b"\n", 0, at) + 1 : at + 1])
        counts = counts and path.name != ".managed.json"  # it may name what is there no more
        assert told(index_faults(folder), path, folder) or not counts, (path, at)
        path.write_bytes(data)
    assert index_faults(folder) == []


@pytest.mark.parametrize("how", ["gone", "cut", "empty", "directory"])
def test_a_file_that_is_gone_or_cut_is_seen(how: str, whole: Path, tmp_path: Path) -> None:
    """Each that the state names, with a digest or without."""
    folder = shutil.copytree(whole, tmp_path / "crawl")
    of_lots = [path for path in files(folder, with_digest=False) if path.parent.name == "lots"]
    for path in [*files(folder, with_digest=True), *(of_lots if how in ("gone", "directory") else [])]:
        shutil.move(path, tmp_path / "kept")
        shutil.copy(tmp_path / "kept", path)
        damage(path, how, 0.7)
        assert told(index_faults(folder), path, folder), path
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        shutil.move(tmp_path / "kept", path)
    assert index_faults(folder) == []


@pytest.mark.parametrize("at", ["_is_there", "_fault", "_required", "lot_files"])
def test_an_index_that_is_written_meanwhile_has_no_faults(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever moment it is that another process commits, merges its segments and takes files away."""
    folder = tmp_path / "crawl"
    made = Archive(folder)
    true, left = getattr(looking, at), [4]

    def goes_on(*arguments: object, **named: object) -> object:
        if left[0]:
            left[0] -= 1
            for url, answer in pages(0, 10):
                made.visit(url, answer)
            made.flush()
            indexed(folder)
        return true(*arguments, **named)

    for url, answer in pages(0, 20):
        made.visit(url, answer)
    made.flush()
    indexed(folder)
    monkeypatch.setattr(looking, at, goes_on)
    assert index_faults(folder) == []
    assert not left[0]
    made.close()


def test_an_index_that_is_begun_has_no_faults(tmp_path: Path) -> None:
    """It has no state yet, or none that says more than that it is empty."""
    folder = archive(tmp_path / "crawl", pages(0, 8))
    assert index_faults(folder) == []
    with IndexFolder(folder).locked():
        assert index_faults(folder) == []
    assert index_faults(folder) == []


@pytest.mark.parametrize("seed", range(2))
def test_a_search_is_an_answer_or_one_line(
    seed: int, whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The engine panics where a file says what cannot be, and writes a trace by itself."""
    folder, dice = shutil.copytree(whole, tmp_path / "crawl"), Random(seed)
    engine = IndexFolder(whole).engine(IndexFolder(whole).state())
    statuses = set()
    for ending in ("term", "idx", "store", "fast", "pos", "fieldnorm") * 5:
        path = folder / dice.choice(sorted(engine.glob(f"*.{ending}"))).relative_to(whole)
        data = path.read_bytes()
        at = dice.randrange(len(data))
        renewed(path, data[:at] + dice.randbytes(1) + data[at + 1 :])
        for query in ("plum river", '"plum 3" -lantern', "site:a.example", "riverr"):
            said = in_process("search", str(folder), query)
            statuses.add(said.status)
            lines = said.errors.splitlines()
            assert said.status in (0, 1, 3) and len(lines) == (said.status == 3), said
            assert not lines or str(path) in lines[0]
        renewed(path, data)
    assert 3 in statuses
    assert not capfd.readouterr().err


def test_a_damaged_index_is_read_once(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often who serves is asked; and answers come again when it was made anew."""
    folder, reads = shutil.copytree(whole, tmp_path / "crawl"), []
    for path in (folder / "index").glob("engine-*/*.store"):
        renewed(path, bytes(len(path.read_bytes()) // 2) + path.read_bytes()[len(path.read_bytes()) // 2 :])
    monkeypatch.setattr(live_index, "index_faults", lambda crawl: reads.append(crawl) or index_faults(crawl))
    with Searcher([folder]) as searcher:
        for _ in range(3):
            with pytest.raises(StateDamaged, match=r"\.store: its bytes"):
                searcher.search("plum")
        assert len(reads) == 1
        shutil.rmtree(folder / "index")
        indexed(folder)
        assert searcher.search("plum").total == 30


def test_a_mistake_of_ours_is_no_damage(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Searcher([whole]) as searcher:
        monkeypatch.setattr(searcher, "_search", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            searcher.search("plum")
