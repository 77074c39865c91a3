"""The searcher answers questions from one index, or from several as one.

`fyke search` and the search page use it:

    with Searcher([Path("docs")]) as searcher:
        results = searcher.search("asyncio gather -twisted", limit=10)
        print(results.total, "pages in", results.took_ms, "ms")
        for hit in results.hits:
            print(hit.title, hit.url, "".join(text for text, marked in hit.snippet))
        for page in searcher.similar(results.hits[0].url):
            print("like the first:", page.url)
        for link in searcher.inlinks(results.hits[0].url):
            print(link.url, "calls it", link.words)

If the pages are of several sites (hosts), an answer lists at most two of each and says how many more there are; a query
with `site:` lists them all. Of pages that say nearly the same, it lists the best; `near:` lists all like a page. If no
page has a word, but several have one that is spelt alike, the answer is for that one, and says so.

Invariant: an answer is of one state of each index. Several threads may call it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import log
from pathlib import Path
from time import perf_counter

import tantivy

from fyke.core.closing import Closing
from fyke.core.errors import BadQuery, FykeError
from fyke.core.urls import canonical, key_of
from fyke.search.answering import Answer
from fyke.search.compiling import Compiler, Statistics
from fyke.search.grammar import Clause, SearchQuery, Words, parse
from fyke.search.inlinks import inlinks
from fyke.search.live_index import Shard, View
from fyke.search.repeated import shown
from fyke.search.results import Hit, InLink, Results
from fyke.search.schema import Analysis, is_panic, prepared, schema
from fyke.search.snippets import Highlighter
from fyke.search.spelling import better_spelling

FEW = 3  # with fewer found, a better spelling is looked for
SIMILAR_TEXT_CHARS = 20_000


class Searcher(Closing):
    """Answers from the indexes of the crawl `directories`. Raises DirectoryError if one has none."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._analysis = Analysis()
        self._shards = [Shard(Path(directory), self._analysis) for directory in directories]

    def __repr__(self) -> str:
        return f"Searcher({self._shards!r})"

    def close(self) -> None:
        """Let go of the indexes."""
        self._shards = []

    @property
    def pages(self) -> int:
        """Number of pages that can be found. Raises StateDamaged."""
        with self._asked():
            return sum(view.engine.num_docs for view in self._views())

    def search(self, query: str, offset: int = 0, limit: int = 10) -> Results:
        """Return the pages that answer `query` (see `fyke.search.grammar`), from number `offset` on, at most `limit`.

        Raises BadQuery; StateDamaged if a file of the index is damaged.
        """
        with self._asked():
            return self._search(query, offset, limit)

    def similar(self, url: str, limit: int = 10) -> tuple[Hit, ...]:
        """Return pages with the words that are typical of the page at `url`; none if it is not in an index. Raises as
        `search`."""
        with self._asked():
            return self._similar(key_of(canonical(url) or url), limit)

    def inlinks(self, url: str, limit: int = 100) -> tuple[InLink, ...]:
        """Return the links to `url` from pages that can be found, highest rank first. Raises as `search`."""
        with self._asked():
            return self._inlinks(key_of(canonical(url) or url), limit)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Turn an error or panic of the engine into one that names the damaged file, if there is one."""
        try:
            yield
        except FykeError:
            raise
        except BaseException as error:
            if isinstance(error, Exception) or is_panic(error):
                for shard in self._shards:
                    shard.require_whole()
            raise

    def _search(self, query: str, offset: int, limit: int) -> Results:
        begun = perf_counter()
        views = self._views()
        statistics = Statistics([view.engine for view in views], self._analysis)
        asked = parse(query)
        question, unmet, compiled = self._compiled(views, statistics, asked)
        misspelt = [words for clause in unmet if clause.may_miss for words in _words_of(clause)]
        better = self._respelt(views, statistics, misspelt, query)
        if better is not None:
            question, _, compiled = self._compiled(views, statistics, better)
        grouped = not (question.names_sites or question.names_clusters)
        answer = Answer(views, compiled, grouped=grouped, whole_clusters=question.names_clusters)
        highlight = Highlighter(self._analysis, self._weights(question, statistics))
        hits = tuple(answer.hits(max(0, offset), max(0, limit), highlight, lambda found: False))
        unknown = [words for clause in unmet for words in _words_of(clause)]
        enough = 0 if unknown else answer.total
        suggested = better
        if better is None and enough < FEW:
            rest = [words for words in asked.words() if words not in misspelt]  # nothing is like the others
            suggested = self._suggestion(views, statistics, rest, query, enough)
        suggestion = None if suggested is None else suggested.text
        named = tuple(words.typed for words in sorted(unknown, key=lambda words: words.begin))
        took_ms = round((perf_counter() - begun) * 1e3, 3)
        return Results(query, answer.total, hits, named, suggestion, better is not None, took_ms)

    def _similar(self, key: int, limit: int) -> tuple[Hit, ...]:
        views = self._views()
        page = next((view.engine.doc(at) for view in views if (at := view.page(key)) is not None), None)
        if page is None:
            return ()
        own = int(page.get_first("fingerprint") or 0)
        answer = Answer(views, [_like(view, page) for view in views], grouped=True, whole_clusters=True)
        highlight = Highlighter(self._analysis, {})
        return tuple(answer.hits(0, limit, highlight, lambda found: found.key == key or 0 < found.fingerprint == own))

    def _inlinks(self, key: int, limit: int) -> tuple[InLink, ...]:
        views: list[View] = []
        found: list[InLink] = []
        while views != (fresh := self._views()):  # a merge meanwhile deletes the files of the one before
            views = fresh
            found = [link for view in views for link in inlinks(view.folder, view.state, key, limit)]
        return tuple(dict.fromkeys(found))[:limit]

    def _views(self) -> list[View]:
        return [shard.view() for shard in self._shards]

    def _compiled(
        self, views: list[View], statistics: Statistics, asked: SearchQuery
    ) -> tuple[SearchQuery, set[Clause], list[tantivy.Query]]:
        """Return `asked` without words that no page has, if others remain; what no page meets; a query of each
        index."""
        compilers = [Compiler(view.schema, self._analysis, statistics, number) for number, view in enumerate(views)]
        unmet = set(asked.clauses).intersection(*(compiler.unmet(asked) for compiler in compilers))
        known = asked.without(clause for clause in unmet if clause.may_miss)
        asks = [words for words in known.words() if not words.where and not statistics.is_filler(words)]
        question = known if asks else asked
        return question, unmet, [compiler.compile(question) for compiler in compilers]

    def _weights(self, question: SearchQuery, statistics: Statistics) -> dict[str, float]:
        """Return the words to be marked, each with its rarity. If some are rare, common ones are left out."""
        asked = list(question.words())
        telling = [words for words in asked if not statistics.tells_little(words)]
        terms = {term for words in telling or asked for term in self._analysis.words(words.text)}
        found = {term: statistics.frequency("text", term) for term in terms}
        return {term: log(1 + statistics.pages / (1 + count)) for term, count in found.items()}

    def _suggestion(
        self, views: list[View], statistics: Statistics, some: Iterable[Words], query: str, total: int
    ) -> SearchQuery | None:
        """Return `query` with the rare ones of `some` of its words spelt better, if that finds more than `total`."""
        better = self._respelt(views, statistics, some, query)
        if better is None:
            return None
        answer = Answer(views, self._compiled(views, statistics, better)[2], grouped=False)
        return better if answer.count() > total else None

    def _respelt(
        self, views: list[View], statistics: Statistics, some: Iterable[Words], query: str
    ) -> SearchQuery | None:
        """Return `query` with those of `some` of its words respelt that few pages have; None if nothing is like them,
        or there would be too many words."""
        text = query
        for words in sorted(some, key=lambda words: -words.begin):
            for word in words.text.split():
                terms = self._analysis.words(word)
                if len(terms) == 1 and statistics.frequency("text", terms[0]) < FEW:
                    better = better_spelling(terms[0], [view.engine for view in views], schema())
                    end = words.begin + len(words.text)
                    if better:
                        text = text[: words.begin] + text[words.begin : end].replace(word, better) + text[end:]
        with suppress(BadQuery):
            return parse(text) if text != query else None
        return None


def _words_of(clause: Clause) -> list[Words]:
    return [part for part in clause.parts if isinstance(part, Words)]


def _like(view: View, page: tantivy.Document) -> tantivy.Query:
    """Return a query for pages like `page`, which may be in another index. With replaced pages a word may be in more
    than there are, at which the engine panics."""
    fields = {"title": [prepared(shown(page, "title"))], "text": [prepared(shown(page, "text")[:SIMILAR_TEXT_CHARS])]}
    return tantivy.Query.more_like_this_document_fields_query(
        view.schema, fields, min_doc_frequency=2, max_doc_frequency=view.engine.num_docs, min_term_frequency=1,
        min_word_length=3, max_query_terms=30,
    )  # fmt: skip
