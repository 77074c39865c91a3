"""The links of a crawl as an edge list: source URL, target URL, kind; Parquet or tab-separated.

Made by `fyke.export.job`. The links table names a source by its key; `fyke.export.url_keys` gives the URL. Every row of
the table is an edge, as often as the link was found. Invariant: a line of TSV is an edge, because no canonical URL can
hold a tab or a line end.
"""

import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv

from fyke.core.batches import LinkKind
from fyke.export.growing import GrowingFile
from fyke.export.source import RowRange, Source
from fyke.export.staging import Mark, Staging
from fyke.export.tabular import Sheets
from fyke.export.url_keys import Addresses

FILE_LINKS = 400_000
PART_LINKS = 50_000

_COLUMNS = ["source", "target_url", "kind"]
_KINDS = pa.array([kind.name.lower() for kind in sorted(LinkKind)])
_WORD = pa.dictionary(pa.int8(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), metadata={"description": "URL of the page the link is on."}),
        pa.field("target", pa.string(), metadata={"description": "URL that the link points at."}),
        pa.field("kind", _WORD, metadata={"description": "page, requisite, nofollow or redirect."}),
    ],
    metadata={"description": "One row for each time that a link was found."},
)
_PLAIN = pa.schema([field.with_type(pa.string()) for field in SCHEMA])


class _Edges:
    """Links with their URLs."""

    def __init__(self, source: Source, staging: Staging) -> None:
        self._addresses = Addresses(source, staging.scratch)

    def read(self, part: RowRange) -> Iterator[pa.Table]:
        """Yield the edges of `part`, with `SCHEMA`."""
        for batch in part.batches:
            kinds = pa.array(batch.column("kind").to_numpy().astype(np.int8))
            words = pa.DictionaryArray.from_arrays(kinds, _KINDS)
            sources = self._addresses.of(batch.column("source").to_numpy())
            yield pa.Table.from_arrays([sources, batch.column("target_url"), words], schema=SCHEMA)


class EdgeSheets(Sheets):
    """Edges as Parquet."""

    unit = "links"
    columns = _COLUMNS
    file_rows = FILE_LINKS

    def __init__(self, source: Source, staging: Staging, *, single: bool) -> None:
        super().__init__(source, staging, "links", SCHEMA, single=single)
        self._edges = _Edges(source, staging)

    def _tables(self, part: RowRange) -> Iterator[pa.Table]:
        return self._edges.read(part)


class EdgeLines:
    """Edges as tab-separated lines below a line of names."""

    unit = "links"
    unreadable = 0

    def __init__(self, source: Source, staging: Staging, *, packed: bool) -> None:
        self._source = source
        self._out = staging.out
        self._packed = packed
        self.total = source.until.links
        self._edges = _Edges(source, staging)

    def parts(self, mark: Mark) -> Iterator[Mark]:
        with GrowingFile(self._out, mark.state.get("length", 0), packed=self._packed) as file:
            for part in self._source.parts("links", _COLUMNS, mark, PART_LINKS):
                yield Mark(part.end, part.end, {"length": file.add(self._lines(part))})

    def _lines(self, part: RowRange) -> bytes:
        out = io.BytesIO()
        if part.begin == 0:
            out.write("\t".join(SCHEMA.names).encode() + b"\n")
        options = pv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        with pv.CSVWriter(out, _PLAIN, write_options=options) as writer:
            for table in self._edges.read(part):
                writer.write_table(table.cast(_PLAIN))
        return out.getvalue()

    def finish(self, mark: Mark) -> None:
        """The file is whole when its last part is."""
        assert mark.done == self.total
