"""Laws of the host book: what was saved is read back, also after death; faults have one clear line."""

import os
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing, suppress
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.errors import DirectoryError, DirectoryInUse, DiskFull, NotACrawl, StateDamaged
from fyke.core.urls import key_of
from fyke.disk.sealed import database_fault, opened_to_read
from fyke.fetcher.book import FORMAT, MOST_UNWRITTEN, MOST_UNWRITTEN_BYTES, HostBook
from fyke.fetcher.host import ROW, Host
from fyke.fetcher.robots import RobotsRecord, RobotsState
from fyke.fetcher.shared_book import ReadBooks, SharedBook


def host(name: str, domain: str = "", **row: Any) -> Host:
    return Host(key_of(name), name, domain, **row)


def row_of(host: Host) -> tuple[Any, ...]:
    return attrgetter(*ROW)(host)  # type: ignore[no-any-return]


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TIMES = st.floats(0, 1e11)
HOSTS = st.builds(
    host,
    name=WORDS,
    domain=WORDS,
    addresses=st.lists(st.ip_addresses().map(str), max_size=3).map(tuple),
    addresses_until=TIMES,
    due=TIMES,
    failures=st.integers(0, 1 << 40),
    retired=WORDS,
    pages=st.integers(0, 1 << 60),
    first_seen=TIMES,
    last_seen=TIMES,
    crawl_delay_s=st.none() | TIMES,
    answering=st.lists(st.integers(0, 65535).map("http://a.test:{}".format), max_size=3).map(tuple),
    port_failures=st.integers(0, 1 << 40),
    faults=st.integers(0, 1 << 40),
)
ROBOTS = st.builds(
    RobotsRecord,
    origin=WORDS,
    state=st.sampled_from(RobotsState),
    fetched_at=TIMES,
    expires_at=TIMES,
    status=st.integers(0, 999),
    reason=WORDS,
    body=st.binary(max_size=200),
    failures=st.integers(0, 1000),
    _agent=st.just(""),
    _rules=st.none(),
)


def robots(origin: str, fetched_at: float) -> RobotsRecord:
    return RobotsRecord(origin, RobotsState.RULES, fetched_at, fetched_at + 9, 200, "robots.txt", b"Disallow: /\n")


@pytest.fixture(scope="module")
def shared_book(tmp_path_factory):
    with HostBook(tmp_path_factory.mktemp("book") / "hosts.db") as book:
        yield book


@given(st.lists(HOSTS, max_size=5), st.lists(ROBOTS, max_size=5))
def test_what_was_saved_is_read_back(shared_book, hosts, records):
    for one in hosts[:2]:
        shared_book.save_hosts([one])
    shared_book.save_hosts(hosts[2:])
    for record in records:
        shared_book.save_robots(record)
    for name, one in {one.name: one for one in hosts}.items():
        assert row_of(shared_book.host(name)) == row_of(one)
    for origin, record in {record.origin: record for record in records}.items():
        assert shared_book.robots(origin) == record


def test_hosts(tmp_path):
    with HostBook(tmp_path / "hosts.db") as book:
        assert book.host("a.test") is None and book.robots("http://a.test:80") is None
        book.save_hosts(host(f"h{i}.test", "test", retired="silent" if i < 3 else "") for i in range(20))
        book.save_robots(robots("http://h1.test:80", 5.0))
        assert {one.name for one in book.hosts()} == {f"h{i}.test" for i in range(20)}
        assert sum(bool(one.retired) for one in book.hosts()) == 3


@given(hosts=st.lists(HOSTS, max_size=8, unique_by=lambda one: one.name), within=WORDS | st.just(""), at=st.integers(0))
def test_hosts_are_searched_for(hosts, within, at):
    with TemporaryDirectory() as folder, HostBook(Path(folder) / "hosts.db") as book:
        book.save_hosts(hosts)
        within = hosts[at % len(hosts)].name[1:3] if hosts and not within else within
        for failing in (False, True):
            found = {one.name for one in book.hosts(within, failing)}
            meant = {one.name for one in hosts if within in one.name and (not failing or one.failures or one.retired)}
            assert found == meant


def test_a_search_reads_what_is_meant_and_no_more(tmp_path):
    """Of a row that is passed over it is not even seen that it is damaged."""
    with HostBook(tmp_path / "hosts.db") as book:
        book.save_hosts([host("meant.test"), host("other.test", pages=1)])
        book._connection.execute("UPDATE hosts SET pages = 2 WHERE name = 'other.test'")
        assert [one.name for one in book.hosts("meant")] == ["meant.test"]
        with pytest.raises(StateDamaged, match=r"other\.test"):
            list(book.hosts("other"))


