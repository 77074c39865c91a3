"""A question as a query of the engine, with what makes the better page come first.

Called by the searcher for each index it answers from. What ranks is BM25 over all texts of a page as one, by stems:
title, headings, description and text, so that a word of the title counts as often as it stands there, as BM25F weights
fields (Robertson and Zaragoza 2009, section 3.6). Where a word stands as it was typed, the fields add a little each.
Of the important words, three in four must be there; words that are in every fourth page are not important where there
are others. A query of more than `FEW_WORDS` is a question: any of its words may be there, and neighbours mean less.
The constants are the best found for both: questions of a line (`benches/relevance.py`), and a few words
(`tests/search/questions.toml`); half and double of each change little.

Where several indexes answer as one, the rarity of a word must be that in all of them: BM25's inverse document
frequency, ln(1 + (N - n + 1/2) / (n + 1/2)) (Robertson and Zaragoza 2009, section 3.1), is put right by a boost.
Differs from one index: the mean length of a field stays that of each index.

Invariant: whatever the question, a query; the engine's own limits are not met.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, log

import tantivy
from tantivy import FieldType
from tantivy import Occur as Engine

from fyke.search import grammar
from fyke.search.grammar import Clause, Dated, Language, Occur, Part, Question, Site, Words
from fyke.search.schema import STEM_FIELDS, Analysis

BOOSTS = {
    "title": 0.25,
    "headings": 0.06,
    "anchors": 0.25,
    "address": 0.06,
    "description": 0.04,
    "text": 0.12,
}  # stems: 1
COMMON = 0.25  # of all pages
COMMON_PAGES = 10  # at least
NEEDED = 0.75  # of the important words
FEW_WORDS = 5
NEAR_WORDS = 8  # this many words may be moved
NEAR_FIELDS = ("title", "text")

_RUNS = re.compile(r"[^\W_]+")
_IN = {"title": ("title",), "url": ("address",), "": tuple(BOOSTS)}


class Statistics:
    """How often words are met in all indexes that answer together."""

    def __init__(self, searchers: Sequence[tantivy.Searcher]) -> None:
        self._searchers = searchers
        self.pages = sum(searcher.num_docs for searcher in searchers)
        self._known: dict[tuple[str, str], list[int]] = {}

    def common(self, term: str) -> bool:
        """Whether `term` is in so many texts that it tells little."""
        return self.frequency("text", term) > max(COMMON * self.pages, COMMON_PAGES)

    def frequency(self, field: str, term: str) -> int:
        """Pages with `term` in `field`."""
        return sum(self._frequencies(field, term))

    def correction(self, field: str, term: str, shard: int) -> float:
        """What a score of index number `shard` must be multiplied by to be one of all of them."""
        if len(self._searchers) == 1:
            return 1.0
        known = self._frequencies(field, term)
        return _rarity(self.pages, sum(known)) / _rarity(self._searchers[shard].num_docs, known[shard])

    def _frequencies(self, field: str, term: str) -> list[int]:
        known = self._known.get((field, term))
        if known is None:
            known = [searcher.doc_freq(field, term) for searcher in self._searchers]
            self._known[field, term] = known
        return known


def _rarity(pages: int, having: int) -> float:
    pages = max(pages, having)  # deleted pages are still counted in one of them
    return log(1 + (pages - having + 0.5) / (having + 0.5))


class Compiler:
    """Makes queries for index number `shard` of those that `statistics` is about."""

    def __init__(self, schema: tantivy.Schema, analysis: Analysis, statistics: Statistics, shard: int = 0) -> None:
        self._schema = schema
        self._analysis = analysis
        self._statistics = statistics
        self._shard = shard

    def compile(self, question: Question) -> tantivy.Query:
        """The query for `question`."""
        musts: list[tantivy.Query] = []
        nots: list[tantivy.Query] = []
        words: list[tuple[Clause, tantivy.Query]] = []
        for clause in question.clauses:
            query = self._clause(clause)
            if query is None:
                continue
            if clause.occur is Occur.SHOULD:
                words.append((clause, query))
            else:
                (musts if clause.occur is Occur.MUST else nots).append(query)
        if not (musts or words):
            return tantivy.Query.empty_query()
        important, others = self._sorted_out(words)
        parts = [(Engine.Must, query) for query in musts] + [(Engine.Should, query) for query in others]
        if important:
            needed = ceil(NEEDED * len(important)) if len(words) <= FEW_WORDS else 1
            parts.append((Engine.Must, _some_of(important, needed)))
        if len(words) <= FEW_WORDS:
            parts += [(Engine.Should, query) for query in self._near([clause for clause, _ in words])]
        parts += [(Engine.MustNot, query) for query in nots]
        return tantivy.Query.boolean_query(parts)

    def _near(self, clauses: list[Clause]) -> Iterator[tantivy.Query]:
        """Neighbours of the query that are near each other in a page, in its order."""
        terms = [self._analysis.words(part.text) for c in clauses for part in c.parts[:1] if isinstance(part, Words)]
        for one, other in pairwise(terms):
            if len(one) == len(other) == 1 and one != other and not all(map(self._statistics.common, one + other)):
                for field in NEAR_FIELDS:
                    query = tantivy.Query.phrase_query(self._schema, field, [*one, *other], NEAR_WORDS)
                    yield tantivy.Query.boost_query(query, BOOSTS[field])

    def _sorted_out(self, words: list[tuple[Clause, tantivy.Query]]) -> tuple[list[tantivy.Query], list[tantivy.Query]]:
        """Important words and others; all are important where no word is."""
        common = [all(self._common(part) for part in clause.parts) for clause, _ in words]
        if all(common):
            return [query for _, query in words], []
        return (
            [query for (_, query), often in zip(words, common, strict=True) if not often],
            [query for (_, query), often in zip(words, common, strict=True) if often],
        )

    def _common(self, part: Part) -> bool:
        if not isinstance(part, Words) or part.phrase:
            return False
        return all(map(self._statistics.common, self._analysis.words(part.text)))

    def _clause(self, clause: Clause) -> tantivy.Query | None:
        whole = clause.occur is not Occur.SHOULD
        return _any_of([query for part in clause.parts if (query := self._part(part, whole)) is not None])

    def _part(self, part: Part, whole: bool) -> tantivy.Query | None:
        if isinstance(part, Words):
            return self._words(part, whole)
        if isinstance(part, Site):
            query = tantivy.Query.term_query(self._schema, "site", part.name, "basic")
        elif isinstance(part, Language):
            query = tantivy.Query.term_query(self._schema, "language", part.code, "basic")
        else:
            query = self._dated(part)
        return tantivy.Query.const_score_query(query, 0.0)

    def _dated(self, part: Dated) -> tantivy.Query:
        last = None if part.end_s is None else part.end_s - 1
        return tantivy.Query.range_query(self._schema, "date_s", FieldType.Integer, part.begin_s, last)

    def _words(self, words: Words, whole: bool) -> tantivy.Query | None:
        """Pages with `words`; all of them if `whole`, where several were typed as one (`boundary-layer`)."""
        terms = self._analysis.words(words.text)[: grammar.MAX_CLAUSES]
        if not terms:
            return None
        found = [self._field(field, terms) for field in _IN[words.where]]
        if not words.phrase and not words.where:
            found += self._stems(words.text, whole)
        return _any_of(found)

    def _field(self, field: str, terms: list[str]) -> tantivy.Query:
        correction = sum(self._statistics.correction(field, term, self._shard) for term in terms) / len(terms)
        if len(terms) == 1:
            query = tantivy.Query.term_query(self._schema, field, terms[0])
        else:
            query = tantivy.Query.phrase_query(self._schema, field, list(terms))
        return tantivy.Query.boost_query(query, BOOSTS[field] * correction)

    def _stems(self, text: str, whole: bool) -> list[tantivy.Query]:
        """In each language that has pages with the stem of a run of letters in `text`; of all runs if `whole`."""
        found = []
        runs = _RUNS.findall(text)
        for field in STEM_FIELDS:
            queries = [query for run in runs if (query := self._stem(field, run)) is not None]
            if not whole:
                found += queries
            elif queries and len(queries) == len(runs):
                found.append(_all_of(queries))
        return found

    def _stem(self, field: str, run: str) -> tantivy.Query | None:
        """None where no page has the stem, or `run` is of several words, whose order the field does not know."""
        stems = self._analysis.stems(field, run)
        if len(stems) != 1 or not self._statistics.frequency(field, stems[0]):
            return None
        query = tantivy.Query.term_query(self._schema, field, stems[0], "freq")
        return tantivy.Query.boost_query(query, self._statistics.correction(field, stems[0], self._shard))


def _any_of(queries: list[tantivy.Query]) -> tantivy.Query | None:
    return _some_of(queries, 1) if queries else None


def _all_of(queries: list[tantivy.Query]) -> tantivy.Query:
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Engine.Must, query) for query in queries])


def _some_of(queries: list[tantivy.Query], least: int) -> tantivy.Query:
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Engine.Should, query) for query in queries], minimum_number_should_match=least)
