"""Tables of `fyke extract` in a database, through ADBC: columns go over as they are, a batch at a time.

    postgresql://user@host/name    by libpq, with all that its URIs and environment say (PGPASSWORD, ~/.pgpass)
    duckdb:FILE                    a file, made if there is none

Invariant: all is one transaction, so readers see the earlier tables until the new ones are whole; if it fails, the
earlier ones stay. Messages never contain the address, because it may hold a password.
"""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import adbc_driver_duckdb.dbapi as duckdb
import adbc_driver_manager
import adbc_driver_postgresql.dbapi as postgresql
import pyarrow as pa

from fyke.archive.tables import rows_batch
from fyke.core.errors import ConfigurationError, DiskFull
from fyke.disk.files import means_no_room
from fyke.harvest.fields import Row

_FOLLOWED = (
    "create table if not exists fyke_followed"
    " (filled text, files text, crawl text, file_number bigint, row_count bigint)"
)


class Database:
    """The database at `address`, as a context manager.

    Raises ConfigurationError for everything that the database refuses, DiskFull if it has no room.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._kind = address.partition(":")[0]

    def __repr__(self) -> str:
        return f"Database({self._kind})"

    def __enter__(self) -> Self:
        with _explained(self._kind):
            if self._kind == "duckdb":
                self._connection: Any = _duckdb(Path(self._address.removeprefix("duckdb:")))
            else:
                self._connection = postgresql.connect(self._address)
            self._cursor = self._connection.cursor()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with _explained(self._kind), self._connection, self._cursor:
            if kind is None:
                self._connection.commit()
            else:
                self._connection.rollback()

    def table(self, name: str, schema: pa.Schema) -> tuple[str, "DatabaseTable"]:
        """Make the table `name`, new and empty; return its place and writer."""
        return f"{self._kind} table {name}", DatabaseTable(self._cursor, self._kind, name, schema)


class TablePosition(NamedTuple):
    """Position of a database in a crawl's table: `rows` rows of the file with this number, and all earlier files."""

    file: int
    rows: int


class PlacedDatabase(Database):
    """A database that keeps its positions in the tables of a crawl, in its own table `fyke_followed`.

    Its block is one transaction, which locks that table.
    """

    def position(self, table: str, schema: pa.Schema, name: str, crawl: str) -> TablePosition:
        """Return how far `table` has the rows of the crawl's files `name`; make the table if there is none.

        Raises ConfigurationError for a table of another `crawl`, or one that was made in another way.
        """
        with _explained(self._kind):
            self._cursor.execute(_FOLLOWED)
            if self._kind != "duckdb":
                self._cursor.execute("lock table fyke_followed in exclusive mode")
            known = {row[1]: row[2:] for row in self._followed() if row[0] == table}
            if not known:
                self._cursor.adbc_ingest(table, schema.remove_metadata().empty_table(), mode="create")
            if {found[0] for found in known.values()} - {crawl}:
                raise ConfigurationError(
                    f"the table {table} belongs to another crawl, or was filled before this crawl was repaired: drop"
                    " it, and delete its rows in fyke_followed"
                )
            if name not in known:
                self._cursor.execute(f"insert into fyke_followed values ('{table}', '{name}', '{crawl}', 0, 0)")
            return TablePosition(*known[name][1:]) if name in known else TablePosition(0, 0)

    def _followed(self) -> list[tuple[Any, ...]]:
        self._cursor.execute("select filled, files, crawl, file_number, row_count from fyke_followed")
        return list(self._cursor.fetchall())

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows to `table`."""
        with _explained(self._kind):
            self._cursor.adbc_ingest(table, batch.replace_schema_metadata(None), mode="append")

    def move(self, name: str, position: TablePosition) -> None:
        """Note that the rows of the crawl's files `name` are here up to `position`."""
        with _explained(self._kind):
            moved = f"set file_number = {position.file}, row_count = {position.rows} where files = '{name}'"
            self._cursor.execute(f"update fyke_followed {moved}")


class DatabaseTable:
    """A table that is being filled."""

    def __init__(self, cursor: Any, kind: str, name: str, schema: pa.Schema) -> None:
        self._kind = kind
        self._name = name
        self._schema = schema.remove_metadata()
        self._cursor = cursor
        with _explained(kind):
            self._cursor.adbc_ingest(name, self._schema.empty_table(), mode="replace")

    def __repr__(self) -> str:
        return f"DatabaseTable({self._kind}, {self._name})"

    def write(self, rows: Sequence[Row]) -> None:
        """Add `rows`."""
        with _explained(self._kind):
            self._cursor.adbc_ingest(self._name, rows_batch(rows, self._schema), mode="append")

    def close(self) -> None:
        """Do nothing: all tables end with the transaction."""


def _duckdb(path: Path) -> Any:
    """Connect to the file at `path`. A new file that fails is deleted, because it would look damaged, unless another
    process made it meanwhile and holds its lock."""
    new = not path.exists()
    try:
        return duckdb.connect(str(path))
    except adbc_driver_manager.Error:
        with suppress(OSError):
            if new:
                with path.open("rb+") as file:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
        raise


@contextmanager
def _explained(kind: str) -> Iterator[None]:
    try:
        yield
    except adbc_driver_manager.Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        refused = f"{kind} refused: {' '.join(lines[:2])}; unfinished changes were rolled back"
        if means_no_room(refused):
            raise DiskFull(f"{refused}: free some space, and run the command again") from None
        raise ConfigurationError(refused) from None
