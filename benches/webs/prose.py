"""Words to fill pages with: made up, but as frequent and as compressible as real ones.

`plain` and `endless` call it. Invariant: the same seed gives the same text, and two slices share a passage by chance
only, because text that looks like earlier text would be taken for a trap.
"""

import numpy as np

_TEXT = "ba ce di fo gu la me ni ro su ta ve wi yo za ber cal den fil gor hem lin mar nes pol ras sel tor und ver"
_SYLLABLES = _TEXT.split()
_WORDS = 20_000
_LENGTH = 1_000_000  # words drawn at a time


class Prose:
    """Text without end, and slices of it."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng([seed, 1])
        lengths = self._chance.integers(1, 5, _WORDS)
        syllables = iter(self._chance.choice(_SYLLABLES, int(lengths.sum())).tolist())
        self._words = np.array(["".join(next(syllables) for _ in range(length)) for length in lengths])
        weights = 1 / (np.arange(_WORDS) + 2.7)
        self._weights = weights / weights.sum()
        self._text, self._at = b"", 0

    def slices(self, count: int, size_bytes: int) -> list[bytes]:
        """Return the next `count` pieces of about `size_bytes` together, each of another length."""
        lengths = (self._chance.dirichlet(np.full(count, 2.0)) * size_bytes).astype(int)
        ends = self._at + np.cumsum(lengths)
        if ends[-1] > len(self._text):
            self._text, ends = self._drawn(), ends - self._at
        pieces = [self._text[end - length : end] for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
        self._at = int(ends[-1])
        return pieces

    def _drawn(self) -> bytes:
        return " ".join(self._chance.choice(self._words, _LENGTH, p=self._weights).tolist()).encode()

    def sizes(self, count: int, mean_bytes: int) -> list[int]:
        """Return sizes of pages: most are smaller than the mean, a few much larger."""
        spread = 0.6
        drawn = self._chance.lognormal(-spread * spread / 2, spread, count)
        return (drawn * mean_bytes).astype(int).tolist()
