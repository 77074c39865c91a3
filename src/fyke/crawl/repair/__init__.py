"""`fyke check --repair`: a crawl's directory made whole again, as far as the archive goes.

The archive is the truth: tables and indexes are made anew out of it, the state out of the newest checkpoint that is
whole. Damaged files go to `damaged/` and are never deleted. The last step writes a manifest that fits the files, so a
repair that is killed anywhere is begun again. Invariant: a file that was whole stays whole, and every loss is told.
"""

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

from fyke.archive.asked import NAME as ASKED
from fyke.archive.asked import AskedLater
from fyke.archive.check import Fault
from fyke.archive.checksum import checksum_path, write_checksum
from fyke.archive.directory import CrawlDirectory, require_format
from fyke.archive.inspect import asked_faults, file_faults, hosts_faults
from fyke.archive.lost import GONE, had_state, lost_files
from fyke.archive.mending import DamagedFolder
from fyke.archive.reading import GENERATION, generation, rows_recorded
from fyke.archive.table_files import TABLES
from fyke.archive.turns import COUNTED, rows_by_part, write_turns
from fyke.core.config import Config
from fyke.core.errors import StateDamaged
from fyke.core.telling import Tell
from fyke.crawl.repair.case import Case, Note
from fyke.crawl.repair.reread import Rereader
from fyke.crawl.repair.tables import TableRepair
from fyke.crawl.repair.warc_files import ArchiveRepair
from fyke.disk import manifest as manifests
from fyke.disk.checkpoint import Snapshot
from fyke.disk.files import write_whole, writing
from fyke.disk.manifest import Manifest
from fyke.fetcher.book import HostBook
from fyke.harvest.fields import Extractor
from fyke.search.damage import index_faults
from fyke.search.folder import IndexFolder

__all__ = ["Note", "repair"]


def repair(directory: CrawlDirectory, progress: Tell) -> Iterator[Note]:
    """Mend the crawl in `directory`, and yield what was done. Raises NotACrawl, DirectoryError, DiskFull."""
    config = directory.config()
    directory.require_readable()
    require_format(directory.path)
    with directory.closed_to_crawls():
        scratch = directory.state / "mending"
        shutil.rmtree(scratch, ignore_errors=True)
        with writing(scratch):
            scratch.mkdir()
        try:
            cases = [Case(part, scratch, progress) for part in directory.parts]
            yield from _listed(directory)
            for case in cases:
                yield from _mended(case, config)
            if len(cases) > 1:
                yield from _mended_together(cases)
            yield from _asked(directory)
            yield from _not_mended(directory)
            yield from _search_index(directory)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _listed(directory: CrawlDirectory) -> Iterator[Note]:
    """Make the checksum of the list of seeds anew, if it is gone."""
    path = directory.listed.path
    if directory.listed and not checksum_path(path).exists():
        write_checksum(path, path)
        yield Note(directory.place(path), "its checksum is rebuilt; nobody knows whether a line of it had changed")


def _mended(case: Case, config: Config) -> Iterator[Note]:
    bad = yield from _find_manifest(case)
    warcs = yield from ArchiveRepair(case).run()
    reader = Rereader(case.folder, config, {warc.path: warc.end for warc in warcs})
    extracted = {one.name: one.schema for one in map(Extractor, config.extract)}
    yield from TableRepair(case, reader, extracted).run()
    yield from _hosts(case)
    yield from _commit(case, bad)


def _mended_together(cases: list[Case]) -> Iterator[Note]:
    """Mend what agents share: the order in which their rows came."""
    folder = cases[0].folder
    recorded = {case.directory.part: {**case.state, **case.changed} for case in cases}
    try:
        fit = (folder / TABLES / "turns").is_file() and all(
            rows <= rows_recorded(recorded.get(part, {}), name)
            for name in COUNTED
            for part, rows in rows_by_part(folder, name).items()
        )
    except StateDamaged:
        fit = False
    if not fit:
        write_whole(folder / TABLES / GENERATION, f"{generation(folder) + 1}\n".encode())
        write_turns(folder, recorded)
        yield Note(f"{TABLES}/turns", "the order of the rows of several agents is rebuilt")


