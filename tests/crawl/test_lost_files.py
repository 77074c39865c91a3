"""Whatever finished file of a crawl is lost: check names it, a repair mends it or says so, no reader is silent."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import Said, in_process
from crawl.runs import crawl, settings
from crawl.small_site import SmallSite, small_site
from damaging import damage
from fyke.archive.checksum import checksum_path
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.division import divide
from fyke.archive.lost import lost_files
from fyke.archive.reading import scan_table
from fyke.archive.turns import Turns
from fyke.archive.warc_reading import read_records
from fyke.core.errors import StateDamaged
from fyke.disk import manifest as manifests
from fyke.disk.checkpoint import Checkpoint, newest

STORE = {"table_rows": 8, "warc_bytes": 20_000, "checkpoint_s": 0.1}
HOWS = ["gone", "empty", "cut", "flip"]

# Kinds of finished files: which of them is lost, and whether a repair brings it back.
FILES = {
    "archive": ("warc/*-00001.warc.gz", False),
    "index": ("warc/*-00001.cdxj", True),
    "last index": ("warc/*-00002.cdxj", True),
    "pages": ("tables/pages-00001.parquet", True),
    "last pages": ("tables/pages-*.parquet", True),
    "links": ("tables/links-00000.parquet", True),
    "extracted": ("tables/titles-*.parquet", False),
    "hosts": ("tables/hosts-00000.parquet", True),
    "domains": ("tables/domains-00000.parquet", True),
    "near": ("tables/near-00000.parquet", True),
    "ranks": ("tables/domainrank.parquet", True),
    "engine": ("index/engine-001/*.term", True),
    "seeds": ("seeds.txt", False),
    "state": ("state/shard-0000/content-*.keys", True),
    "book": ("state/hosts.sqlite", False),
}
SUMS = {
    "checksum": "warc/*-00001.warc.gz.xxh3",
    "checksum of an index": "warc/*-00001.cdxj.xxh3",
    "checksum of the last index": "warc/*-00002.cdxj.xxh3",
    "checksum of a table": "tables/pages-00001.parquet.xxh3",
}
TABLES = {"pages", "last pages"}
TEXTS = {*TABLES, "archive"}  # what is needed for the text of pages
NEEDED = {
    "export --to jsonl": {*TEXTS, "near"},
    "export --to parquet": {*TEXTS, "near"},
    "export --to markdown": TEXTS,
    "export --to csv": TABLES,
    "export --to links": {*TABLES, "links"},
    "export --to wacz": {*TEXTS, "index", "last index"},
    "extract": TEXTS,
    "links": {*TABLES, "links"},
    "report": {*TABLES, "links", "domains", "near", "ranks"},
    "rewrite": TABLES,
    "copy": set(FILES) - {"state", "book", "engine"},
    "search page": set(),
}


@pytest.fixture(scope="module")
def site() -> Iterator[SmallSite]:
    with small_site(pages=40, page_bytes=600) as site:
        yield site


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that came to its end, of a list of seeds, with a table that was extracted and an index."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "list.txt").write_text("".join(f"{site.url}p{number}\n" for number in range(0, 40, 2)))
    config = settings(folder, store=STORE)
    config.write_text(config.read_text() + '\n[[extract]]\ntable = "titles"\nfields.title = "title"\n')
    run = crawl(folder / "crawl", config, site.url, "--scope", "web", "--seeds", str(folder / "list.txt"))
    assert run.status == 0, run.errors
    assert in_process("index", str(folder / "crawl")).status == 0
    return folder / "crawl"


def copied(whole: Path, tmp_path: Path) -> Path:
    """The crawl again, to lose something of."""
    return Path(shutil.copytree(whole, tmp_path / "crawl"))


def lose(folder: Path, kind: str, how: str) -> Path:
    """Damage a file of that kind, so that something that counts is another; returns where it is."""
    path = sorted(folder.glob(FILES[kind][0]))[-1]
    if kind == "state":  # what the newest checkpoint alone names
        shard = CrawlDirectory(folder).shard
        now, before = (manifests.load(shard, number) for number in manifests.numbers(shard))
        assert now is not None and before is not None
        path = shard / max(now.files.keys() - before.files.keys() or now.files, key=now.files.__getitem__)
    share = 0.5
    if kind == "archive" and how in ("flip", "cut"):  # in a page, and between two records
        records = list(read_records(path))
        pages = [one for one in records if one.get("warc-type") == "response" and "/p" in one.get("warc-target-uri")]
        at = pages[1].offset + (pages[1].length // 2 if how == "flip" else 0)
        share = (at + 0.5) / path.stat().st_size
    if kind.endswith("index") and how == "cut":  # at the end of a line
        share = (path.read_bytes().rindex(b"\n", 0, -1) + 1.5) / path.stat().st_size
    if kind == "book":
        share = 3.5 / path.stat().st_size  # SQLite leaves room in which no byte counts
    damage(path, how, share)
    return path


def asked(command: str, folder: Path) -> Said:
    name, *arguments = command.split()
    for left in (folder / "export", folder / "extracted", folder.parent / "out"):
        shutil.rmtree(left, ignore_errors=True)
    into = [str(folder.parent / "out")] if name == "copy" else []
    return in_process(name, str(folder), *arguments, *into)


def told(said: Said, path: Path) -> bool:
    """Whether a command ended as one that lacks the file, with one line that names it."""
    lines = said.errors.splitlines()
    name = r"could not be read from the archive" if path.name.endswith(".warc.gz") else "$."
    named = len(lines) == 1 and (path.name in lines[0] or re.search(name, lines[0]))
    return said.status in (1, 3) and bool(named)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", FILES)
def test_check_names_it_and_a_repair_mends_it_or_says_so(kind: str, how: str, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    path = lose(folder, kind, how)
    checked = in_process("check", str(folder))
    assert checked.status == 1 and path.name in checked.out and not checked.errors, checked
    places = [line.partition(": ")[0].partition(", line ")[0] for line in checked.out.splitlines()[:-1]]
    assert all((folder / re.sub(r":\d+$", "", place)).parent.is_dir() and place[:1] != "/" for place in places), places
    mended = in_process("check", "--repair", str(folder))
    back = "LOST" not in mended.out
    told_by_chance = kind == "state" or (kind, how) == ("extracted", "flip")  # of two checkpoints one may be whole
    assert mended.status == (0 if back else 1) and (back is FILES[kind][1] or told_by_chance), mended
    again = in_process("check", str(folder))
    stays = kind in ("archive", "seeds") or (kind == "state" and not back)
    assert again.status == (1 if stays else 0), (mended, again)


@pytest.mark.parametrize("kind", SUMS)
def test_a_checksum_that_is_gone_is_one_fault_and_made_anew(kind: str, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    (path,) = folder.glob(SUMS[kind])
    path.unlink()
    checked = in_process("check", str(folder))
    assert checked.status == 1 and checked.out.count(path.name.removesuffix(".xxh3")) == 1, checked
    mended = in_process("check", "--repair", str(folder))
    assert mended.status == 0 and mended.out.endswith("repaired; nothing is lost\n"), mended
    assert path.is_file() and in_process("check", str(folder)).status == 0


@pytest.mark.parametrize("kind", FILES)
def test_what_is_gone_is_one_fault(kind: str, whole: Path, tmp_path: Path) -> None:
    """Its place is below the folder. Of an archive file also the rows that name it tell."""
    folder = copied(whole, tmp_path)
    path = lose(folder, kind, "gone")
    faults = json.loads(in_process("check", str(folder), "--json").out)["faults"]
    named = [fault for fault in faults if path.name in fault["place"]]
    assert len(named) == 1 and named[0]["place"] == str(path.relative_to(folder)), faults
    assert all(path.name in fault["what"] for fault in faults if fault not in named)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", FILES)
def test_no_command_silently_gives_less(kind: str, how: str, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    path = lose(folder, kind, how)
    for command, needed in NEEDED.items():
        said = asked(command, folder)
        if kind in needed:
            assert told(said, path), (command, said)
        elif kind == "state" and said.status == 3:  # no checkpoint is whole: nobody can say how far the tables count
            assert len(said.errors.splitlines()) == 1 and "shard-0000" in said.errors, (command, said)
        elif kind == "engine" and command.startswith("search") and said.status == 3:
            assert len(said.errors.splitlines()) == 1 and path.name in said.errors, said
        else:
            assert said.status == (1 if command.startswith("search") else 0) and not said.errors, (command, said)


@pytest.mark.parametrize("command", NEEDED)
def test_a_folder_that_is_gone_is_told(command: str, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    shutil.rmtree(folder / "tables")
    said = asked(command, folder)
    if command.startswith("search"):
        assert said.status == 1
    else:
        assert said.status == (1 if command == "copy" else 3) and "tables" in said.errors, said
        assert len(said.errors.splitlines()) == 1


def newest_manifest(folder: Path) -> Path:
    shard = CrawlDirectory(folder).shard
    return shard / manifests.Manifest(max(manifests.numbers(shard))).name


@pytest.mark.parametrize("how", HOWS)
def test_a_repair_that_goes_back_does_not_say_that_nothing_is_lost(how: str, whole: Path, tmp_path: Path) -> None:
    """What came since is to be fetched again, and the last line says so."""
    folder = copied(whole, tmp_path)
    path = newest_manifest(folder)
    path.unlink() if how == "gone" else damage(path, how, 0.5)
    mended = in_process("check", "--repair", str(folder))
    assert mended.status == 0 and not mended.errors, mended
    last = mended.out.splitlines()[-1]
    assert "what came after the checkpoint is fetched again" in last and "nothing" not in last
    assert json.loads(in_process("check", "--repair", str(folder), "--json").out) == {"notes": []}


@pytest.mark.parametrize("how", HOWS[1:])
@pytest.mark.parametrize("what", ["checkpoint", "state", "all"])
def test_status_says_what_a_crawl_says(what: str, how: str, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    assert in_process("status", str(folder)).status == 0
    if what == "checkpoint":
        damage(newest_manifest(folder), how, 0.5)
    elif what == "state":
        lose(folder, "state", how)
    else:
        shutil.rmtree(folder / "state")
    crawled = in_process("crawl", "--into", str(folder), "--again")
    assert crawled.status == 3 and len(crawled.errors.splitlines()) == 1, crawled
    assert in_process("status", str(folder)) == in_process("status", str(folder), "--json") == crawled


@pytest.mark.parametrize(("name", "brought_back"), [("tables", False), ("warc", False)])
def test_check_names_a_folder(name: str, brought_back: bool, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    shutil.rmtree(folder / name)
    checked = in_process("check", str(folder))
    assert checked.status == 1 and f"{name}: it is gone" in checked.out, checked
    mended = in_process("check", "--repair", str(folder))
    assert mended.status == 1 and "LOST" in mended.out, mended


def test_a_table_is_missed_without_its_checksum_too(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    for table in ("pages", "links", "titles"):
        path = max((folder / "tables").glob(f"{table}-*.parquet"))
        path.unlink()
        checksum_path(path).unlink()
        assert [path.name] == [one.name for one in lost_files(CrawlDirectory(folder))]
        assert f"{path.name}: it is gone" in in_process("check", str(folder)).out
        if table != "titles":
            assert told(asked("report", folder), path)
        shutil.copy2(whole / "tables" / path.name, path)
        shutil.copy2(checksum_path(whole / "tables" / path.name), checksum_path(path))
    assert not lost_files(CrawlDirectory(folder))


@pytest.mark.parametrize("name", ["hosts", "domains"])
def test_a_summary_is_missed_without_its_checksum_too(name: str, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    path = folder / "tables" / f"{name}-00000.parquet"
    path.unlink()
    checksum_path(path).unlink()
    assert f"{path.name}: it is gone" in in_process("check", str(folder)).out
    assert in_process("check", "--repair", str(folder)).status == 0
    assert in_process("check", str(folder)).status == 0


@pytest.mark.parametrize("name", ["near-00000", "pagerank", "domainrank"])
def test_a_table_of_the_index_is_missed_without_its_checksum_too(name: str, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    path = folder / "tables" / f"{name}.parquet"
    path.unlink()
    checksum_path(path).unlink()
    assert f"{path.name}: it is gone" in in_process("check", str(folder)).out
    if name != "pagerank":
        assert told(asked("report", folder), path)
    assert in_process("check", "--repair", str(folder)).status == 0
    assert in_process("check", str(folder)).status == 0
    assert in_process("index", str(folder)).status == 0
    assert path.is_file() and in_process("check", str(folder)).status == 0


def test_of_a_page_whose_row_is_gone_why_says_that_and_not_that_it_waits(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    url = next(scan_table(folder, "pages", ["url"])).column("url")[0].as_py()
    for path in folder.glob("tables/pages-*.parquet"):
        path.unlink()
    said = in_process("why", str(folder), url)
    assert said.status == 3 and "pages-" in said.errors and "gone" in said.errors and not said.out, said


@pytest.mark.parametrize("which", [0, -1])
def test_a_checkpoint_that_is_gone_is_named(which: int, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    shard = CrawlDirectory(folder).shard
    path = shard / manifests.Manifest(manifests.numbers(shard)[which]).name
    path.unlink()
    checked = in_process("check", str(folder))
    assert checked.status == 1 and path.name in checked.out, checked
    before = {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix in (".gz", ".parquet")
    }
    refused = crawl(folder, folder / "fyke.toml", "--again")
    assert refused.status == 3 and path.name in refused.errors, refused
    assert all(path.read_bytes() == data for path, data in before.items())
    mended = in_process("check", "--repair", str(folder))
    assert mended.status == 0 and "a checkpoint is gone" in mended.out, mended
    assert in_process("check", str(folder)).status == 0


def test_a_repair_leaves_nothing_that_came_after_an_older_checkpoint(site: SmallSite, tmp_path: Path) -> None:
    """Rows of pages that came after it are in files that it knows nothing of."""
    folder, config = tmp_path / "crawl", settings(tmp_path, store={**STORE, "checkpoint_s": 1000.0})
    for more in (["--pages", "20"], []):
        assert crawl(folder, config, site.url, *more).status == 0
    shard = CrawlDirectory(folder).shard
    number = manifests.numbers(shard)[0]
    (shard / manifests.Manifest(number).name).unlink()
    before = newest(shard)
    assert before is not None and not before.participants["pages"]["segments"], "its files are all finished"
    mended = in_process("check", "--repair", str(folder))
    assert mended.status == 0, mended
    checked = in_process("check", str(folder))
    assert checked.status == 0, (mended, checked)
    assert crawl(folder, config, site.url).status == 0
    assert in_process("check", str(folder)).status == 0


def test_what_was_asked_later_is_missed(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    assert in_process("block", str(folder), "elsewhere.example").status == 0
    assert crawl(folder, folder / "fyke.toml", "--again").status == 0
    assert in_process("check", str(folder)).status == 0
    (folder / "state" / "asked.json").unlink()
    assert "asked.json: it is gone" in in_process("check", str(folder)).out
    refused = [crawl(folder, folder / "fyke.toml", "--again").errors]
    refused += [
        in_process(*words).errors
        for words in (["cloak", str(folder), "--as", "a"], ["block", str(folder), "another.example"])
    ]
    for said in refused:
        assert "asked.json is damaged: it is gone" in said, "a blocked host may be asked"
    mended = in_process("check", "--repair", str(folder))
    assert mended.status == 1 and "the lists of blocked hosts" in mended.out, mended
    assert in_process("check", "--repair", str(folder)).status == 0, "it was told once"
    assert crawl(folder, folder / "fyke.toml", "--again").status == 0
    assert in_process("check", str(folder)).status == 0


@pytest.mark.parametrize("how", ["torn", "folder"])
def test_what_was_asked_later_and_is_damaged_goes_aside(how: str, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    assert in_process("block", str(folder), "elsewhere.example").status == 0
    assert crawl(folder, folder / "fyke.toml", "--again").status == 0
    path = folder / "state" / "asked.json"
    path.unlink()
    path.mkdir() if how == "folder" else path.write_text('{"seeds": 3')
    assert crawl(folder, folder / "fyke.toml", "--again").status == 3
    assert in_process("check", "--repair", str(folder)).status == 1
    assert list((folder / "damaged" / "state").iterdir()), "nothing goes away"
    assert crawl(folder, folder / "fyke.toml", "--again").status == 0


def test_what_was_asked_while_no_crawl_ran_is_missed(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    assert in_process("block", str(folder), "elsewhere.example").status == 0
    assert in_process("check", str(folder)).status == 0
    (folder / "state" / "asked.json").unlink()
    assert "asked.json: it is gone" in in_process("check", str(folder)).out


@pytest.mark.parametrize("pattern", ["warc/*-00001.warc.gz", "warc/*-00001.cdxj", "tables/*.parquet"])
@pytest.mark.parametrize("how", HOWS)
def test_a_checksum_that_is_lost_is_made_anew(how: str, pattern: str, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    for path in folder.glob(pattern):
        damage(checksum_path(path), how, 0.5)
        checked = in_process("check", str(folder))
        assert checked.status == 1 and path.name in checked.out, checked
        assert told(asked("copy", folder), path)
        mended = in_process("check", "--repair", str(folder))
        assert mended.status == 0, mended
        if path.name.startswith(("hosts", "domains", "near", "pagerank", "domainrank")) and how != "gone":
            shutil.copy2(whole / "tables" / path.name, path)  # nobody knows which of both was damaged
            shutil.copy2(checksum_path(whole / "tables" / path.name), checksum_path(path))
        assert path.exists() and checksum_path(path).exists()
        assert in_process("check", str(folder)).status == 0


def test_the_checksum_of_the_seeds_that_is_lost_is_made_anew(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    checksum_path(folder / "seeds.txt").unlink()
    checked = in_process("check", str(folder))
    assert checked.status == 1 and "seeds.txt.xxh3: it is gone" in checked.out, checked
    mended = in_process("check", "--repair", str(folder))
    assert mended.status == 0 and "seeds.txt: its checksum is rebuilt" in mended.out, mended
    assert in_process("check", str(folder)).status == 0
    assert checksum_path(folder / "seeds.txt").read_bytes() == checksum_path(whole / "seeds.txt").read_bytes()


def test_without_its_settings_a_folder_is_told_to_be_a_crawl_that_lost_them(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    (folder / "fyke.toml").unlink()
    checked = in_process("check", str(folder))
    assert checked.status == 1 and "fyke.toml: it is gone" in checked.out, checked
    there = str(folder)
    for words in (
        ["check", "--repair", there],
        ["status", there],
        ["report", there],
        ["crawl", "--into", there],
        ["crawl", "http://127.0.0.1:9/", "--into", there],
    ):
        said = in_process(*words)
        assert said.status in (2, 3) and "fyke.toml is gone" in said.errors and "copy" in said.errors, (words, said)
        assert len(said.errors.splitlines()) == 1


def test_a_state_file_that_is_gone_is_named(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    shard = CrawlDirectory(folder).shard
    for name in newest(CrawlDirectory(folder).shard).files:
        data = (shard / name).read_bytes()
        (shard / name).unlink()
        checked = in_process("check", str(folder))
        assert checked.status == 1 and name in checked.out, checked
        (shard / name).write_bytes(data)


def test_what_is_moved_says_what_it_lacks(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    path = lose(folder, "links", "gone")
    said = in_process("move", str(folder), str(tmp_path / "elsewhere"))
    assert told(said, path) and said.status == 1 and (tmp_path / "elsewhere" / "fyke.toml").is_file(), said


def test_seeds_that_are_gone_are_not_begun_without(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    (folder / "seeds.txt").unlink()
    with pytest.raises(StateDamaged, match=r"seeds\.txt"):
        list(CrawlDirectory(folder).listed.urls())


@pytest.mark.parametrize(
    ("name", "brought_back"),
    [
        ("tables/turns", True),
        ("state/agents.json", False),
        ("state/hosts-0001.sqlite", False),
        ("warc/*-1-00000.warc.gz", False),
        ("warc/*-1-00000.cdxj", True),
        ("tables/pages-1-00000.parquet", True),
        ("tables/hosts-1-00000.parquet", True),
    ],
)
def test_of_several_agents(name: str, brought_back: bool, of_two: Path, tmp_path: Path) -> None:
    folder = copied(of_two, tmp_path)
    path = min(folder.glob(name))
    path.unlink()
    checked = in_process("check", str(folder))
    assert checked.status == 1 and path.name in checked.out, checked
    said = asked("export --to csv", folder)
    needed = name in ("tables/turns", "state/agents.json", "tables/pages-1-00000.parquet")
    assert told(said, path) if needed else said.status == 0, said
    mended = in_process("check", "--repair", str(folder))
    assert (mended.status == 0) is brought_back, mended


@pytest.mark.parametrize("part", [0, 1])
def test_agents_do_not_go_on_without_the_state_of_one(part: int, of_two: Path, tmp_path: Path) -> None:
    folder = copied(of_two, tmp_path)
    shard = CrawlDirectory(folder, part).shard
    shutil.rmtree(shard)
    assert in_process("check", str(folder)).out.startswith(f"state/{shard.name}: ")
    run = crawl(folder, folder / "fyke.toml", "--again")
    assert run.status == 3 and f"{shard} holds no manifest" in run.errors, run
    assert not [*shard.glob("*")]


def test_an_agent_that_was_killed_before_its_first_checkpoint_has_lost_nothing(
    site: SmallSite, whole: Path, tmp_path: Path
) -> None:
    """The crawl was of one agent, and was to go on with two."""
    folder = copied(whole, tmp_path)
    assert divide(folder / "state", 2, begun=True).agents == 2
    Turns(folder).add(0, saved_state(CrawlDirectory(folder).shard))
    Checkpoint(CrawlDirectory(folder, 1).shard).close()
    checked = in_process("check", str(folder))
    assert checked.status == 0, checked
    mended = in_process("check", "--repair", str(folder))
    assert mended.status == 0 and "nothing to repair" in mended.out, mended
    run = crawl(folder, folder / "fyke.toml", "--again")
    assert run.status == 0, run.errors


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory, site: SmallSite) -> Path:
    """A crawl that two agents made."""
    folder = tmp_path_factory.mktemp("of-two")
    run = crawl(folder / "crawl", settings(folder, store=STORE), site.url, "--agents", "2")
    assert run.status == 0, run.errors
    return folder / "crawl"


def test_what_the_frontier_lost_hides_no_pages(site: SmallSite, tmp_path: Path) -> None:
    """A checkpoint one of whose files is gone still says how far archive and tables count."""
    folder, config = tmp_path / "crawl", settings(tmp_path, store={**STORE, "checkpoint_s": 1000.0})
    for more in (["--pages", "20"], []):
        assert crawl(folder, config, site.url, *more).status == 0
    shard = CrawlDirectory(folder).shard
    last, before = (manifests.load(shard, number) for number in manifests.numbers(shard)[:2])
    assert last is not None and before is not None
    whole = in_process("export", str(folder), "--to", "jsonl", "--out", str(tmp_path / "whole.jsonl"))
    (shard / max(last.files.keys() - before.files.keys())).unlink()
    assert "is gone" in in_process("check", str(folder)).out
    lost = in_process("export", str(folder), "--to", "jsonl", "--out", str(tmp_path / "lost.jsonl"))
    assert whole.status == lost.status == 0, lost
    assert (tmp_path / "lost.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()