def test_a_host_in_several_books_comes_once(tmp_path):
    """Also where none of them met it later than the others: it moved before it was asked."""
    paths = [tmp_path / f"{number}.db" for number in range(3)]
    for number, path in enumerate(paths):
        with HostBook(path) as book:
            same = [host("never.test"), host("tied.test", last_seen=7.0), host("moved.test", last_seen=9.0 - number)]
            book.save_hosts([*same, host(f"own-{number}.test", last_seen=1.0)])
    with ReadBooks(paths) as books:
        found = {one.name: one.last_seen for one in books.hosts()}
        names = [one.name for one in books.hosts()]
        assert [(one.name, one.last_seen) for one in books.hosts("moved")] == [("moved.test", 9.0)]
        assert sorted(names) == [
            "moved.test",
            "never.test",
            *(f"own-{number}.test" for number in range(3)),
            "tied.test",
        ]
        assert all(books.host(name).last_seen == at for name, at in found.items())
        assert found["moved.test"] == 9.0


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=4))
def test_a_host_in_several_books_rests_as_long_as_any_of_them_says(met):
    """Whoever reads them: the agent that took the host over, `fyke cloak`, and what people see."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.db" for number in range(len(met))]
        for path, (seen, due) in zip(paths, met, strict=True):
            with HostBook(path) as book:
                book.save_hosts([host("rests.test", last_seen=seen, due=due)])
        with ReadBooks(paths) as books, SharedBook(paths[0], paths) as shared:
            for found in (books.host("rests.test"), shared.host("rests.test"), *books.hosts()):
                assert (found.last_seen, found.due) == tuple(map(max, zip(*met, strict=True)))


@pytest.mark.parametrize("size", [10, MOST_UNWRITTEN_BYTES // 3])
def test_rules_are_written_with_hosts_or_when_they_are_many(tmp_path, size):
    """Whoever else reads the book finds them then; who saved them, at once."""
    path = tmp_path / "hosts.db"
    with HostBook(path) as book:
        unseen = 0
        for number in range(3 * MOST_UNWRITTEN):
            record = robots(f"http://h{number}.test:80", 5.0)
            record.body = bytes(size)
            book.save_robots(record)
            assert book.robots(record.origin).body == bytes(size)
            with HostBook(path, read_only=True) as reader:
                unseen = 0 if reader.robots(record.origin) else unseen + 1
            assert unseen < MOST_UNWRITTEN and unseen * size < MOST_UNWRITTEN_BYTES
        book.save_robots(robots("http://z.test:80", 5.0))
        book.save_hosts([host("z.test", "test")])
        with HostBook(path, read_only=True) as reader:
            assert reader.robots("http://z.test:80")
        book.save_robots(robots("http://y.test:80", 5.0))
        assert book.forget_since(4.0) == 3 * MOST_UNWRITTEN + 2, "what is not written yet is forgotten too"
        book.save_robots(robots("http://x.test:80", 5.0))
        book.save_hosts([])
        book.save_robots(robots("http://w.test:80", 5.0))
        book._connection.execute("PRAGMA query_only = 1")  # as where the disk is full: closing must not fail
    with HostBook(path, read_only=True) as reader:
        assert reader.robots("http://x.test:80")
        assert not reader.robots("http://y.test:80") and not reader.robots("http://w.test:80")


def test_robots_fetched_after_the_cut_are_forgotten(tmp_path):
    with HostBook(tmp_path / "hosts.db") as book:
        for t in (1.0, 2.0, 3.0):
            book.save_robots(robots(f"http://h{t:.0f}:80", t))
        assert book.forget_since(2.0) == 1
        assert book.robots("http://h2:80") and not book.robots("http://h3:80")


def test_a_host_given_up_after_the_checkpoint_is_asked_again(tmp_path):
    """What it answered before it was given up is not in the archive any more, and must be fetched again."""
    with HostBook(tmp_path / "hosts.db") as book:
        for t in (1.0, 2.0, 3.0):
            book.save_hosts([host(f"h{t:.0f}.test", "test", failures=8, retired="8 failures", last_seen=t)])
        book.forget_since(2.0)
        assert [book.host(f"h{n}.test").retired for n in (1, 2, 3)] == ["8 failures", "8 failures", ""]
        assert [book.host(f"h{n}.test").failures for n in (1, 2, 3)] == [8, 8, 0]


def test_saves_survive_sudden_death(tmp_path):
    program = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        from fyke.fetcher.book import HostBook
        from fyke.fetcher.host import Host
        book = HostBook(Path(sys.argv[1]))
        for i in range(100):
            book.save_hosts([Host(i, f"h{i}.test", "test", due=float(i))])
        book.save_hosts(Host(0, "h0.test", "torn") if i else os._exit(9) for i in (1, 0))
    """)
    path = tmp_path / "hosts.db"
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == 9
    with HostBook(path) as book:
        assert [book.host(f"h{i}.test").due for i in range(100)] == list(range(100))
        assert book.host("h0.test").domain == "test"


