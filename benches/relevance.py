"""How well does the search rank? Fyke beside BM25 as Lucene computes it, on the Cranfield collection.

    .venv/bin/python benches/relevance.py [FOLDER]

FOLDER holds `cran.all.1400`, `cran.qry` and `cranqrel` (default: `cranfield` in `$FYKE_ORACLES`, or in
`../shared/oracles`): 1,400 abstracts, 225 questions of a line or two, and how useful people found each abstract for
each question (Cleverdon 1967). The abstracts are served as a web site on loopback, crawled and indexed by the
ordinary commands, and searched as a person would search. Beside it the same text is ranked in memory, by BM25 with
Lucene's formula, its constants (k1 = 1.2, b = 0.75), its English stop words and a Porter stemmer (`bm25s`; Robertson
and Zaragoza 2009).

nDCG@10 takes 4 for a complete answer down to 1 for an answer of minimum interest (Järvelin and Kekäläinen 2002); MAP
takes all of these as relevant, over the first 1,000 results.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from math import log2
from pathlib import Path

from usage import arguments

from fyke.search.grammar import MAX_CLAUSES
from fyke.search.searcher import Searcher

RESULTS = 1_000
GAINS = {1: 4, 2: 3, 3: 2, 4: 1}  # by cranqrel's code
LISTED = 100  # abstracts on each page that lists them
SETTINGS = "[politeness]\nhost_delay_s = 0\naddress_delay_s = 0\ndelay_factor = 0\n"
STOP_WORDS = re.findall(  # of Lucene's EnglishAnalyzer
    r"\w+",
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this"
    " to was will with",
)
_FIELD = re.compile(r"^\.([A-Z])\b ?(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Collection:
    """`documents` and `queries` by number; `judged[query][document]` is the gain."""

    documents: dict[int, dict[str, str]]
    queries: dict[int, str]
    judged: dict[int, dict[int, int]]


def fields_of(text: str) -> Iterator[dict[str, str]]:
    """Yield the records of a file in SMART's format: the text by letter, all parts joined; the number by `I`."""
    record: dict[str, str] = {}
    _, *pieces = _FIELD.split(text)
    for letter, rest, content in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        if letter == "I" and record:
            yield record
            record = {}
        record[letter] = " ".join(f"{record.get(letter, '')} {rest} {content}".split())
    yield record


def read(folder: Path) -> Collection:
    """Read the collection in `folder`. Queries are judged by their place in the file, not by their number."""
    documents = {int(one["I"]): one for one in fields_of((folder / "cran.all.1400").read_text())}
    queries = {place: one["W"] for place, one in enumerate(fields_of((folder / "cran.qry").read_text()), 1)}
    judged: dict[int, dict[int, int]] = {query: {} for query in queries}
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, code = map(int, line.split())
        if code in GAINS:
            judged[query][document] = GAINS[code]
    return Collection(documents, queries, judged)


def ndcg(ranking: Sequence[int], judged: dict[int, int], depth: int = 10) -> float:
    """Return the discounted cumulative gain of the first `depth`, as a share of the best possible."""
    discounted = lambda gains: sum(gain / log2(place + 2) for place, gain in enumerate(gains))  # noqa: E731
    best = discounted(sorted(judged.values(), reverse=True)[:depth])
    return discounted([judged.get(document, 0) for document in ranking[:depth]]) / best if best else 0.0


def average_precision(ranking: Sequence[int], judged: dict[int, int]) -> float:
    """Return the mean, over all relevant documents, of the precision at each one's place."""
    found = [place for place, document in enumerate(ranking, 1) if document in judged]
    return sum(number / place for number, place in enumerate(found, 1)) / len(judged) if judged else 0.0


