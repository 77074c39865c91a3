"""What is remembered of hosts, on disk: a bounded cache in RAM over an SQLite file.

The loop writes a host's record when something that must outlive it changes (a Retry-After, a failure,
its retirement, its address) and the robots.txt it fetched; it reads both when a host enters the window
of waiting visits. `fyke why` and `fyke status` read while another process crawls.

An address is saved with its host: a host that comes back after a restart brings its own saved DNS, so
nothing has to be loaded at once (see `fyke.fetcher.names.Resolver.load`).

Invariant: a save that returned survives the death of the process (`kill -9`); after a power cut the
last saves may be missing but the file is whole (WAL, synchronous=NORMAL). Memory does not grow with
the number of hosts.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fyke.core.errors import DirectoryError, DirectoryInUse, DiskFull, NotACrawl, StateDamaged
from fyke.core.urls import key_of
from fyke.fetcher.robots import RobotsRecord, RobotsState

FORMAT = 1  # PRAGMA user_version; another number was written by another Fyke
CACHE_KIB = 4096

_SCHEMA = f"""
BEGIN;
CREATE TABLE IF NOT EXISTS hosts (
  key INTEGER PRIMARY KEY,          -- xxh3-64 of the name, as a signed number
  name TEXT NOT NULL, domain TEXT NOT NULL, addresses TEXT NOT NULL, addresses_until REAL NOT NULL,
  next_allowed_at REAL NOT NULL, failures INTEGER NOT NULL, retired TEXT NOT NULL,
  pages INTEGER NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL, crawl_delay_s REAL);
