"""How does a crawl become what others work with?

    tables ─► source ─► selection ─► reading ─► prose ─┬─► tabular   (parquet)
    archive ──┘           which rows    what they say  ├─► textual   (jsonl, csv)
                                                       └─► notes     (markdown)
    links ───────────────────────────────────────────────► edges     (links)
    archive, index, pages ───────────────────────────────► bundle    (wacz)

`export` carries out one export, in parts, below `staging`, which publishes it whole or not at all. Every part is a
function of the crawl and of the parts before it. So a killed export goes on where it was, and has the same bytes in the
end as an undisturbed one.
"""

from fyke.export.formats import Format, named
from fyke.export.job import Exported, export

__all__ = ["Exported", "Format", "export", "named"]
