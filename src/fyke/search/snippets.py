"""The piece of a page that answers, with the matched words marked.

Called by the searcher for each hit it returns. A word of the page is matched when it is one of the query's words,
or has the same stem in the page's language. The piece is the one with the most different words, the rarer
counting more, the earlier winning. Invariant: the spans put together are a piece of the page's text, but for the
dots where it was cut.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from fyke.search.results import Spans
from fyke.search.schema import Analysis, stem_field

SNIPPET_CHARS = 240
CONTEXT_CHARS = 50  # before the first match
SEARCHED_CHARS = 60_000
MAX_MATCHES = 500

_ACCENTED = re.compile(r"[\u00c0-\u024f]")

Match = tuple[int, int, str]  # begin, end, the word of the query


class Highlighter:
    """Finds and marks the `words` of a query, each with its weight, in pages."""

    def __init__(self, analysis: Analysis, words: Mapping[str, float]) -> None:
        self._analysis = analysis
        self._weights = dict(words)
        self._by_language: dict[str, _Finder] = {}

    def snippet(self, text: str, description: str, language: str) -> Spans:
        """The best piece of `text`; of `description`, or the beginning, where no word is met."""
        finder = self._finder(language)
        matches = finder.matches(text[:SEARCHED_CHARS])
        if not matches and description:
            text = description
            matches = finder.matches(text)
        begin, end = _cut(text, *_best(matches, self._weights))
        return _spans(text, begin, end, [m for m in matches if begin <= m[0] and m[1] <= end])

    def _finder(self, language: str) -> "_Finder":
        finder = self._by_language.get(language)
        if finder is None:
            finder = self._by_language[language] = _Finder(self._analysis, self._weights, stem_field(language))
        return finder


class _Finder:
    """Finds words in the text of one language: candidates by an expression, then by analysis."""

    def __init__(self, analysis: Analysis, words: Iterable[str], stems: str) -> None:
        self._analysis = analysis
        self._stems = stems
        self._words = {word: word for word in words}
        self._stemmed = {stem: word for word in self._words for stem in self._stem(word)}
        self._known: dict[str, str] = {}
        prefixes = {self._prefix(word) for word in self._words}
        self._candidate = (
            re.compile(rf"(?:{'|'.join(sorted(map(re.escape, prefixes), key=len, reverse=True))})[^\W_]*")
            if prefixes
            else None
        )
        self._unspaced = [word for word in self._words if len(word) == 1 and not word.isascii()]

    def _stem(self, word: str) -> list[str]:
        return self._analysis.stems(self._stems, word)

    def _prefix(self, word: str) -> str:
        """What every word with the same stem begins with."""
        length = len(word)
        for stem in self._stem(word):
            while length > 1 and not stem.startswith(word[:length]):
                length -= 1
        return word[:length]

    def matches(self, text: str) -> list[Match]:
        """Where words are met, in order."""
        if self._candidate is None:
            return []
        folded = fold(text)
        found: list[Match] = []
        for match in self._candidate.finditer(folded):
            word = self._word(match[0])
            if word and not folded[match.start() - 1 : match.start()].isalnum():  # dearer before than after
                found.append((match.start(), match.end(), word))
                if len(found) >= MAX_MATCHES:
                    break
        for character in self._unspaced:
            found += [(m.start(), m.end(), character) for m in re.finditer(re.escape(character), folded)][:MAX_MATCHES]
        return sorted(set(found)) if self._unspaced else found

    def _word(self, candidate: str) -> str:
        """The query's word that `candidate` is, or the empty string."""
        known = self._known.get(candidate)
        if known is None:
            known = self._words.get(candidate, "")
            for stem in [] if known else self._stem(candidate):
                known = known or self._stemmed.get(stem, "")
            self._known[candidate] = known
        return known


@lru_cache(maxsize=1)
def _folding() -> dict[str, str]:
    """Letters with accents, each as one plain small letter."""
    table = {}
    for letter in map(chr, range(0xC0, 0x250)):
        plain = unicodedata.normalize("NFKD", letter.lower())[:1].lower()
        if plain.isalpha() and plain != letter:
            table[letter] = plain
    return table


def fold(text: str) -> str:
    """`text` as words are compared, every character in its place."""
    table = _folding()
    text = _ACCENTED.sub(lambda match: table.get(match[0], match[0]), text)  # a tenth of translating all of it
    lower = text.lower()
    return lower if len(lower) == len(text) else text


def _best(matches: list[Match], weights: Mapping[str, float]) -> tuple[int, int]:
    """Begin and end of the matches worth showing together; (0, 0) when there are none."""
    best, place = -1.0, (0, 0)
    begin = 0
    counts: dict[str, int] = {}
    for at, (_, end, word) in enumerate(matches):
        counts[word] = counts.get(word, 0) + 1
        while end - matches[begin][0] > SNIPPET_CHARS - CONTEXT_CHARS and begin < at:
            counts[matches[begin][2]] -= 1
            begin += 1
        value = sum(weights.get(word, 0.0) * (1 + 0.1 * min(count - 1, 3)) for word, count in counts.items() if count)
        if value > best * 1.001:
            best, place = value, (matches[begin][0], end)
    return place


def _cut(text: str, begin: int, end: int) -> tuple[int, int]:
    """The piece of `text` around a match, cut between words."""
    begin = max(0, begin - CONTEXT_CHARS)
    if begin:
        blank = text.find(" ", begin, begin + CONTEXT_CHARS)
        begin = blank + 1 if blank >= 0 else begin
    end = max(end, begin + SNIPPET_CHARS)
    if end < len(text):
        blank = text.rfind(" ", end - CONTEXT_CHARS, end)
        end = blank if blank > begin else end
    return begin, min(end, len(text))


def _spans(text: str, begin: int, end: int, matches: list[Match]) -> Spans:
    spans: list[tuple[str, bool]] = [("… ", False)] if begin else []
    at = begin
    for match_begin, match_end, _ in matches:
        if match_begin >= at:
            spans += [(text[at:match_begin], False), (text[match_begin:match_end], True)]
            at = match_end
    spans.append((text[at:end], False))
    if end < len(text):
        spans.append((" …", False))
    return tuple(span for span in spans if span[0])
