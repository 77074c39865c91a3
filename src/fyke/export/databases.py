"""Tables of `fyke extract` in a database, through ADBC: columns go over as they are, a batch at a time.

    postgresql://user@host/name    by libpq, with all that its URIs and environment say (PGPASSWORD, ~/.pgpass)
    duckdb:FILE                    a file, made where there is none

Invariant: one transaction, so that who reads sees the tables of before until the new ones are whole; where it fails,
they stay. A message never has the address in it, which may hold a password.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import adbc_driver_duckdb.dbapi as duckdb
import adbc_driver_manager
import adbc_driver_postgresql.dbapi as postgresql
import pyarrow as pa

from fyke.archive.tables import rows_batch
from fyke.core.errors import ConfigurationError
from fyke.harvest.fields import Row


class Database:
    """The database at `address`. Use as a context manager; raises ConfigurationError for all that it refuses."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._kind = address.partition(":")[0]

    def __repr__(self) -> str:
        return f"Database({self._kind})"

    def __enter__(self) -> Self:
        with _explained(self._kind):
            if self._kind == "duckdb":
                self._connection: Any = duckdb.connect(self._address.removeprefix("duckdb:"))
            else:
                self._connection = postgresql.connect(self._address)
            self._cursor = self._connection.cursor()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _explained(self._kind):
            if kind is None:
                self._connection.commit()
            else:
                self._connection.rollback()
            self._cursor.close()
            self._connection.close()

    def table(self, name: str, schema: pa.Schema) -> tuple[str, "DatabaseTable"]:
        """The table `name`, new and empty."""
        return f"{self._kind} table {name}", DatabaseTable(self._cursor, self._kind, name, schema)


class DatabaseTable:
    """A table that is filled."""

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
        """Nothing is left to do: all tables end with the transaction."""


@contextmanager
def _explained(kind: str) -> Iterator[None]:
    try:
        yield
    except adbc_driver_manager.Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ConfigurationError(f"{kind} refused: {' '.join(lines[:2])}; nothing in it was changed") from None
