"""Digests for small or changing things: a JSON value as a file, a line of a journal, a row of SQLite.

Files that only grow have their digests in a manifest (`fyke.disk.store`), finished files beside them. Used by the
writers of these files, and by `fyke check`. Invariant: a reader notices a changed byte.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

import xxhash

from fyke.core.clock import BOOT_ID
from fyke.disk.files import read_whole

LOST_WRITES = "its last writes are missing"
OTHER_LAYOUT = "its layout differs from what was written"
UNREADABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
# No room to write, also for the shared memory between writers and readers of a database.
NO_ROOM = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
)
_EXACT = 1 << 53  # up to here a whole number is also a float, and SQLite stores both alike

# One row: how often the database was written, and the digest of its layout.
TALLY = "CREATE TABLE tally (writes INTEGER NOT NULL, layout INTEGER NOT NULL, digest INTEGER NOT NULL)"
COUNT_WRITE = "UPDATE tally SET writes = writes + 1, digest = row_digest(writes + 1, layout)"


def sealed(name: str, body: object) -> bytes:
    """Return the bytes of a file that holds `body` (JSON values only) under `name`, with its digest."""
    text = _canonical(body)
    return f'{{"digest":"{xxhash.xxh3_128_hexdigest(text.encode())}","{name}":{text}}}\n'.encode()


def unsealed(name: str, data: bytes) -> Any:
    """Return the body in the bytes that `sealed` returned. Raises ValueError if a byte changed."""
    try:
        body = json.loads(data)[name]
        whole = sealed(name, body) == data
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"it is not of the kind {name}") from error
    if not whole:
        raise ValueError("its bytes are not those that were written")
    return body


def _canonical(body: object) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sealed_line(text: str) -> str:
    """Return a line of a journal: `text` and its digest."""
    return f"{text} {xxhash.xxh3_64_hexdigest(text.encode())}\n"


def unsealed_line(line: str) -> str:
    """Return the text of a `sealed_line`, given without its line end. Raises ValueError if a byte changed."""
    text, _, digest = line.rpartition(" ")
    if digest != xxhash.xxh3_64_hexdigest(text.encode()):
        raise ValueError("its bytes are not those that were written")
    return text


def journal_lines(path: Path) -> list[str]:
    """Return the sealed lines of a journal without their line ends. A last line torn by a kill is left out.

    Raises ValueError if the byte that ended the last line changed. Raises OSError.
    """
    *lines, torn = read_whole(path).decode("utf-8", "replace").split("\n")
    try:
        unsealed_line(torn[:-1])
    except ValueError:
        return lines
    raise ValueError("it does not end with a line")


def row_digest(*values: Any) -> int:
    """Return the xxh3-64 of a row as SQLite gives it back, as a signed number."""
    plain = tuple(_plain(value) for value in values)
    digest = xxhash.xxh3_64_intdigest(repr(plain).encode("utf-8", "surrogatepass"))
    return digest - (1 << 64) if digest >> 63 else digest


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return xxhash.xxh3_64_intdigest(value)
    return value + 0.0 if isinstance(value, int | float) and abs(value) < _EXACT else value


def opened_to_read(path: Path) -> sqlite3.Connection:
    """Open the database at `path` to read only. Raises sqlite3.Error.

    If the folder cannot be written or the disk is full, SQLite cannot make the files that writers and readers share.
    The database is then read as it is, unless a writer left a journal.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = _connected(uri)
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        journal = path.with_name(f"{path.name}-wal")
        left = journal.exists() and journal.stat().st_size > 0
        if error.sqlite_errorcode & 0xFF not in UNREADABLE or left:
            raise
        return _connected(f"{uri}&immutable=1")
    return connection


def _connected(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5.0, cached_statements=32)


def teach(connection: sqlite3.Connection) -> None:
    """Make `row_digest` a function of SQL."""
    connection.create_function("row_digest", -1, row_digest, deterministic=True)


def layout_digest(connection: sqlite3.Connection) -> int:
    """Return the digest of the statements that made the tables and indexes."""
    return row_digest(*(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid")))


def tally(connection: sqlite3.Connection) -> int:
    """Return how often the database was written. Raises ValueError if that count or the layout is damaged."""
    try:
        rows = connection.execute("SELECT writes, layout, digest FROM tally").fetchall()
        whole = len(rows) == 1 and row_digest(*rows[0][:2]) == rows[0][2] and rows[0][1] == layout_digest(connection)
    except UnicodeDecodeError:  # in SQLite's message about a layout that it cannot read
        whole = False
    if not whole:
        raise ValueError(OTHER_LAYOUT)
    return int(rows[0][0])


def database_fault(connection: sqlite3.Connection, writes: int = 0) -> str:
    """Read a database whose tables end with a column `digest` and which was written at least `writes` times; return
    what is wrong with it, or "". Raises sqlite3.Error.
    """
    teach(connection)
    try:
        if tally(connection) < writes:
            return LOST_WRITES
    except ValueError as error:
        return str(error)
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        return str(said).splitlines()[-1]
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
        fields = columns.removesuffix(", digest")
        found = connection.execute(f"SELECT 1 FROM {table} WHERE digest IS NOT row_digest({fields}) LIMIT 1").fetchone()
        if found:
            return f"a row of {table} differs from what was written"
    return ""


def journal_fault(path: Path) -> tuple[str, int]:
    """Return what is wrong with a journal of sealed lines, or "", and how often it says that a database was written.

    Its first line is the id of the boot in which it was written. A journal of another boot, or one that is gone, does
    not count: nothing is wrong then. Raises OSError.
    """
    if not path.exists():
        return "", 0
    boot_id = BOOT_ID.read_text().strip()
    try:
        head, *lines = journal_lines(path) or [""]
        if not head or unsealed_line(head) != boot_id:  # a power cut lost it
            return "", 0
        notes = [unsealed_line(line) for line in lines]
    except ValueError as error:
        return str(error), 0
    noted = [int(note[2:]) for note in notes if note.startswith("b ")]
    return "", noted[-1] if noted else 0
