"""A snippet is the piece of a page that answers, with the matched words marked.

Made for each hit of an answer. A word of the page is matched if it is one of the query's words, or has the same stem in
the page's language. The best piece has the most different words, rarer ones counting more; of equal pieces the earlier
wins. Lines that stand on other pages of the site too (menus, notices) are left out if something is found without them.

Invariant: the spans together are a piece of the page's text, except for dots at cuts and the lines left out.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from fyke.search.results import Spans
from fyke.search.schema import Analysis, as_written, stem_field

SNIPPET_CHARS = 240
CONTEXT_CHARS = 50  # before the first match
BEGINNING_CHARS = 6_000
SEARCHED_CHARS = 60_000  # are read if the beginning has too little; the rest if these have none of the words
ENOUGH = 0.6  # of the weight of all words, in one piece
MAX_CANDIDATES = 200  # words looked at for each prefix

_REST = re.compile(r"[^\W_]*")
_ACCENTED = re.compile(r"[\u00c0-\u024f]")

_WORTH = (1.0, 0.1, 0.1, 0.1, 0.0)  # of a word, by how often the piece has it already

Match = tuple[int, int, str]  # begin, end, the word of the query


class Highlighter:
    """Marker of a query's `words`, each with its weight, in pages."""

    def __init__(self, analysis: Analysis, words: Mapping[str, float]) -> None:
        self._analysis = analysis
        self._weights = dict(words)
        self._asked = sum(self._weights.values())
        self._by_language: dict[str, _Finder] = {}

    def snippet(self, text: str, description: str, language: str, repeated: Set[str] = frozenset()) -> Spans:
        """Return the best piece of `text` without its lines in `repeated`.

        If no word is met there, it is a piece of all lines, of `description`, or the beginning.
        """
        finder = self._finder(language)
        for begun, enough in ((BEGINNING_CHARS, ENOUGH), (SEARCHED_CHARS, 0.0), (len(text), 0.0)):
            lines = text[:begun].split("\n")
            piece = self._piece(finder, " ".join(line for line in lines if line not in repeated))
            if len(text) <= begun or (piece.matches and piece.worth >= enough * self._asked):
                break
        if not piece.matches and repeated:
            piece = self._piece(finder, " ".join(lines), piece)
        if not piece.matches and description:
            piece = self._piece(finder, description)
        return piece.spans()

    def _piece(self, finder: "_Finder", text: str, other: "_Piece | None" = None) -> "_Piece":
        """Return the best piece of `text`; without matches, `other` if that has text."""
        matches = finder.matches(text)
        if other is not None and other.text and not matches:
            return other
        worth, begin, end = _best(matches, self._weights)
        begin, end = _cut(text, begin, end)
        return _Piece(text, begin, end, [m for m in matches if begin <= m[0] and m[1] <= end], worth)

    def _finder(self, language: str) -> "_Finder":
        finder = self._by_language.get(language)
        if finder is None:
            finder = self._by_language[language] = _Finder(self._analysis, self._weights, stem_field(language))
        return finder


class _Finder:
    """A finder of words in text of one language: candidates by how they begin, then by analysis."""

    def __init__(self, analysis: Analysis, words: Iterable[str], stems: str) -> None:
        self._analysis = analysis
        self._stems = stems
        words = tuple(words)
        self._words = {form: word for word in words for form in (word, as_written(word))}
        self._stemmed = {stem: word for word in words for stem in self._stem(word)}
        self._known: dict[str, str] = {}
        self._prefixes = sorted({self._prefix(form) for form in self._words})
        self._unspaced = [word for word in self._words if len(word) == 1 and not word.isascii()]

    def _stem(self, word: str) -> list[str]:
        return self._analysis.stems(self._stems, word)

    def _prefix(self, word: str) -> str:
        """Return what every word with the same stem begins with; for a word with signs, all of it."""
        if not word.isalnum():
            return word
        length = len(word)
        for stem in self._stem(word):
            while length > 1 and not stem.startswith(word[:length]):
                length -= 1
        return word[:length]

    def matches(self, text: str) -> list[Match]:
        """Return where words are met, in order."""
        folded = fold(text)
        found: dict[tuple[int, int], str] = {}
        for prefix in self._prefixes:  # a search each: cheaper than one expression for all of them
            for begin, end in islice(_candidates(folded, prefix), MAX_CANDIDATES):
                word = self._word(folded[begin:end])
                if word and not folded[begin - 1 : begin].isalnum():
                    found[begin, end] = word
        for character in self._unspaced:
            found |= {m.span(): character for m in islice(re.finditer(re.escape(character), folded), MAX_CANDIDATES)}
        return [(begin, end, word) for (begin, end), word in sorted(found.items())]

    def _word(self, candidate: str) -> str:
        """Return the query's word that `candidate` is, or ""."""
        known = self._known.get(candidate)
        if known is None:
            known = self._words.get(candidate, "")
            for stem in [] if known else self._stem(candidate):
                known = known or self._stemmed.get(stem, "")
            self._known[candidate] = known
        return known


