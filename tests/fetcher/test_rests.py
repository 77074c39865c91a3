"""The journal of rests against a model of what happened: whatever a kill leaves of it, nothing may be asked sooner."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from disks import grow, small_disk
from fyke.core.config import PolitenessSection
from fyke.core.errors import DiskFull, StateDamaged
from fyke.core.urls import key_of
from fyke.fetcher.book import HostBook
from fyke.fetcher.host import Host
from fyke.fetcher.rests import BOOKED_WAIT_S, Rests

POLITENESS = PolitenessSection(host_delay_s=1.0, address_delay_s=7.0, delay_factor=10.0, max_delay_s=60.0)
LONGEST_S = 30.0
PLACES = ("a.test", "127.0.0.1", "@127.0.0.1", "@::1")

# What happens next, to which place, how many seconds later, and how long it rests for.
steps = st.lists(
    st.tuples(
        st.sampled_from(["begin", "begin", "end", "end", "kill"]),
        st.sampled_from(PLACES),
        st.floats(0, 5),
        st.floats(0, 20),
        st.floats(0, 1),  # how much of the last note a kill leaves
    ),
    max_size=60,
)


def opened(path: Path, now: float, *, resumed: bool = True, boot_id: str = "boot", most_lines: int = 9) -> Rests:
    return Rests(path, POLITENESS, LONGEST_S, now, resumed=resumed, boot_id=boot_id, most_lines=most_lines)


class World:
    """What the servers saw: requests under way, and the rests that are due since they ended."""

    def __init__(self) -> None:
        self.under_way: dict[str, tuple[float, float]] = {}
        self.due: dict[str, float] = {}

    def killed(self, now: float) -> None:
        for place, (began, least_s) in self.under_way.items():
            own_s = 0.0 if place[0] == "@" else min(10.0 * (now - began), 60.0)
            self.due[place] = now + max(least_s, own_s)
        self.under_way.clear()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_nothing_is_due_sooner_after_a_kill(tmp_path: Path, steps: list[tuple[str, str, float, float, float]]) -> None:
    path, world, now = tmp_path / "rests", World(), 1e9
    path.unlink(missing_ok=True)
    rests = opened(path, now, resumed=False)
    try:
        for step, place, later_s, rest_s, left in steps:
            now += min(later_s, LONGEST_S - max((now - began for began, _ in world.under_way.values()), default=0.0))
            before, inode = path.stat().st_size, path.stat().st_ino
            if step == "begin" and place not in world.under_way:
                rests.begin([(place, rest_s)], now)
                world.under_way[place] = now, rest_s
            elif step == "end" and place in world.under_way:
                world.under_way.pop(place)
                world.due[place] = now + rest_s
                rests.end([(place, now + rest_s)], now)
            elif step == "kill":  # in the middle of a note: what was to follow it did not
                rests.begin([("torn.test", rest_s)], now)
                rests.close()
                if path.stat().st_ino == inode:
                    written = path.stat().st_size
                    with path.open("r+b") as file:
                        file.truncate(before + int(left * (written - before - 1)))
                world.killed(now)
                rests = opened(path, now)
                assert rests.due("never.test") == 0.0
            for known in PLACES:
                if known not in world.under_way:
                    due = world.due.get(known, 0.0)
                    assert rests.due(known) == due or max(rests.due(known), due) <= now, known
    finally:
        rests.close()


def test_the_end_of_a_request_is_bounded(tmp_path: Path) -> None:
    """Who goes on long after a kill waits for nothing."""
    with closing(opened(tmp_path / "rests", 0.0, resumed=False)) as rests:
        rests.begin([("a.test", 1.0), ("@127.0.0.1", 7.0)], 100.0)
    with closing(opened(tmp_path / "rests", 100.0 + LONGEST_S + 5.0)) as rests:
        assert rests.due("a.test") == 100.0 + LONGEST_S + 60.0
        assert rests.due("@127.0.0.1") == 100.0 + LONGEST_S + 7.0
    with closing(opened(tmp_path / "rests", 5000.0)) as rests:
        assert rests.due("a.test") <= 5000.0


def test_a_torn_end_leaves_the_request_under_way(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "rests", 0.0, resumed=False)) as rests:
        rests.begin([("a.test", 1.0)], 100.0)
        rests.end([("a.test", 101.0)], 100.5)
    whole = (tmp_path / "rests").read_bytes()
    (tmp_path / "rests").write_bytes(whole[:-3])
    with closing(opened(tmp_path / "rests", 102.0)) as rests:
        assert rests.due("a.test") == 102.0 + 20.0


def test_what_a_full_disk_tore_is_in_no_middle(tmp_path: Path) -> None:
    """A crawl that breaks off as the disk is full notes the ends of its requests, and there may be room again."""
    with small_disk(tmp_path / "disk", "16k") as disk:
        path, filler = disk / "rests", disk / "filler"
        with closing(opened(path, 1e9, resumed=False, most_lines=1000)) as rests:
            rests.begin([("a.test", 5.0)], 1e9)
            filler.write_bytes(bytes(4096))
            with pytest.raises(DiskFull):
                for number in range(1000):
                    rests.begin([(f"{number}.test", 5.0)], 1e9)
            filler.unlink()
            rests.end([("a.test", 1e9 + 9.0)], 1e9)
        grow(disk)
        with closing(opened(path, 1e9)) as rests:
            assert rests.due("a.test") == 1e9 + 9.0


def test_a_byte_that_is_another_is_named(tmp_path: Path) -> None:
    """Also one that ends a line. In the first line, which says of which boot it is, it makes all of it not believed."""
    path = tmp_path / "rests"
    with closing(opened(path, 0.0, resumed=False)) as rests:
        rests.begin([("a.test", 1.0), ("b.test", 2.0)], 100.0)
        rests.end([("a.test", 160.0)], 100.5)
        rests.note_book(7, 100.5)
    whole = path.read_bytes()
    for at, byte in enumerate(whole):
        for other in {byte ^ 7, 0xF3, *(byte ^ 1 << bit for bit in range(8))} - {byte}:
            path.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
            if at > whole.index(b"\n"):
                with pytest.raises(StateDamaged, match=f"{path} is damaged"):
                    opened(path, 102.0)
            else:
                with closing(opened(path, 102.0)) as rests:
                    assert rests.due("never.test") == 102.0 + BOOKED_WAIT_S


def test_a_journal_that_says_nothing(tmp_path: Path) -> None:
    """Missing, or from before a power cut: all rest. In a new crawl nothing does."""
    path = tmp_path / "rests"
    opened(path, 100.0, resumed=False).close()
    for boot_id in ("boot", "another"):
        with closing(opened(path, 200.0, boot_id=boot_id)) as rests:
            known = boot_id == "boot"
            assert rests.due("a.test") == (0.0 if known else 200.0 + BOOKED_WAIT_S)
            assert rests.due("@127.0.0.1") == (0.0 if known else 207.0)
    path.unlink()
    with closing(opened(path, 200.0)) as rests:
        assert rests.due("a.test") == 200.0 + BOOKED_WAIT_S
    path.unlink()
    with closing(opened(path, 200.0, resumed=False)) as rests:
        assert rests.due("a.test") == 0.0


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["a.test", "b.test", "c.test"]), st.booleans()), max_size=12))
def test_a_name_once_noted_as_public_stays_so(tmp_path: Path, notes: list[tuple[str, bool]]) -> None:
    """Over kills, a journal that is written anew, another boot, and a torn last line."""
    path = tmp_path / "rests"
    path.unlink(missing_ok=True)
    noted: set[str] = set()
    for number, (name, rebooted) in enumerate(notes):
        with closing(opened(path, float(number), boot_id=f"boot{number * rebooted}", most_lines=4)) as rests:
            assert rests.public == noted
            rests.note_public([name, name], float(number))
            rests.begin([("rests.test", 1.0)], float(number))
            noted.add(name)
        whole = path.read_bytes()
        path.write_bytes(whole + whole.splitlines()[-1][:-2] * rebooted)


def test_the_journal_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "rests"
    with closing(opened(path, 0.0, resumed=False, most_lines=100)) as rests:
        for number in range(5000):
            now = float(number)
            rests.begin([(f"h{number}.test", 1.0)], now)
            rests.end([(f"h{number}.test", now + 10.0)], now)
            assert len(path.read_bytes().splitlines()) <= 100
        assert rests.due("h4999.test") == 5009.0


def test_a_book_that_lost_what_was_saved_is_noticed(tmp_path: Path) -> None:
    """The end of its journal is gone with the first bit of it that is another: SQLite takes it for torn."""
    path = tmp_path / "hosts.sqlite"
    with closing(opened(tmp_path / "rests", 0.0, resumed=False)) as rests, HostBook(path) as book:
        for number in range(9):
            book.save_hosts([Host(key_of(f"h{number}.test"), f"h{number}.test", "test", due=1e12)])
            rests.note_book(book.writes, 1.0)
        copied = tmp_path / "copied"
        copied.mkdir()
        for one in tmp_path.glob("hosts.sqlite*"):  # as a kill leaves it
            (copied / one.name).write_bytes(one.read_bytes())
    journal = copied / "hosts.sqlite-wal"
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 1
    journal.write_bytes(data)
    with (
        HostBook(copied / "hosts.sqlite") as book,
        closing(opened(tmp_path / "rests", 2.0)) as rests,
        pytest.raises(StateDamaged, match=r"hosts\.sqlite is damaged"),
    ):
        rests.check_book(book.writes)