def test_many_are_saved_all_or_none(tmp_path):
    def broken():
        yield host("a.test", "test")
        raise RuntimeError("the plug")

    with HostBook(tmp_path / "hosts.db") as book:
        with pytest.raises(RuntimeError, match="plug"):
            book.save_hosts(broken())
        assert book.host("a.test") is None
        book.save_hosts([host("b.test", "test")])
        assert book.host("b.test")


def test_it_can_be_read_while_another_writes_and_after_it_ended(tmp_path):
    path = tmp_path / "hosts.db"
    with HostBook(path) as book:
        book.save_hosts([host("a.test", "test")])
        with HostBook(path, read_only=True) as reader:
            assert reader.host("a.test")
            book.save_hosts([host("b.test", "test")])
            assert reader.host("b.test")
            with pytest.raises(DirectoryError):
                reader.save_hosts([host("c.test", "test")])
    with HostBook(path, read_only=True) as reader:
        assert reader.host("b.test")


def test_two_writers_are_told(tmp_path, monkeypatch):
    path = tmp_path / "hosts.db"
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **given: real(*a, **(given | {"timeout": 0.0})))
    with HostBook(path) as one, HostBook(path) as other:
        one._connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(DirectoryInUse, match=r"hosts\.db"):
            other.save_hosts([host("a.test", "test")])
        one._connection.execute("ROLLBACK")


def test_a_full_disk_says_so_and_keeps_what_was_safe(tmp_path):
    with HostBook(tmp_path / "hosts.db") as book:
        book.save_hosts([host("a.test", "test")])
        book._connection.execute("PRAGMA max_page_count = 10")
        with pytest.raises(DiskFull, match=r"hosts\.db"):
            book.save_hosts(host(f"h{i}.test", "x" * 1000) for i in range(1000))
        assert book.host("a.test") and not book.host("h0.test")


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b"SQLite format 3\0" + os.urandom(5000)])
def test_a_damaged_file_says_so(tmp_path, content):
    path = tmp_path / "hosts.db"
    path.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(StateDamaged, match=r"hosts\.db is damaged"):
            HostBook(path, read_only=read_only)


def test_damage_inside_is_found_when_it_is_read(tmp_path):
    path = tmp_path / "hosts.db"
    with HostBook(path) as book:
        book.save_robots(robots("http://a:80", 1.0))
        book.save_hosts([])  # rules are written with hosts
        book._connection.execute("UPDATE robots SET body = x'00'")
        with pytest.raises(StateDamaged, match="http://a:80"):
            book.robots("http://a:80")
        book.save_hosts(host(f"h{i}.test", "test") for i in range(2000))
    data = path.read_bytes()
    path.write_bytes(data[:8192] + b"\xff" * (len(data) - 8192))
    with pytest.raises(StateDamaged), HostBook(path) as book:
        list(book.hosts())


def test_a_layout_that_is_another_is_named(tmp_path):
    """At any byte, also where what SQLite says of it is no UTF-8."""
    path = tmp_path / "hosts.db"
    HostBook(path).close()
    whole = path.read_bytes()[:4096]
    rest = path.read_bytes()[4096:]
    for at in range(whole.index(b"CREATE"), 4096, 5):
        path.write_bytes(whole[:at] + b"\xd9" + whole[at + 1 :] + rest)
        with closing(opened_to_read(path)) as connection, suppress(sqlite3.Error):
            assert database_fault(connection)
        for read_only in (False, True):
            with pytest.raises(StateDamaged, match=r"hosts\.db is damaged"):
                HostBook(path, read_only=read_only)


def test_a_missing_file(tmp_path):
    with pytest.raises(NotACrawl):
        HostBook(tmp_path / "none.db", read_only=True)
    with pytest.raises(DirectoryError):
        HostBook(tmp_path / "no" / "folder" / "hosts.db")


@pytest.mark.parametrize("format", [1, FORMAT - 1, FORMAT + 1, 99])
def test_another_format_is_refused_and_stays_as_it_is(tmp_path, format):
    path = tmp_path / "hosts.db"
    HostBook(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {format}")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StateDamaged, match=f"has format {format}, this Fyke reads {FORMAT}: use the Fyke"):
            HostBook(path, read_only=read_only)
    assert path.read_bytes() == before


def test_memory_is_bounded_by_the_page_cache(tmp_path):
    with HostBook(tmp_path / "hosts.db") as book:
        (pages,) = book._connection.execute("PRAGMA cache_size").fetchone()
        assert pages == -4096
