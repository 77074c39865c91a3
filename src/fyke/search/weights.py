"""How much does a page count by itself, whatever is asked? Its relevance is multiplied by that.

Called by merges. There are three gentle factors.

- PageRank of the page and its domain counts by its logarithm and in steps, so that a growing crawl does not write every
  document again; ten thousand times the mean rank counts about two and a half times.
- Long, deep addresses lose up to a quarter, and a page that names another address as its own a fifth.
- A page of teasers (`fyke.search.teasers`) loses a third: what it says is said of the pages that it leads to. An
  article that names some others loses little, because the share of its text counts by its square.

Invariant: a factor is at least 1 and the same for the same page and rank.
"""

import numpy as np
import numpy.typing as npt

from fyke.disk.ranges import Array

RANK_STEP = 0.5  # of the binary logarithm
RANK_GAIN = 0.12
DOMAIN_SHARE = 0.25
STEP_LOSS = 0.03  # a segment of the path
CHAR_LOSS = 0.001  # a character of the URL
MOST_LOSS = 0.25
OTHER_LOSS = 0.2
TEASERS_LOSS = 0.35  # of a page of nothing else
_SCALE = 3.0  # so that no factor falls below 1

Floats = npt.NDArray[np.float64]


def factors(rows: Array, page_rank: Floats, domain_rank: Floats) -> Floats:
    """Return the factor of each of the catalogue's `rows`: float64[n]. Ranks are multiples of the mean, 0 if
    unknown."""
    height = (1 - DOMAIN_SHARE) * np.log2(1 + page_rank) + DOMAIN_SHARE * np.log2(1 + domain_rank)
    rank = 1 + RANK_GAIN * RANK_STEP * np.round(height / RANK_STEP)
    loss = np.minimum(STEP_LOSS * rows["steps"].astype(float) + CHAR_LOSS * rows["url_chars"], MOST_LOSS)
    other = (rows["canonical"] != 0) & (rows["canonical"] != rows["key"])
    own = 1 - TEASERS_LOSS * (rows["teased"] / 100) ** 2
    result: Floats = np.round(_SCALE * rank * (1 - loss) * np.where(other, 1 - OTHER_LOSS, 1.0) * own, 3)
    return result


def as_field(factor: Floats) -> Floats:
    """Return what to store so that tantivy, which multiplies by log2(2 + field), multiplies by `factor`."""
    return np.exp2(factor) - 2