CREATE TABLE IF NOT EXISTS robots (
  key INTEGER PRIMARY KEY,          -- xxh3-64 of the origin, as a signed number
  origin TEXT NOT NULL, state TEXT NOT NULL, fetched_at REAL NOT NULL, expires_at REAL NOT NULL,
  status INTEGER NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL, failures INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS robots_fetched_at ON robots (fetched_at);
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_SAVE_HOST = f"INSERT OR REPLACE INTO hosts VALUES ({', '.join('?' * 12)})"
_SAVE_ROBOTS = f"INSERT OR REPLACE INTO robots VALUES ({', '.join('?' * 9)})"
_HOST = "SELECT name, domain, addresses, addresses_until, next_allowed_at, failures, retired, pages, first_seen, last_seen, crawl_delay_s FROM hosts"  # noqa: E501
_ROBOTS = "SELECT origin, state, fetched_at, expires_at, status, reason, body, failures FROM robots"


@dataclass(slots=True)
class HostRecord:
    """What outlives a restart about one host; times are unix seconds, zero for never."""

    name: str
    domain: str
    addresses: tuple[str, ...] = ()
    addresses_until: float = 0.0  # when the saved DNS answer expires
    next_allowed_at: float = 0.0  # no request sooner: Retry-After, sleep after failures
    failures: int = 0  # in a row
    retired: str = ""  # why the host was given up; empty while it is not
    pages: int = 0  # fetched so far
    first_seen: float = 0.0
    last_seen: float = 0.0
    crawl_delay_s: float | None = None  # of robots.txt


@dataclass(frozen=True, slots=True)
class BookStatistics:
    """Rows and size of a HostBook."""

    hosts: int
    robots: int
    retired: int
    size_bytes: int


class HostBook:
    """The hosts of one crawl, in the SQLite file `path`, made if it does not exist.

    With `read_only` nothing is written and the file must exist; another process may be crawling.
    Raises NotACrawl, StateDamaged, DirectoryInUse, DirectoryError when it cannot be opened; any write
    may raise DiskFull. One thread.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        if read_only and not path.is_file():
            raise NotACrawl(f"{path} does not exist: no crawl has remembered hosts here")
        with self._explained():
            self._connection = self._opened()
            self._prepare()

    def __repr__(self) -> str:
        return f"HostBook({str(self._path)!r}{', read_only=True' if self._read_only else ''})"

    def __enter__(self) -> "HostBook":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> sqlite3.Connection:
        mode = "ro" if self._read_only else "rwc"
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5.0, cached_statements=32)

    def _prepare(self) -> None:
        run = self._connection.execute
        run(f"PRAGMA cache_size = -{CACHE_KIB}")
        (found,) = run("PRAGMA user_version").fetchone()
        if self._read_only and not found:
            self._connection.close()
            raise self._error(sqlite3.DataError("it is empty"))
        if found not in (0, FORMAT):
            self._connection.close()
            raise StateDamaged(f"{self._path} has format {found}, this Fyke reads {FORMAT}: use the Fyke that wrote it")
        if self._read_only:
            return
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA journal_size_limit = 67108864")
        if not found:
            self._connection.executescript(_SCHEMA)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Foreign errors, mapped once."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _error(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DiskFull(f"no room to write {self._path}: free some space, then resume; what was saved is safe")
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, sqlite3.DataError):
            return StateDamaged(
                f"{self._path} is damaged ({error}): fyke check --repair {self._path.parent.parent} moves it away, and"
                " hosts are asked for robots.txt again"
            )
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return DirectoryInUse(f"{self._path} is being written by another process: wait for it or stop it")
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return DirectoryError(f"cannot use {self._path} ({error}): check the disk and the permissions")
        return error  # our own mistake

    def host(self, name: str) -> HostRecord | None:
        """What is remembered of the host `name`."""
        with self._explained():
            row = self._connection.execute(f"{_HOST} WHERE key = ?", (_signed(name),)).fetchone()
        return _host_of(row) if row and row[0] == name else None

    def save_host(self, record: HostRecord) -> None:
        """Remember `record` in place of what was known; safe against `kill -9` on return."""
        with self._explained():
            self._connection.execute(_SAVE_HOST, _row_of(record))

    def save_hosts(self, records: Iterable[HostRecord]) -> None:
        """Remember many at once: all or, after a crash, none."""
        with self._explained(), self._transaction():
            self._connection.executemany(_SAVE_HOST, map(_row_of, records))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            yield

    def all_hosts(self) -> Iterator[HostRecord]:
        """Every host, in the order of keys, read as it is asked for. Do not save while iterating."""
        with self._explained():
            for row in self._connection.execute(f"{_HOST} ORDER BY key"):
                yield _host_of(row)

    def robots(self, origin: str) -> RobotsRecord | None:
        """The robots.txt of `origin` as last fetched, expired or not."""
        with self._explained():
            row = self._connection.execute(f"{_ROBOTS} WHERE key = ?", (_signed(origin),)).fetchone()
        return self._robots_of(row) if row and row[0] == origin else None

    def save_robots(self, record: RobotsRecord) -> None:
        """Remember `record` in place of what was known of its origin."""
        row = (
            _signed(record.origin),
            record.origin,
            record.state.value,
            record.fetched_at,
            record.expires_at,
            record.status,
            record.reason,
            zlib.compress(record.body, 1),
            record.failures,
        )
        with self._explained():
            self._connection.execute(_SAVE_ROBOTS, row)

    def forget_since(self, t: float) -> int:
        """Drop robots records fetched after `t` (unix seconds), so that they are fetched again; returns how many.

        For a restart that cut the archive back to `t`: their robots.txt is no longer in it. Nor is what hosts answered
        that were given up since then, so they are given up no more: their pages are waiting visits again.
        """
        with self._explained(), self._transaction():
            run = self._connection.execute
            run("UPDATE hosts SET retired = '', failures = 0 WHERE retired <> '' AND last_seen > ?", (t,))
            return run("DELETE FROM robots WHERE fetched_at > ?", (t,)).rowcount

    def _robots_of(self, row: tuple[str, str, float, float, int, str, bytes, int]) -> RobotsRecord:
        origin, state, fetched_at, expires_at, status, reason, body, failures = row
        try:
            return RobotsRecord(
                origin, RobotsState(state), fetched_at, expires_at, status, reason, zlib.decompress(body), failures
            )
        except (zlib.error, ValueError) as error:
            raise StateDamaged(f"{self._path} is damaged ({origin}: {error}): move it away and resume") from error

    def statistics(self) -> BookStatistics:
        """Counts, by reading both tables: for `fyke status`, not for every second."""
        with self._explained():
            (hosts,) = self._connection.execute("SELECT count(*) FROM hosts").fetchone()
            (retired,) = self._connection.execute("SELECT count(*) FROM hosts WHERE retired <> ''").fetchone()
            (robots,) = self._connection.execute("SELECT count(*) FROM robots").fetchone()
            (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
            (page_bytes,) = self._connection.execute("PRAGMA page_size").fetchone()
        return BookStatistics(hosts, robots, retired, pages * page_bytes)

    def close(self) -> None:
        """Let go of the file; twice does no harm."""
        self._connection.close()


def _signed(text: str) -> int:
    """The key of `text` as SQLite stores it: a signed 64-bit integer."""
    key = key_of(text.encode())
    return key - (1 << 64) if key >> 63 else key


def _row_of(record: HostRecord) -> tuple[object, ...]:
    return (
        _signed(record.name),
        record.name,
        record.domain,
        " ".join(record.addresses),
        record.addresses_until,
        record.next_allowed_at,
        record.failures,
        record.retired,
        record.pages,
        record.first_seen,
        record.last_seen,
        record.crawl_delay_s,
    )


def _host_of(row: tuple[str, str, str, float, float, int, str, int, float, float, float | None]) -> HostRecord:
    name, domain, addresses, *rest = row
    return HostRecord(name, domain, tuple(addresses.split()), *rest)  # type: ignore[arg-type]
