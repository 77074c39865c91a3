"""The laws of the checkpoint: a crash at any point finds a whole manifest and all it names."""

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fyke.core.errors import DirectoryInUse, DiskFull, NotACrawl, StateDamaged
from fyke.disk import manifest as manifests
from fyke.disk.checkpoint import Checkpoint, Snapshot, look


def commit(checkpoint: Checkpoint, **participants: dict[str, object]) -> Snapshot:
    snapshot = checkpoint.take(participants, {"pages": checkpoint.number})
    snapshot.make_durable()
    checkpoint.committed(snapshot)
    return snapshot


def test_state_comes_back(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        commit(checkpoint, seen={"n": 1})
        commit(checkpoint, seen={"n": 2})
    with Checkpoint(tmp_path) as checkpoint:
        assert checkpoint.number == 2
        assert checkpoint.counters == {"pages": 1}
        assert checkpoint.store.participant("seen") == {"n": 2}
        assert checkpoint.store.participant("nobody") == {}


def test_files_are_cut_to_their_recorded_length_and_strangers_left_alone(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        name, file = checkpoint.store.create("queue", "seg")
        file.write(b"safe")
        commit(checkpoint)
        file.write(b"not safe")
        later = checkpoint.store.write("queue", "seg", [b"unnamed"])
        file.close()
    (tmp_path / "notes.txt").write_text("mine")
    with Checkpoint(tmp_path) as checkpoint:
        assert (tmp_path / name).read_bytes() == b"safe"
        assert not (tmp_path / later).exists()
        assert (tmp_path / "notes.txt").exists()
        with checkpoint.store.append(name) as file:
            file.write(b", more")
        assert checkpoint.store.size(name) == 10


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "file gone"])
def test_a_torn_manifest_is_refused_and_the_one_before_has_all_it_names(tmp_path: Path, damage: str) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        old = checkpoint.store.write("table", "keys", [b"old"])
        commit(checkpoint, seen={"n": 1})
        checkpoint.store.retire(old)
        new = checkpoint.store.write("table", "keys", [b"new"])
        commit(checkpoint, seen={"n": 2})
    manifest = tmp_path / "manifest-00000002.json"
    data = manifest.read_bytes()
    if damage == "file gone":
        (tmp_path / new).unlink()
    else:
        flipped = data.replace(b'"n":2', b'"n":3')
        manifest.write_bytes({"cut": data[:-20], "flip": flipped, "empty": b""}[damage])
    with pytest.raises(StateDamaged, match=manifest.name):
        Checkpoint(tmp_path)
    assert (tmp_path / new).exists() is (damage != "file gone")
    assert (tmp_path / old).read_bytes() == b"old"
    before = manifests.load(tmp_path, 1)
    assert before is not None and before.participants == {"seen": {"n": 1}}


@pytest.mark.parametrize("commits", [1, 2, 3])
@pytest.mark.parametrize("which", [0, 1])
def test_nobody_goes_on_where_a_manifest_is_gone(tmp_path: Path, commits: int, which: int) -> None:
    """From an older one, all that came since would be deleted, and nobody would know."""
    with Checkpoint(tmp_path) as checkpoint:
        for number in range(commits):
            name = checkpoint.store.write("table", "keys", [b"%d" % number])
            commit(checkpoint)
    there = manifests.numbers_with_begun(tmp_path)
    assert there == [commits, commits - 1]
    path = tmp_path / manifests.Manifest(there[which]).name
    path.unlink()
    if (commits, which) == (1, 0):  # nothing tells this from a shard that never had a checkpoint
        Checkpoint(tmp_path).close()
        return
    with pytest.raises(StateDamaged, match=path.name):
        Checkpoint(tmp_path)
    assert (tmp_path / name).exists()


