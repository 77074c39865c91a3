"""Where do pages rest?

Writers: `WarcWriter` (WARC/1.1, with a CDXJ index beside each file), `PagesTable` and `LinksTable`
(Parquet), `write_hosts` and `write_domains`. Readers: `read_table`, `scan_table`, `segments`, `check_archive`.

A checkpoint goes: `state()` of every writer, fsync of its `dirty_files()` (files and folders), the
manifest, then `durable()`. A crawl that starts again gives every writer its state by `restore`
before anything is written.
"""

from fyke.archive.check import Fault, check_archive
from fyke.archive.reading import TableFile, generation, read_file, read_table, rows_recorded, scan_table, segments
from fyke.archive.records import Original
from fyke.archive.schemas import SCHEMAS
from fyke.archive.summaries import HostRow, write_domains, write_hosts
from fyke.archive.table_files import TableStatistics
from fyke.archive.tables import LinksTable, PagesTable
from fyke.archive.warc import RecordPlace, WarcStatistics, WarcWriter

__all__ = [
    "SCHEMAS",
    "Fault",
    "HostRow",
    "LinksTable",
    "Original",
    "PagesTable",
    "RecordPlace",
    "TableFile",
    "TableStatistics",
    "WarcStatistics",
    "WarcWriter",
    "check_archive",
    "generation",
    "read_file",
    "read_table",
    "rows_recorded",
    "scan_table",
    "segments",
    "write_domains",
    "write_hosts",
]
