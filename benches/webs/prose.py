"""Words to fill pages with: made up, as frequent as words are, and as compressible.

Called by `plain` and `endless`. Invariant: the same seed gives the same text; no two slices of it are likely equal.
"""

import numpy as np

_TEXT = "ba ce di fo gu la me ni ro su ta ve wi yo za ber cal den fil gor hem lin mar nes pol ras sel tor und ver"
_SYLLABLES = _TEXT.split()
_WORDS = 20_000
_LENGTH = 1_000_000  # words


class Prose:
    """Several megabytes of text, and slices of it."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng([seed, 1])
        lengths = self._chance.integers(1, 5, _WORDS)
        syllables = iter(self._chance.choice(_SYLLABLES, int(lengths.sum())).tolist())
        words = ["".join(next(syllables) for _ in range(length)) for length in lengths]
        weights = 1 / (np.arange(_WORDS) + 2.7)
        text = self._chance.choice(words, _LENGTH, p=weights / weights.sum())
        self._text = " ".join(text.tolist()).encode()

    def slices(self, count: int, size_bytes: int) -> list[bytes]:
        """`count` pieces of about `size_bytes` together, each of another length."""
        parts = self._chance.dirichlet(np.full(count, 2.0)) * size_bytes
        starts = self._chance.integers(0, len(self._text) - int(parts.max()) - 1, count)
        return [self._text[start : start + int(length)] for start, length in zip(starts.tolist(), parts, strict=True)]

    def sizes(self, count: int, mean_bytes: int) -> list[int]:
        """Sizes of pages: most are smaller than the mean, a few much larger."""
        spread = 0.6
        drawn = self._chance.lognormal(-spread * spread / 2, spread, count)
        return (drawn * mean_bytes).astype(int).tolist()