def test_no_whole_manifest_is_an_error_and_deletes_nothing(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        name = checkpoint.store.write("table", "keys", [b"old"])
        commit(checkpoint)
    (tmp_path / "manifest-00000001.json").write_bytes(b"{")
    with pytest.raises(StateDamaged, match="no checkpoint is whole"):
        Checkpoint(tmp_path)
    assert (tmp_path / name).exists()
    with pytest.raises(StateDamaged):
        Checkpoint(tmp_path)


def test_retired_files_go_when_no_kept_manifest_names_them(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        store = checkpoint.store
        never_named = store.write("table", "keys", [b"0"])
        store.retire(never_named)
        assert store.names() == []
        named = store.write("table", "keys", [b"1"])
        commit(checkpoint)
        store.retire(named)
        assert store.names() == [named]
        commit(checkpoint)
        assert store.names() == [named]  # the manifest before the newest names it
        commit(checkpoint)
        assert store.names() == []
        assert len(list(tmp_path.glob("manifest-*"))) == 2


def test_a_file_retired_while_its_snapshot_is_under_way_stays(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        name = checkpoint.store.write("table", "keys", [b"1"])
        snapshot = checkpoint.take({})
        checkpoint.store.retire(name)
        snapshot.make_durable()
        assert checkpoint.store.names() == [name]
        checkpoint.committed(snapshot)
        assert checkpoint.store.names() == [name]


def test_retired_files_of_the_older_manifest_go_after_a_restart(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        name = checkpoint.store.write("table", "keys", [b"1"])
        commit(checkpoint)
        checkpoint.store.retire(name)
        commit(checkpoint)
    with Checkpoint(tmp_path) as checkpoint:
        assert checkpoint.store.names() == [name]
        commit(checkpoint)
        assert checkpoint.store.names() == []


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_leaves_the_manifest_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Checkpoint(tmp_path) as checkpoint:
        old = checkpoint.store.write("table", "keys", [b"1"])
        commit(checkpoint, seen={"n": 1})
        checkpoint.store.retire(old)
        snapshot = checkpoint.take({"seen": {"n": 2}})
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            with pytest.raises(DiskFull, match="free some space"):
                snapshot.make_durable()
        assert not list(tmp_path.glob("*.tmp"))
        assert look(tmp_path)[0].participant("seen") == {"n": 1}
        assert old in checkpoint.store.names()
        with pytest.raises(RuntimeError):
            commit(checkpoint, seen={"n": 3})
            checkpoint.committed(snapshot)
    assert look(tmp_path)[0].participant("seen") == {"n": 3}


def test_only_dirty_files_are_synced(tmp_path: Path) -> None:
    with Checkpoint(tmp_path / "state") as checkpoint:
        warc = tmp_path / "a.warc.gz"
        warc.write_bytes(b"x")
        name, file = checkpoint.store.create("q", "seg")
        file.write(b"1")
        snapshot = checkpoint.take({}, extra_files=[warc])
        assert set(snapshot.dirty) == {tmp_path / "state" / name, warc}
        file.write(b"2")
        snapshot.make_durable()
        checkpoint.committed(snapshot)
        assert checkpoint.store.dirty() == [name]
        commit(checkpoint)
        assert checkpoint.store.dirty() == []
        file.close()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with Checkpoint(tmp_path):
        program = "from pathlib import Path; from fyke.disk.checkpoint import Checkpoint;"
        program += f" Checkpoint(Path({str(tmp_path)!r}))"
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert "DirectoryInUse" in run.stderr
        with pytest.raises(DirectoryInUse, match="another crawl"):
            Checkpoint(tmp_path)
    Checkpoint(tmp_path).close()


def test_looking_needs_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(NotACrawl):
        look(tmp_path)
    with pytest.raises(NotACrawl):
        look(tmp_path / "nowhere")


def test_a_name_is_used_once(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        (tmp_path / "q-00000001.seg").write_bytes(b"")
        with pytest.raises(FileExistsError):
            checkpoint.store.create("q", "seg")
        with pytest.raises(ValueError, match="lower case"):
            checkpoint.store.create("../q", "seg")
        snapshot = checkpoint.take({})
        snapshot.make_durable()
        with pytest.raises(FileExistsError):
            snapshot.make_durable()


def test_snapshots_that_failed_may_have_reached_the_disk(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        name = checkpoint.store.write("table", "keys", [b"1"])
        checkpoint.take({}).make_durable()
        checkpoint.store.retire(name)
        checkpoint.take({})
        checkpoint.take({})
        assert checkpoint.store.names() == [name]
        commit(checkpoint)
        assert checkpoint.store.names() == []


@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_flipped_bit_goes_unseen(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever was written, by one process or by several, opening finds the bit that is another now."""
    directory = tmp_path_factory.mktemp("flipped")
    names: list[str] = []
    for _ in range(data.draw(st.integers(1, 3))):  # processes
        with Checkpoint(directory) as checkpoint:
            names.append(checkpoint.store.write("table", "ops", [data.draw(st.binary(min_size=1, max_size=50))]))
            for name in data.draw(st.lists(st.sampled_from(names), max_size=2)):
                with checkpoint.store.append(name) as file:
                    file.write(data.draw(st.binary(max_size=30)))
            commit(checkpoint)
    with Checkpoint(directory):
        pass
    path = directory / data.draw(st.sampled_from(names))
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    with pytest.raises(StateDamaged, match="not those that were written"):
        Checkpoint(directory)


def test_what_an_earlier_version_wrote_has_no_digests_and_is_opened(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        name = checkpoint.store.write("table", "ops", [b"old"])
        snapshot = checkpoint.take({})
        replace(snapshot, manifest=replace(snapshot.manifest, digests={})).make_durable()
    with Checkpoint(tmp_path) as checkpoint, checkpoint.store.append(name) as file:
        file.write(b" and new")
        commit(checkpoint)
        assert checkpoint.store.digests()[name][0][:2] == [3, 11]
    Checkpoint(tmp_path).close()
    (tmp_path / name).write_bytes(b"old and NEW")
    with pytest.raises(StateDamaged):
        Checkpoint(tmp_path)
