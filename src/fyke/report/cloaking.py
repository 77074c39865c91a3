"""Do servers show others something else? A measurement that a person asks for; nothing is held against anybody.

`fyke cloak` asks for a few pages of a crawl four times, in turns as Fyke alone and with another client's name added. Wu
and Davison, "Detecting semantic cloaking on the web", WWW 2006: if both copies of one kind have something that neither
of the other has, this is not due to pages that change. Here words of the text and links are compared. Differs: Fyke's
own name is always sent first, so servers that look for a name find it, and none is deceived.

The command line calls it and has the crawls made, in a directory of their own. Bounded: by the sample.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.directory import CrawlDirectory
from fyke.archive.lost import require_rows
from fyke.archive.reading import scan_table
from fyke.core.config import Config
from fyke.core.markup import tree_of
from fyke.core.mixing import GOLDEN
from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES
from fyke.search.archived import ArchiveReader

TURNS = ("plain", "named", "plain", "named")
LEAST_SHARE = 0.05  # of the words or links of one side that the other lacks; less is no difference
_WHOLE = (Outcome.OK, Outcome.UNCHANGED)
_HTML = pa.array(sorted(HTML_TYPES), pa.string())


@dataclass(frozen=True, slots=True)
class PageShown:
    """How a page differs by who asks, in shares from 0 to 1."""

    url: str
    added_words: float  # share of the words under the added name that Fyke alone was not shown
    missing_words: float  # share of the words shown to Fyke alone that the added name was not shown
    added_links: float
    missing_links: float
    answers: list[int]  # status codes, turn by turn

    @property
    def differs(self) -> bool:
        """True if it is worth a look."""
        shares = self.added_words, self.missing_words, self.added_links, self.missing_links
        good = [200 <= status < 300 for status in self.answers]
        return max(shares) >= LEAST_SHARE or (good[0] == good[2] != good[1] == good[3])

    def __str__(self) -> str:
        parts = [
            f"{share:.0%} of {what}"
            for share, what in (
                (self.added_words, "the words shown to that name are shown only to it"),
                (self.missing_words, "the words shown to us are not shown to it"),
                (self.added_links, "the links shown to that name are shown only to it"),
                (self.missing_links, "the links shown to us are not shown to it"),
            )
            if share
        ]
        answers = "" if len(set(self.answers)) == 1 else f"answers {', '.join(map(str, self.answers))}"
        return f"{self.url}: {'; '.join(filter(None, [*parts, answers]))}"

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "differs": self.differs}


def sample(crawl: Path, pages: int, may_be_asked: Callable[[str], bool]) -> list[str]:
    """Return the URLs of `pages` HTML pages of the crawl that `may_be_asked`, drawn by their keys.

    Raises NotACrawl, StateDamaged.
    """
    drawn: list[tuple[int, str]] = []
    require_rows(CrawlDirectory(crawl), "pages")
    for batch in scan_table(crawl, "pages", ["key", "url", "outcome", "media_type"]):
        html = pc.is_in(batch.column("media_type").cast("string"), value_set=_HTML)
        found = batch.filter(pc.and_(pc.equal(batch.column("outcome").cast("string"), Outcome.OK.value), html))
        keys = (key * int(GOLDEN) % (1 << 64) for key in found.column("key").to_pylist())
        known = drawn[-1] if len(drawn) == pages else (1 << 64, "")
        rows = zip(keys, found.column("url").to_pylist(), strict=True)
        drawn = nsmallest(pages, {*drawn, *(row for row in rows if row < known and may_be_asked(row[1]))})
    return [url for _, url in drawn]


def turn_settings(config: Config, urls: list[str], name: str) -> Config:
    """Return the settings for the crawl of one turn: those of `config`, for the pages `urls` alone, with `name` added
    to ours."""
    values = config.model_dump()
    values["crawl"] = {"seeds": urls, "scope": "seeds", "sitemaps": False, "wait_s": config.crawl.wait_s}
    values["plugins"], values["extract"] = {}, []
    if name:
        values["site"] = [*values["site"], {"match": "*", "user_agent_suffix": name}]
    return Config.model_validate(values)


def pages_shown(folder: Path) -> Iterator[PageShown]:
    """Yield the result of the turns in the directory `folder` for each page that has all their visits."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for batch in scan_table(folder, "pages", None):
        for row in batch.to_pylist():
            rows.setdefault(row["url"], []).append(row)
    with ArchiveReader(folder) as reader:
        for url, visits in sorted(rows.items()):
            if len(visits) == len(TURNS):
                yield _shown(url, visits, reader)


def _shown(url: str, visits: list[dict[str, Any]], reader: ArchiveReader) -> PageShown:
    contents = [_content(row, reader) for row in visits]
    words, links = ([part[at] for part in contents] for at in (0, 1))
    answers = [200 if row["outcome"] in _WHOLE else row["status"] for row in visits]
    return PageShown(url, *_shares(words), *_shares(links), answers)


def _shares(found: list[set[str]]) -> tuple[float, float]:
    """Return the share of what both named turns have that neither plain one has; and the other way round."""
    plain, named = found[0::2], found[1::2]
    return _lacking(set.intersection(*named), set.union(*plain)), _lacking(set.intersection(*plain), set.union(*named))


def _lacking(those: set[str], others: set[str]) -> float:
    return len(those - others) / len(those) if those else 0.0


def _content(row: dict[str, Any], reader: ArchiveReader) -> tuple[set[str], set[str]]:
    """Return words and links of an archived page; both are empty if there is none."""
    page = reader.read(row) if row["outcome"] in _WHOLE and row["warc_file"] else None
    if page is None or not page.content:
        return set(), set()
    tree = tree_of(page.content)
    links = {node.attributes.get("href") or "" for node in tree.css("a[href]")}
    for node in tree.css("script,style,template"):
        node.decompose()
    return set(tree.root.text(separator=" ").split()) if tree.root is not None else set(), links
