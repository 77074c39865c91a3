"""Where do pages rest?

The archive: `WarcWriter` (WARC/1.1, with a CDXJ index beside each file). A checkpoint goes: `state()`
of every writer, fsync of its `dirty_files()`, the manifest, then `durable()`.
"""

from fyke.store.records import Original
from fyke.store.warc import RecordPlace, WarcStatistics, WarcWriter

__all__ = ["Original", "RecordPlace", "WarcStatistics", "WarcWriter"]
