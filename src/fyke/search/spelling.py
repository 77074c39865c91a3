"""Did you mean? A better spelling, out of the words that the pages themselves use.

The searcher calls it for words that no page has, and when little was found. Candidates are the frequent words that
begin with the first letter, or with the second in case the first is wrong. The best is near (an edit distance of two at
most) and frequent; one edit weighs as much as a word twenty times as frequent. Two words that were typed as one, and
stand side by side in the pages, come before a word that is two edits away. Invariant: a suggestion is a word of the
index, or two neighbours in it.
"""

from collections.abc import Iterable, Sequence
from math import log

import tantivy

from fyke.search.answering import count_of

EDIT_COST = log(20)
MAX_DISTANCE = 2
LEAST_PART = 2  # letters of each of two words that were typed as one
LONG_WORD = 6  # in a shorter one, two wrong letters make another word
LEAST_PAGES = 2
TERMS = 20_000  # of a letter, the most frequent
TIMES_AS_FREQUENT = 3  # a suggestion must be, at least


def better_spelling(word: str, searchers: Sequence[tantivy.Searcher], schema: tantivy.Schema) -> str | None:
    """Return what `word` may have been meant to be: a word, or two with a blank; None if there is nothing like it."""
    better = better_word(word, searchers)
    if better is not None and distance(word, better, 1) == 1:
        return better
    return two_words(word, searchers, schema) or better


def two_words(word: str, searchers: Sequence[tantivy.Searcher], schema: tantivy.Schema) -> str | None:
    """Return the two words, with a blank, of which `word` is made and that stand side by side in most pages; None if
    they do so in none."""
    most, found = 0, None
    for at in range(LEAST_PART, len(word) - LEAST_PART + 1):
        query = tantivy.Query.phrase_query(schema, "text", [word[:at], word[at:]])
        count = sum(count_of(searcher.search(query, 1)) for searcher in searchers)
        if count > most:
            most, found = count, f"{word[:at]} {word[at:]}"
    return found


def better_word(word: str, searchers: Iterable[tantivy.Searcher]) -> str | None:
    """Return what `word` may have been meant to be; None if nothing is near."""
    if len(word) < 3 or any(map(str.isdigit, word)):
        return None
    terms: dict[str, int] = {}
    for searcher in searchers:
        for letter in dict.fromkeys(word[:2]):
            for term, count in searcher.terms_with_prefix("text", letter, None, TERMS):
                terms[term] = terms.get(term, 0) + count
    most = 1 if len(word) < LONG_WORD else MAX_DISTANCE
    least = max(terms.pop(word, 0) * TIMES_AS_FREQUENT, LEAST_PAGES - 1)
    letters = frozenset(word)  # an edit takes away one of them at most
    best, suggestion = 0.0, None
    for term, count in terms.items():
        if abs(len(term) - len(word)) > most or count <= least or term.isdigit():
            continue
        if len(letters.intersection(term)) < len(letters) - most:
            continue
        edits = distance(word, term, most)
        if edits <= most:
            value = 1e3 + log(count) - EDIT_COST * edits
            if value > best or (value == best and term < (suggestion or "")):
                best, suggestion = value, term
    return suggestion


def distance(one: str, other: str, most: int) -> int:
    """Return the insertions, deletions, substitutions and swaps of neighbours between two words; `most` + 1 if there
    are more.

    Damerau's distance in the restricted form (optimal string alignment).
    """
    above: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        above, last = last, row
    return min(last[-1], most + 1)