def _asked(directory: CrawlDirectory) -> Iterator[Note]:
    """Mend what people asked of the crawl. If it is lost, they are told, and the crawl may go on as if nobody had
    asked."""
    path = directory.state / ASKED
    try:
        AskedLater(directory.state)
        fit = path not in lost_files(directory)
    except StateDamaged:
        fit = False
    if not fit:
        if os.path.lexists(path):
            DamagedFolder(directory.path).move_here(path)
        AskedLater(directory.state).keep()
        what = "the lists of blocked hosts and of added seeds are lost: block and add them again"
        yield Note(f"state/{ASKED}", f"{what}, or restore the file from a copy", lost=True)


def _not_mended(directory: CrawlDirectory) -> Iterator[Note]:
    """Tell what is lost or damaged for good. Losses of the archive were told before."""
    lost = lost_files(directory)
    for fault in (*(Fault(directory.place(path), GONE) for path in lost), *asked_faults(directory, lost)):
        path = directory.path / fault.place
        if directory.warc not in (path, path.parent):
            what = fault.what if "copy" in fault.what else f"{fault.what}; restore it from a copy"
            yield Note(fault.place, what, lost=True)


def _search_index(directory: CrawlDirectory) -> Iterator[Note]:
    """Put a damaged search index aside as a whole, because it can be made of the archive again."""
    if index_faults(directory.path):
        folder = IndexFolder(directory.path)
        with folder.locked():
            DamagedFolder(directory.path).move_here(folder.path)
        yield Note(folder.path.name, f"it is damaged; make it again with fyke index {directory.path}")


def _find_manifest(case: Case) -> Generator[Note, None, list[Path]]:
    """Choose the newest whole checkpoint; return the files of those that are damaged."""
    shard, bad = case.directory.shard, []
    numbers = manifests.numbers(shard)
    for number in numbers:
        path = shard / Manifest(number).name
        manifest = manifests.load(shard, number)
        faults = (
            [] if manifest is None else [case.folder / fault.place for fault in file_faults(case.directory, manifest)]
        )
        if manifest is None or faults:
            bad += [path, *faults]
            yield Note(case.place(path), "this checkpoint is damaged; it is put aside")
        elif case.manifest is None:
            case.manifest = manifest
    if manifests.lone(shard):
        what = "a checkpoint is gone; what came after the remaining one is fetched again"
        yield Note(case.place(shard), what, again=True)
    if case.manifest is None and (numbers or had_state(case.directory)):
        what = "no checkpoint is whole: the crawl cannot go on; its archive can be read, searched and exported"
        yield Note(case.place(shard), what, lost=True)
    elif case.manifest is not None and case.manifest.number != numbers[0]:
        what = f"checkpoint {case.manifest.number} is the newest whole one; what came after it is fetched again"
        yield Note(case.place(shard), what, again=True)
        if len(case.directory.parts) > 1:
            what = "this agent went back to an older checkpoint: links that other agents sent it since then are lost"
            yield Note(case.place(shard), what, lost=True)
    return bad


def _commit(case: Case, bad: list[Path]) -> Iterator[Note]:
    """Write the manifest that fits the files that are there now; then put damaged files of the state aside."""
    shard = case.directory.shard
    if case.manifest is not None and (case.changed or case.fell_back or bad):
        number = manifests.numbers(shard)[0] + 1
        states = {**case.state, **case.changed}
        Snapshot(
            shard,
            Manifest(number, case.manifest.files, states, case.manifest.counters, case.manifest.digests),
            (),
        ).make_durable()
        case.mended = True
    for path in dict.fromkeys([*bad, *filter(Path.is_dir, shard.iterdir())]):  # a file of a name may be to come
        if path.suffix == ".json":
            case.aside.move_here(path)
        elif os.path.lexists(path):
            case.aside.link_here(path)
    if bad or case.mended:
        yield Note("damaged", "damaged files were moved here")


def _hosts(case: Case) -> Iterator[Note]:
    book, rests = case.directory.hosts, case.directory.rests
    damaged = [path for path, _ in hosts_faults(case.directory)]
    damaged += [book] if case.state and not os.path.lexists(book) else []
    if book in damaged:
        for one in book.parent.glob(f"{book.name}*"):
            case.aside.move_here(one)
        HostBook(book).close()
        what = "the facts about hosts are lost, also how long each rests: robots.txt files are fetched again"
        yield Note(case.place(book), what, lost=True)
    if damaged:
        if os.path.lexists(rests):
            case.aside.move_here(rests)
        case.mended = True
    if rests in damaged:
        yield Note(case.place(rests), "it is put aside: every host rests before it is asked again")