def _candidates(folded: str, prefix: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each `prefix`, also within a word, with following letters; after signs, without."""
    at = folded.find(prefix)
    while at >= 0:
        rest = _REST.match(folded, at + len(prefix)) if prefix.isalnum() else None
        end = rest.end() if rest else at + len(prefix)
        yield at, end
        at = folded.find(prefix, end)


@lru_cache(maxsize=1)
def _folding() -> dict[str, str]:
    """Return letters with accents, each with its plain small letter."""
    table = {}
    for letter in map(chr, range(0xC0, 0x250)):
        plain = unicodedata.normalize("NFKD", letter.lower())[:1].lower()
        if plain.isalpha() and plain != letter:
            table[letter] = plain
    return table


def fold(text: str) -> str:
    """Return `text` as words are compared, every character in its place."""
    table = _folding()
    text = _ACCENTED.sub(lambda match: table.get(match[0], match[0]), text)  # a tenth of the time of translating it
    lower = text.lower()
    return lower if len(lower) == len(text) else text


def _best(matches: list[Match], weights: Mapping[str, float]) -> tuple[float, int, int]:
    """Return worth, begin and end of the matches to show together; zeros without matches."""
    best, place = 0.0, (0, 0)
    begin = 0
    value = 0.0
    counts: Counter[str] = Counter()
    for at, (_, end, word) in enumerate(matches):
        value += weights.get(word, 0.0) * _WORTH[min(counts[word], 4)]
        counts[word] += 1
        while end - matches[begin][0] > SNIPPET_CHARS - CONTEXT_CHARS and begin < at:
            gone = matches[begin][2]
            counts[gone] -= 1
            value -= weights.get(gone, 0.0) * _WORTH[min(counts[gone], 4)]
            begin += 1
        if value > best * 1.001:
            best, place = value, (matches[begin][0], end)
    return best, *place


def _cut(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return where to cut `text` around a match, between words."""
    begin = max(0, begin - CONTEXT_CHARS)
    if begin:
        blank = text.find(" ", begin, begin + CONTEXT_CHARS)
        begin = blank + 1 if blank >= 0 else begin
    end = max(end, begin + SNIPPET_CHARS)
    if end < len(text):
        blank = text.rfind(" ", end - CONTEXT_CHARS, end)
        end = blank if blank > begin else end
    return begin, min(end, len(text))


@dataclass(frozen=True, slots=True)
class _Piece:
    """`text` from `begin` to `end`, with its matches and their worth."""

    text: str
    begin: int
    end: int
    matches: list[Match]
    worth: float

    def spans(self) -> Spans:
        """Return the piece as it is shown."""
        text, at = self.text, self.begin
        spans: list[tuple[str, bool]] = [("… ", False)] if at else []
        for begin, end, _ in self.matches:
            if begin >= at:
                spans += [(text[at:begin], False), (text[begin:end], True)]
                at = end
        spans.append((text[at : self.end], False))
        if self.end < len(text):
            spans.append((" …", False))
        return tuple(span for span in spans if span[0])