def write_site(collection: Collection, root: Path) -> None:
    """Write the collection as a web site: an abstract a page, and pages that list them."""
    (root / "docs").mkdir(parents=True)
    numbers = sorted(collection.documents)
    for number in numbers:
        one = {letter: html.escape(text) for letter, text in collection.documents[number].items()}
        title, text = one.get("T", ""), one.get("W", "").removeprefix(one.get("T", ""))
        about = f"<p>{one.get('A', '')}</p><p>{one.get('B', '')}</p>"
        page = f"<main><h1>{title}</h1>{about}<p>{text}</p></main>"
        (root / "docs" / f"{number}.html").write_text(
            f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title><body>{page}'
        )
    lists = [numbers[start : start + LISTED] for start in range(0, len(numbers), LISTED)]
    for place, listed in enumerate(lists):
        links = "".join(f'<li><a href="docs/{number}.html">{number}</a>' for number in listed)
        (root / f"list{place}.html").write_text(f"<!DOCTYPE html><title>List {place}</title><ul>{links}</ul>")
    links = "".join(f'<li><a href="list{place}.html">{place}</a>' for place in range(len(lists)))
    (root / "index.html").write_text(f"<!DOCTYPE html><title>Abstracts</title><ul>{links}</ul>")


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(root: Path) -> Iterator[str]:
    """Serve the site in `root` on loopback; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def crawled(collection: Collection, folder: Path) -> Path:
    """Crawl and index the collection below `folder`; return the crawl's directory."""
    write_site(collection, folder / "site")
    (folder / "settings.toml").write_text(SETTINGS)
    into = folder / "crawl"
    with served(folder / "site") as start:
        command = ["crawl", start, "--config", str(folder / "settings.toml"), "--into", str(into)]
        for arguments in (command, ["index", str(into)]):
            subprocess.run([sys.executable, "-m", "fyke", *arguments], check=True, stderr=subprocess.DEVNULL)
    return into


def by_fyke(directory: Path) -> Callable[[str], list[int]]:
    """Return a function that searches the index of `directory`."""
    searcher = Searcher([directory])
    number = re.compile(r"/docs/(\d+)\.html$")

    def rank(query: str) -> list[int]:
        hits = searcher.search(" ".join(query.split()[:MAX_CLAUSES]), limit=RESULTS).hits  # longer ones are refused
        return [int(match[1]) for hit in hits if (match := number.search(hit.url))]

    return rank


def by_bm25(collection: Collection) -> Callable[[str], list[int]]:
    """Return a function that ranks all documents by BM25."""
    import bm25s  # noqa: PLC0415 - only here: the rest is to be had without it
    from Stemmer import Stemmer  # noqa: PLC0415

    numbers = sorted(collection.documents)
    texts = [" ".join(collection.documents[number].get(letter, "") for letter in "TABW") for number in numbers]
    tokens = partial(
        bm25s.tokenize, stopwords=STOP_WORDS, stemmer=Stemmer("porter"), show_progress=False, return_ids=False
    )
    engine = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    engine.index(tokens(texts), show_progress=False)

    def rank(query: str) -> list[int]:
        found, scores = engine.retrieve(tokens([query]), k=min(RESULTS, len(numbers)), show_progress=False)
        return [numbers[place] for place, score in zip(found[0], scores[0], strict=True) if score > 0]

    return rank


def measured(collection: Collection, rank: Callable[[str], list[int]]) -> tuple[float, float]:
    """Return nDCG@10 and MAP over all queries."""
    found = {query: rank(text) for query, text in collection.queries.items()}
    gains = [ndcg(found[query], judged) for query, judged in collection.judged.items()]
    precisions = [average_precision(found[query], judged) for query, judged in collection.judged.items()]
    return sum(gains) / len(gains), sum(precisions) / len(precisions)


def oracle() -> Path:
    """Return the default folder of the collection."""
    return Path(os.environ.get("FYKE_ORACLES", Path(__file__).parents[2] / "shared" / "oracles")) / "cranfield"


def main() -> None:
    collection = read(*arguments(__doc__, folder=oracle()))
    with tempfile.TemporaryDirectory() as name:
        rankings = {"fyke": by_fyke(crawled(collection, Path(name))), "BM25 (Lucene's)": by_bm25(collection)}
        print(f"{len(collection.queries)} queries on {len(collection.documents):,} pages {'nDCG@10':>14} {'MAP':>8}")
        for who, rank in rankings.items():
            print("{:<40} {:8.3f} {:8.3f}".format(who, *measured(collection, rank)))


if __name__ == "__main__":
    main()
