"""Digests for what is small or changes in place: a value of JSON as a file, a line of a journal, a row of SQLite.

Files that only grow have theirs in a manifest (`fyke.disk.store`), finished ones beside them. Used by whoever writes
such a file, and by `fyke check`. Invariant: a byte that is another is noticed by the one who reads it.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

import xxhash

from fyke.core.clock import BOOT_ID
from fyke.disk.files import read_whole

LOST_WRITES = "it was written more often than it says"
OTHER_LAYOUT = "its layout is not what was written"
UNREADABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
# No room to write, be it for what writers and readers of a database understand each other by.
NO_ROOM = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
)
_EXACT = 1 << 53  # up to here a whole number is a float as well, and SQLite has the same for both

# One row: how often the database was written, and the digest of its layout.
TALLY = "CREATE TABLE tally (writes INTEGER NOT NULL, layout INTEGER NOT NULL, digest INTEGER NOT NULL)"
COUNT_WRITE = "UPDATE tally SET writes = writes + 1, digest = row_digest(writes + 1, layout)"


def sealed(name: str, body: object) -> bytes:
    """The bytes of a file that holds `body`, JSON values only, under `name`, with its digest."""
    text = _canonical(body)
    return f'{{"digest":"{xxhash.xxh3_128_hexdigest(text.encode())}","{name}":{text}}}\n'.encode()


def unsealed(name: str, data: bytes) -> Any:
    """What `sealed` made bytes of. Raises ValueError when a byte is another."""
    try:
        body = json.loads(data)[name]
        whole = sealed(name, body) == data
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"it is not of the kind {name}") from error
    if not whole:
        raise ValueError("its bytes are not those that were written")
    return body


def unsealed_or_old(name: str, data: bytes) -> Any:
    """The same of what may be of an earlier version, which wrote the body alone. Raises ValueError."""
    found = json.loads(data)
    old = isinstance(found, dict) and name not in found and "digest" not in found
    return found if old else unsealed(name, data)


def _canonical(body: object) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sealed_line(text: str) -> str:
    """A line of a journal: `text` and its digest."""
    return f"{text} {xxhash.xxh3_64_hexdigest(text.encode())}\n"


def unsealed_line(line: str) -> str:
    """What `sealed_line` made a line of, given without its end. Raises ValueError when a byte is another."""
    text, _, digest = line.rpartition(" ")
    if digest != xxhash.xxh3_64_hexdigest(text.encode()):
        raise ValueError("its bytes are not those that were written")
    return text


def journal_lines(path: Path) -> list[str]:
    """The lines of a journal without their ends, as they were sealed. What a kill tore of the last one is left out.

    Raises ValueError when the byte that ended the last line is another, OSError.
    """
    *lines, torn = read_whole(path).decode("utf-8", "replace").split("\n")
    try:
        unsealed_line(torn[:-1])
    except ValueError:
        return lines
    raise ValueError("it does not end with a line")


def row_digest(*values: Any) -> int:
    """The xxh3-64 of a row as SQLite gives it back, as a signed number."""
    plain = tuple(_plain(value) for value in values)
    digest = xxhash.xxh3_64_intdigest(repr(plain).encode("utf-8", "surrogatepass"))
    return digest - (1 << 64) if digest >> 63 else digest


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return xxhash.xxh3_64_intdigest(value)
    return value + 0.0 if isinstance(value, int | float) and abs(value) < _EXACT else value


def opened_to_read(path: Path) -> sqlite3.Connection:
    """The database at `path`, for one who writes nothing. Raises sqlite3.Error.

    Where the folder cannot be written, or the disk is full, SQLite cannot make the files by which writers and readers
    understand each other: there it is read as it is, unless a writer left a journal.
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
    """Have SQL know `row_digest`."""
    connection.create_function("row_digest", -1, row_digest, deterministic=True)


def layout_digest(connection: sqlite3.Connection) -> int:
    """That of the tables and indexes as they were made."""
    return row_digest(*(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid")))


def tally(connection: sqlite3.Connection) -> int:
    """How often the database was written. Raises ValueError where that or the layout is not as it was written."""
    try:
        rows = connection.execute("SELECT writes, layout, digest FROM tally").fetchall()
        whole = len(rows) == 1 and row_digest(*rows[0][:2]) == rows[0][2] and rows[0][1] == layout_digest(connection)
    except UnicodeDecodeError:  # in what SQLite says of a layout that it cannot read
        whole = False
    if not whole:
        raise ValueError(OTHER_LAYOUT)
    return int(rows[0][0])


def database_fault(connection: sqlite3.Connection, writes: int = 0) -> str:
    """What is wrong with a database whose tables end with a column `digest`, and which was written `writes` times at
    least; empty when nothing is. It is read whole. Raises sqlite3.Error.
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
            return f"a row of {table} is not what was written"
    return ""


def journal_fault(path: Path) -> tuple[str, int]:
    """What is wrong with a journal of sealed lines, and how often it says that a database was written.

    Its first line is the boot in which it was written: in another nobody believes it, nor where it is gone or of an
    earlier version; then nothing is wrong. Raises OSError.
    """
    if not path.exists():
        return "", 0
    boot_id = BOOT_ID.read_text().strip()
    try:
        head, *lines = journal_lines(path) or [""]
        if len(head) in (0, len(boot_id)) or unsealed_line(head) != boot_id:  # a power cut lost it; an earlier version
            return "", 0
        notes = [unsealed_line(line) for line in lines]
    except ValueError as error:
        return str(error), 0
    noted = [int(note[2:]) for note in notes if note.startswith("b ")]
    return "", noted[-1] if noted else 0
