"""What is remembered of hosts, on disk: a bounded cache in RAM over an SQLite file.

The fetcher writes each robots.txt that it fetched, and a host when something that must last changes (a long rest, a
failure, its retirement, its addresses). It reads both when a host enters the workbench. The book keeps the fields `ROW`
of a `fyke.fetcher.host.Host`. `fyke why` and `fyke status` read while another process crawls.

A host brings its saved addresses along after a restart, so nothing has to be loaded at once (see
`fyke.fetcher.names.Resolver.load`).

Invariant: saved hosts survive the death of the process (`kill -9`), and so do the rules saved before them. Rules alone
are written some at a time, because those fetched since the last checkpoint are fetched again anyway
(`HostBook.forget_since`). After a power cut the last saves may be missing, but the file is whole (WAL,
synchronous=NORMAL). Bounded: memory does not grow with the number of hosts.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

from isal import isal_zlib

from fyke.core.closing import Closing
from fyke.core.errors import DirectoryError, DirectoryInUse, NotACrawl, StateDamaged
from fyke.core.urls import key_of, split
from fyke.disk.few_keys import ANY, MOST_KEYS, FewKeys
from fyke.disk.files import no_room
from fyke.disk.sealed import (
    COUNT_WRITE,
    NO_ROOM,
    OTHER_LAYOUT,
    TALLY,
    database_fault,
    layout_digest,
    opened_to_read,
    row_digest,
    tally,
    teach,
)
from fyke.fetcher.host import ROW, Host
from fyke.fetcher.robots import RobotsRecord, RobotsState

FORMAT = 5  # PRAGMA user_version; another number was written by another Fyke
VERIFIED_BYTES = 16 << 20  # a book up to this size is read whole when it is opened to be written: a fifth of a second
CACHE_KIB = 4096
MOST_UNWRITTEN = 64  # saved rules that are not in the file yet
MOST_UNWRITTEN_BYTES = 64 << 10

_SCHEMA = f"""
CREATE TABLE hosts (
  key INTEGER PRIMARY KEY,          -- the key of the name, as a signed number
  name TEXT NOT NULL, domain TEXT NOT NULL, addresses TEXT NOT NULL, addresses_until REAL NOT NULL,
  next_allowed_at REAL NOT NULL,    -- a host's `due`
  failures INTEGER NOT NULL, retired TEXT NOT NULL,
  pages INTEGER NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL, crawl_delay_s REAL, trouble TEXT NOT NULL,
  answering TEXT NOT NULL, vain INTEGER NOT NULL, faults INTEGER NOT NULL,
  digest INTEGER);                  -- of the row before it
CREATE TABLE robots (
  key INTEGER PRIMARY KEY,          -- the key of the origin, as a signed number
  origin TEXT NOT NULL, state TEXT NOT NULL, fetched_at REAL NOT NULL, expires_at REAL NOT NULL,
  status INTEGER NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL, failures INTEGER NOT NULL, digest INTEGER);
