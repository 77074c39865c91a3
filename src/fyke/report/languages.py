"""The languages in which the pages of a crawl are written, by a sample.

`fyke.report.page` calls it. The sample is the pages with the smallest keys. A key is a hash of the URL, so they are
drawn evenly from all, and always the same. Bounded: at most `SAMPLE` records are read.
"""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES
from fyke.report.sql import Questions, Rows
from fyke.search.archived import COLUMNS, ArchiveReader
from fyke.search.language import LanguageGuesser
from fyke.search.main_text import main_text

SAMPLE = 400
_TYPES = ", ".join(map(repr, sorted(HTML_TYPES)))


def languages(questions: Questions, crawl: Path) -> tuple[Rows, int]:
    """Return languages (ISO 639-1, "" if a page says too little) with their pages in the sample, and the sample's
    size."""
    if not questions.has("pages"):
        return [], 0
    rows = questions.ask(
        f"select {', '.join(COLUMNS).replace('fetched_at', 'epoch_us(fetched_at)')} from pages"
        f" where outcome = '{Outcome.OK}' and media_type in ({_TYPES}) and warc_file is not null order by key limit ?",
        SAMPLE,
        pages=["key", "media_type", *COLUMNS],
    )
    found: Counter[str] = Counter()
    guesser = LanguageGuesser()
    with ArchiveReader(crawl) as archive:
        for row in rows:
            named = dict(zip(COLUMNS, row, strict=True))
            page = archive.read({**named, "fetched_at": datetime.fromtimestamp(named["fetched_at"] / 1e6, UTC)})
            if page is not None:
                root = page.tree.root
                declared = (root.attributes.get("lang") or "") if root is not None else ""
                found[guesser.guess(main_text(page).text, declared)] += 1
    return sorted(found.items(), key=lambda item: (-item[1], item[0])), found.total()
