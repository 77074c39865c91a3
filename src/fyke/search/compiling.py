"""Compiling: a question as a query of the engine, scored so that the better page comes first.

The searcher calls it for each index it answers from.

- A word scores by BM25 in each text of a page: by stems in all that it says (title, headings, description, text) and in
  what it is called (title, headings, the words of links, address), and a little more where it stands as typed. The best
  score counts in full and the others a quarter (`TIE`), so that a page with all words comes before one with a single
  word everywhere. A sum would let one word of the title outweigh the others. Repeating the title in the text, as BM25F
  does (Robertson and Zaragoza 2009, section 3.6), is lost in a long page.
- A word that no page has, and nothing is spelt like, is left out if others remain, so that it changes nothing. Phrases
  are not.
- Fillers, the words around what is asked ("how do I"), are left out if others remain, by the languages of the pages.
- Three in five of the important words must be there, and of the parts of each (`2024-06-15`). A word in every fourth
  page is not important if there are others; but one important word is enough where three in five of all words are.
- A run of characters without blanks may be a sentence, as in Japanese. Two in five of its pairs of neighbours are
  enough, because half of them belong to two words.
- Two neighbours may be there as one word ("data types").
- A query of more than `FEW_WORDS` is a question: any of its important words is enough, near others or not.

The constants are round ones near the best for five sites of documentation (`tests/search/questions`) and for questions
of a line (`benches/relevance.py`). The sites marked `held_back` there were not used to choose them. Half and double of
each change little.

If several indexes answer as one, the rarity of a word must be that in all. A boost corrects BM25's inverse document
frequency, ln(1 + (N - n + 1/2) / (n + 1/2)) (Robertson and Zaragoza 2009, section 3.1). Differs from one index: the
mean length of a field stays that of each index.

Invariant: every question gives a query, within the engine's own limits.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, log

import tantivy
from tantivy import FieldType
from tantivy import Occur as Engine

from fyke.core.urls import canonical
from fyke.search import grammar
from fyke.search.grammar import Clause, Dated, Language, Near, Occur, Part, SearchQuery, Site, Words
from fyke.search.schema import LANGUAGES, UNSPACED, Analysis, address_words, schema, spelt, stem_field

BOOSTS = {"title": 0.1, "headings": 0.1, "anchors": 0.1, "address": 0.1, "description": 0.04, "text": 0.12}  # as typed
NAMED = {"title_stems": 0.4, "headings_stems": 0.3, "anchors_stems": 0.4, "address_stems": 0.2}  # all it says: 1
TIE = 0.25  # of the score of each field but the best
JOINED = 0.6  # weight of two words met as one
COMMON = 0.25  # of all pages; a word in more is common
COMMON_PAGES = 10  # a word in no more than these is not
NEEDED = 0.6  # share of the important words
FEW_WORDS = 5
LONG_RUN = 4  # characters written without blanks that may be more than one word
PAIRS = 0.4  # share of their pairs that must be there
NEAR_WORDS = 8  # positions that a word may be off
NEAR_FIELDS = ("title", "text")

_RUNS = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(  # kettle's, but not what's, which is "what is"
    r"(?<![^\W\d_])(?!(?:he|here|how|it|let|she|that|there|what|when|where|who|why)['\u2019])([^\W\d_]++)['\u2019]s\b",
    re.IGNORECASE,
)
_HOST = re.compile(r"[\w-]++(?:\.[\w-]++)++(?::\d++)?")  # of a URL without a scheme
_IN = {"title": ("title",), "url": ("address",), "": tuple(BOOSTS)}


class Statistics:
    """Counts of words over all indexes that answer together."""

    def __init__(self, searchers: Sequence[tantivy.Searcher], analysis: Analysis) -> None:
        self._searchers = searchers
        self._analysis = analysis
        self.pages = sum(searcher.num_docs for searcher in searchers)
        self._known: dict[tuple[str, str], list[int]] = {}
        spoken = {code: count for code in LANGUAGES if (count := self.frequency("language", code))}
        self.stem_fields = tuple(dict.fromkeys(["stem_", *map(stem_field, spoken)]))
        self._spoken = [code for code, count in spoken.items() if count > COMMON * self.pages]

    def common(self, term: str) -> bool:
        """Return whether so many texts have `term` that it tells little."""
        return self.frequency("text", term) > max(COMMON * self.pages, COMMON_PAGES)

    def is_filler(self, part: Part) -> bool:
        """Return whether `part` is a filler in a language of many pages here."""
        if not isinstance(part, Words) or part.phrase or part.where:
            return False
        return any(self._analysis.is_filler(part.text, code) for code in self._spoken)

    def tells_little(self, part: Part) -> bool:
        """Return whether `part` is a filler or a common word."""
        if not isinstance(part, Words) or part.phrase:
            return False
        return self.is_filler(part) or all(map(self.common, self._analysis.words(part.text)))

    def is_met(self, clause: Clause, query: tantivy.Query, shard: int) -> bool:
        """Return whether a page of index number `shard` meets `query`, that of `clause`."""
        words = (part.text for part in clause.parts if isinstance(part, Words) and not part.where)
        for terms in map(self._analysis.words, words):
            if len(terms) == 1 and self._frequencies("text", terms[0])[shard] > COMMON_PAGES:  # a search takes longer
                return True
        return bool(self._searchers[shard].search(query, 1).hits)

    def clusters(self, key: int) -> Iterator[int]:
        """Yield the cluster of near-duplicates of the page `key` in each index that has it; 0 for none."""
        query = tantivy.Query.term_query(schema(), "key", key)
        for searcher in self._searchers:
            found = searcher.search(query, 1).hits
            yield from (int(near or 0) for near in searcher.fast_field_values("near", [at for _, at in found]))

    def frequency(self, field: str, term: str) -> int:
        """Count pages with `term` in `field`."""
        return sum(self._frequencies(field, term))

    def correction(self, field: str, term: str, shard: int) -> float:
        """Return the factor that makes a score of index number `shard` one of all indexes."""
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
    pages = max(pages, having)  # the engine still counts deleted pages among `having`
    return log(1 + (pages - having + 0.5) / (having + 0.5))


class Compiler:
    """Maker of queries for index number `shard` of those that `statistics` is about."""

    def __init__(self, fields: tantivy.Schema, analysis: Analysis, statistics: Statistics, shard: int) -> None:
        self._schema = fields
        self._analysis = analysis
        self._statistics = statistics
        self._shard = shard
        self._made: dict[tuple[Clause, float], tantivy.Query | None] = {}

    def compile(self, question: SearchQuery) -> tantivy.Query:
        """Return the query for `question`."""
        few = self._is_short(question)
        asked, musts, nots = (self._clauses(question, occur) for occur in (Occur.SHOULD, Occur.MUST, Occur.NOT))
        if not (musts or asked):
            return tantivy.Query.empty_query()
        important, others = self._sorted_out(self._telling(asked))
        parts = [(Engine.Must, query) for _, query in musts] + [(Engine.Should, query) for query in others]
        if important:
            needed = ceil(NEEDED * len(important)) if few and not others else 1
            parts.append((Engine.Must, _some_of(important, needed)))
            if few and others:
                parts.append((Engine.Must, _enough(important, others)))
        if few:
            parts += [(Engine.Should, query) for query in self._near([clause for clause, _ in asked])]
        parts += [(Engine.MustNot, query) for _, query in nots]
        return tantivy.Query.boolean_query(parts)

    def unmet(self, question: SearchQuery) -> set[Clause]:
        """Return the clauses of `question` with words, fillers aside, that no page of this index meets."""
        musts = [one for one in self._clauses(question, Occur.MUST) if any(isinstance(p, Words) for p in one[0].parts)]
        asked = self._telling(self._clauses(question, Occur.SHOULD)) + musts
        return {clause for clause, query in asked if not self._statistics.is_met(clause, query, self._shard)}

    def _is_short(self, question: SearchQuery) -> bool:
        return sum(map(self._may_be_there, question.clauses + question.left_out)) <= FEW_WORDS

    def _clauses(self, question: SearchQuery, occur: Occur) -> list[tuple[Clause, tantivy.Query]]:
        """Return the clauses that count as `occur`, each with its query."""
        share = 1 if occur is not Occur.SHOULD else NEEDED if self._is_short(question) else 0
        found = [(clause, self._clause(clause, share)) for clause in question.clauses if clause.occur is occur]
        return [(clause, query) for clause, query in found if query is not None]

    def _telling(self, asked: list[tuple[Clause, tantivy.Query]]) -> list[tuple[Clause, tantivy.Query]]:
        return self._with_joined([one for one in asked if not self._is_filler(one[0])] or asked)

    def _may_be_there(self, clause: Clause) -> bool:
        words = (part.text for part in clause.parts if isinstance(part, Words))
        return clause.occur is Occur.SHOULD and any(map(self._analysis.words, words))

    def _near(self, clauses: list[Clause]) -> Iterator[tantivy.Query]:
        """Yield queries for neighbours of the question that are near in a page."""
        terms = [self._analysis.words(part.text) for c in clauses for part in c.parts[:1] if isinstance(part, Words)]
        for one, other in pairwise(terms):
            if len(one) == len(other) == 1 and one != other and not all(map(self._statistics.common, one + other)):
                for field in NEAR_FIELDS:
                    query = tantivy.Query.phrase_query(self._schema, field, [*one, *other], NEAR_WORDS)
                    yield tantivy.Query.boost_query(query, BOOSTS[field])

    def _with_joined(self, words: list[tuple[Clause, tantivy.Query]]) -> list[tuple[Clause, tantivy.Query]]:
        """Return `words`; each of two neighbours also matches both as one: "datatypes" for "data types"."""
        found = list(words)
        texts = [
            part.text if isinstance(part := clause.parts[0], Words) and part.text.isalpha() else ""
            for clause, _ in words
        ]
        for at, (one, other) in enumerate(pairwise(texts)):
            joined = _best_of(self._stems(one + other, share=1)) if one and other else None
            if joined is not None:
                boosted = tantivy.Query.boost_query(joined, JOINED)
                for place in (at, at + 1):
                    clause, query = found[place]
                    found[place] = clause, tantivy.Query.disjunction_max_query([query, boosted], TIE)
        return found

    def _is_filler(self, clause: Clause) -> bool:
        return all(map(self._statistics.is_filler, clause.parts))

    def _sorted_out(self, words: list[tuple[Clause, tantivy.Query]]) -> tuple[list[tantivy.Query], list[tantivy.Query]]:
        """Return important words and others; all are important if none would be."""
        common = [all(map(self._statistics.tells_little, clause.parts)) for clause, _ in words]
        if all(common):
            return [query for _, query in words], []
        return (
            [query for (_, query), often in zip(words, common, strict=True) if not often],
            [query for (_, query), often in zip(words, common, strict=True) if often],
        )

    def _clause(self, clause: Clause, share: float) -> tantivy.Query | None:
        if (clause, share) not in self._made:
            queries = [query for part in clause.parts if (query := self._part(part, share)) is not None]
            self._made[clause, share] = _any_of(queries)
        return self._made[clause, share]

    def _part(self, part: Part, share: float) -> tantivy.Query | None:
        if isinstance(part, Words):
            return self._words(part, share)
        if isinstance(part, Site):
            query = self._site(part)
        elif isinstance(part, Near):
            query = self._near_page(part.key)
        elif isinstance(part, Language):
            query = tantivy.Query.term_query(self._schema, "language", part.code, "basic")
        else:
            query = self._dated(part)
        return tantivy.Query.const_score_query(query, 0.0)

    def _site(self, site: Site) -> tantivy.Query:
        if not site.path:
            return tantivy.Query.term_query(self._schema, "site", site.name, "basic")
        host, path = re.escape(site.name), re.escape(site.path)
        return tantivy.Query.regex_query(self._schema, "url", rf"[a-z]+://([^/]*\.)?{host}(:[0-9]+)?{path}.*")

    def _near_page(self, key: int) -> tantivy.Query:
        """Return a query for a page and its cluster, in whichever index they are."""
        clusters = {cluster for cluster in self._statistics.clusters(key) if cluster}
        fields = [("key", key), *(("near", cluster) for cluster in clusters)]
        return _some_of([tantivy.Query.term_query(self._schema, name, value) for name, value in fields], 1)

    def _dated(self, part: Dated) -> tantivy.Query:
        last = None if part.end_s is None else part.end_s - 1
        return tantivy.Query.range_query(self._schema, "date_s", FieldType.Integer, part.begin_s, last)

    def _words(self, words: Words, share: float) -> tantivy.Query | None:
        """Return a query for `words`, None without a word. Pages need a `share` of words typed as one
        (`boundary-layer`). A URL is looked for among the addresses too."""
        terms = self._analysis.words(words.text)[: grammar.MAX_CLAUSES]
        if not terms:
            return None
        found = [self._field(field, terms) for field in _IN[words.where]]
        if not words.phrase and not words.where:
            found += self._stems(words.text, share)
            if _is_address(words.text) and (url := canonical(f"http://{words.text}")):
                found.append(self._field("address", self._analysis.words(address_words(url))[: grammar.MAX_CLAUSES]))
            if 0 < share < 1 and len(terms) >= LONG_RUN and UNSPACED.search(words.text):
                found.append(self._in_pairs(terms))
        return _best_of(found)

    def _in_pairs(self, terms: Sequence[str]) -> tantivy.Query:
        """Return a query for pages with `PAIRS` of the pairs of neighbours in `terms`, which were written without
        blanks: nobody says where words begin."""
        pairs = list(dict.fromkeys(pairwise(terms)))
        found = [_some_of([self._field(field, pair) for field in NEAR_FIELDS], 1) for pair in pairs]
        return _some_of(found, ceil(PAIRS * len(found)))

    def _field(self, field: str, terms: Sequence[str]) -> tantivy.Query:
        correction = sum(self._statistics.correction(field, term, self._shard) for term in terms) / len(terms)
        if len(terms) == 1:
            query = tantivy.Query.term_query(self._schema, field, terms[0])
        else:
            query = tantivy.Query.phrase_query(self._schema, field, list(terms))
        return tantivy.Query.boost_query(query, BOOSTS[field] * correction)

    def _stems(self, text: str, share: float) -> list[tantivy.Query]:
        """Return a query for each language with pages that have the stems of a `share` of the runs of letters in
        `text`, or of one. A run that is several words, whose order is not in the field, only counts if all are needed.
        The `s` of "kettle's" is no run: the page may say "kettle".
        """
        found = []
        runs = list(dict.fromkeys(_RUNS.findall(_POSSESSIVE.sub(r"\1", spelt(text)))))[: grammar.MAX_CLAUSES]
        for field in self._statistics.stem_fields:
            stems = [known[0] for run in runs if len(known := self._analysis.stems(field, run)) == 1]
            queries = [self._stem(field, stem) for stem in stems if self._statistics.frequency(field, stem)]
            needed = len(runs) if share == 1 else max(1, ceil(share * len(stems)))
            if len(queries) >= needed:
                found.append(_some_of(queries, needed))
        return found

    def _stem(self, field: str, stem: str) -> tantivy.Query:
        boosted = [self._boosted(name, stem, boost) for name, boost in {field: 1.0, **NAMED}.items()]
        return tantivy.Query.disjunction_max_query(boosted, TIE)

    def _boosted(self, field: str, stem: str, boost: float) -> tantivy.Query:
        query = tantivy.Query.term_query(self._schema, field, stem, "freq")
        return tantivy.Query.boost_query(query, boost * self._statistics.correction(field, stem, self._shard))


def _is_address(text: str) -> bool:
    """Return whether `text` is a host and a path with words in it."""
    host, _, path = text.partition("/")
    return _HOST.fullmatch(host) is not None and _RUNS.search(path) is not None


def _best_of(queries: list[tantivy.Query]) -> tantivy.Query | None:
    """Return a query for pages that any of `queries` finds. The score is the best of theirs, and `TIE` of each
    other."""
    if len(queries) < 2:
        return queries[0] if queries else None
    return tantivy.Query.disjunction_max_query(queries, TIE)


def _any_of(queries: list[tantivy.Query]) -> tantivy.Query | None:
    return _some_of(queries, 1) if queries else None


def _enough(important: list[tantivy.Query], others: list[tantivy.Query]) -> tantivy.Query:
    """Return a query, without a score, for pages that have enough of the important words, or of all words."""
    each = important, important + others
    return tantivy.Query.const_score_query(_some_of([_some_of(q, ceil(NEEDED * len(q))) for q in each], 1), 0.0)


def _some_of(queries: list[tantivy.Query], least: int) -> tantivy.Query:
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Engine.Should, query) for query in queries], minimum_number_should_match=least)