CREATE INDEX robots_fetched_at ON robots (fetched_at);
{TALLY};
INSERT INTO tally VALUES (0, 0, 0);
"""
_HOST_COLUMNS = (
    "key, name, domain, addresses, addresses_until, next_allowed_at, failures, retired, pages, first_seen, last_seen,"
    " crawl_delay_s, trouble, answering, vain, faults"
)
_SAVE_HOST = f"INSERT OR REPLACE INTO hosts VALUES ({', '.join('?' * (len(ROW) + 1))})"
_SAVE_ROBOTS = f"INSERT OR REPLACE INTO robots VALUES ({', '.join('?' * 10)})"
# A row is the fields `ROW` of a `Host`, in this order, and its digest.
_HOST = "SELECT * FROM hosts"
_ROBOTS = "SELECT * FROM robots"
_FORGIVEN = _HOST_COLUMNS.replace("failures, retired", "0, ''").replace("vain, faults", "0, 0")
_FORGIVE = f"UPDATE hosts SET retired = '', failures = 0, vain = 0, faults = 0, digest = row_digest({_FORGIVEN})"
_FAILING = "(failures > 0 OR retired <> '')"
_fields_of = attrgetter(*ROW)


class HostBook(Closing):
    """The hosts of one crawl, in the SQLite file `path`, made if it does not exist.

    With `read_only` nothing is written and the file must exist; another process may be crawling. Raises NotACrawl,
    StateDamaged, DirectoryInUse or DirectoryError if it cannot be opened. Any write may raise DiskFull. One thread.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._unwritten: dict[str, tuple[Any, ...]] = {}  # rows of rules, by origin
        self._unwritten_bytes = 0
        if read_only and not path.is_file():
            raise NotACrawl(f"{path} does not exist: no crawl has run here")
        with self._explained():
            self._connection = self._opened()
            self._prepare()
            self._host_keys, self._robots_keys = self._keys("hosts"), self._keys("robots")

    def __repr__(self) -> str:
        return f"HostBook({str(self._path)!r}{', read_only=True' if self._read_only else ''})"

    def _opened(self) -> sqlite3.Connection:
        if self._read_only:
            return opened_to_read(self._path)
        uri = f"{self._path.absolute().as_uri()}?mode=rwc"
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
        teach(self._connection)
        if found:
            self._verify()
        if self._read_only:
            return
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA journal_size_limit = 67108864")
        if not found:
            self._connection.executescript(f"BEGIN; {_SCHEMA}")
            layout = layout_digest(self._connection)
            run("UPDATE tally SET layout = ?, digest = row_digest(writes, ?)", (layout, layout))
            run(f"PRAGMA user_version = {FORMAT}")
            run("COMMIT")
        self.writes = tally(self._connection)  # how often it was written, by any process

    def _keys(self, table: str) -> FewKeys:
        """Return the keys in `table`. If another process may write it, any key may be there."""
        rows = self._connection.execute(f"SELECT key FROM {table}")
        return FewKeys((key for (key,) in rows), ANY if self._read_only else MOST_KEYS)

    def _verify(self) -> None:
        """Raises StateDamaged if the layout is not as it was written, or a row in a small book opened to be written."""
        try:
            tally(self._connection)
            little = self._path.stat().st_size <= VERIFIED_BYTES and not self._read_only
            fault = database_fault(self._connection) if little else ""
        except (ValueError, sqlite3.OperationalError) as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) != sqlite3.SQLITE_ERROR:
                raise
            fault = str(error)
        if fault:
            self._connection.close()
            raise self._error(sqlite3.DataError(fault.removeprefix("it is damaged: ")))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Map foreign errors, once."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._error(error) from error
        except UnicodeDecodeError as error:  # in SQLite's message about a layout that it cannot read
            raise self._error(sqlite3.DataError(OTHER_LAYOUT)) from error

    def _error(self, error: sqlite3.Error) -> Exception:
        code = (exact := getattr(error, "sqlite_errorcode", 0)) & 0xFF
        if exact in NO_ROOM:
            return no_room(self._path)
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, sqlite3.DataError):
            mend = f"fyke check --repair {self._path.parent.parent} moves it away; robots.txt files are asked for again"
            return StateDamaged(f"{self._path} is damaged ({error}): {mend}")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return DirectoryInUse(f"{self._path} is being written by another process: wait for it or stop it")
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return DirectoryError(f"cannot use {self._path} ({error}): check the disk and the permissions")
        return error  # our own mistake

    def host(self, name: str) -> Host | None:
        """Return what is remembered of the host `name`, or None."""
        key = _signed(name)
        if key not in self._host_keys:
            return None
        with self._explained():
            row = self._connection.execute(f"{_HOST} WHERE key = ?", (key,)).fetchone()
        return _host_of(self._whole(row)) if row and row[1] == name else None

    def _whole(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `row` without its digest. Raises StateDamaged if it is not what was written."""
        if row_digest(*row[:-1]) != row[-1]:
            raise self._error(sqlite3.DataError(f"the row of {str(row[1])[:100]} differs from what was written"))
        return row[:-1]

    def save_hosts(self, hosts: Iterable[Host]) -> None:
        """Remember `hosts` in place of what was known: all or none, and safe against `kill -9` on return."""
        with self._explained(), self._transaction():
            self._connection.executemany(_SAVE_HOST, map(self._row_of, hosts))

    def _row_of(self, host: Host) -> tuple[object, ...]:
        _, *fields = _fields_of(host)
        key = _signed(host.name)
        self._host_keys.add(key)
        row = key, *(" ".join(field) if isinstance(field, tuple) else field for field in fields)
        return *row, row_digest(*row)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Do the work within wholly or not at all. Rules that wait to be written are written before it."""
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            self._connection.executemany(_SAVE_ROBOTS, self._unwritten.values())
            yield
            self._connection.execute(COUNT_WRITE)
        self._unwritten.clear()
        self._unwritten_bytes = 0
        self.writes += 1

    def hosts(self, within: str = "", failing: bool = False) -> Iterator[Host]:
        """Iterate by key over hosts with `within` in their names; with `failing` over those that fail or were retired.

        Each row is read on demand, and SQLite skips the others. Do not save while iterating.
        """
        wanted = f"instr(name, ?) AND {_FAILING}" if failing else "instr(name, ?)"
        with self._explained():
            for row in self._connection.execute(f"{_HOST} WHERE {wanted} ORDER BY key", (within,)):
                yield _host_of(self._whole(row))

    def robots(self, origin: str) -> RobotsRecord | None:
        """Return the robots.txt of `origin` as last fetched, expired or not."""
        row = self._unwritten.get(origin)
        if row is None and (key := _signed(origin)) in self._robots_keys:
            with self._explained():
                row = self._connection.execute(f"{_ROBOTS} WHERE key = ?", (key,)).fetchone()
        return self._robots_of(self._whole(row)[1:]) if row and row[1] == origin else None

    def robots_state(self, name: str) -> str:
        """Return the state of the robots.txt of the host `name` (https, otherwise http); empty if none was asked
        for."""
        origins = (split(f"{scheme}://{name}/").origin for scheme in ("https", "http"))
        return next((record.state.value for origin in origins if (record := self.robots(origin))), "")

    def save_robots(self, record: RobotsRecord) -> None:
        """Remember `record` in place of what was known of its origin. It is written with others, or with hosts."""
        key = _signed(record.origin)
        self._robots_keys.add(key)
        row = (
            key,
            record.origin,
            record.state.value,
            record.fetched_at,
            record.expires_at,
            record.status,
            record.reason,
            isal_zlib.compress(record.body, 1),  # most bodies are empty, for which zlib takes 50 us
            record.failures,
        )
        self._unwritten[record.origin] = *row, row_digest(*row)
        self._unwritten_bytes += len(record.body)
        if len(self._unwritten) >= MOST_UNWRITTEN or self._unwritten_bytes >= MOST_UNWRITTEN_BYTES:
            self.save_hosts([])

    def forgive(self) -> None:
        """Clear all failures and take back all retirements, so that pages of these hosts are asked for again."""
        with self._explained(), self._transaction():
            self._connection.execute(f"{_FORGIVE} WHERE {_FAILING} OR vain > 0 OR faults > 0")

    def forget_since(self, t: float) -> int:
        """Drop robots records fetched after `t` (unix seconds), so that they are fetched again; return how many.

        For a restart that cut the archive back to `t`: it lacks their robots.txt, and the answers of hosts that were
        retired since then. Those hosts are no longer retired, and their pages wait again.
        """
        with self._explained(), self._transaction():
            run = self._connection.execute
            run(f"{_FORGIVE} WHERE retired <> '' AND last_seen > ?", (t,))
            return run("DELETE FROM robots WHERE fetched_at > ?", (t,)).rowcount

    def _robots_of(self, row: tuple[str, str, float, float, int, str, bytes, int]) -> RobotsRecord:
        origin, state, fetched_at, expires_at, status, reason, body, failures = row
        try:
            return RobotsRecord(
                origin, RobotsState(state), fetched_at, expires_at, status, reason, zlib.decompress(body), failures
            )
        except (zlib.error, ValueError) as error:
            raise self._error(sqlite3.DataError(f"{origin}: {error}")) from error

    def close(self) -> None:
        """Let go of the file and of rules that were not written with hosts; twice does no harm. Nothing is written,
        because the disk may be full and the caller has more to close."""
        self._connection.close()


def _signed(text: str) -> int:
    """Return the key of `text` as SQLite stores it: a signed 64-bit integer."""
    key = key_of(text.encode())
    return key - (1 << 64) if key >> 63 else key


def _host_of(row: tuple[Any, ...]) -> Host:
    fields = dict(zip(ROW, row, strict=True))
    fields["key"] %= 1 << 64
    for words in ("addresses", "answering"):
        fields[words] = tuple(fields[words].split())
    return Host(**fields)
