"""A URL filter: leave out URLs that look like a trap, such as /a/b/a/b/a/b/ or an endless calendar.

    python examples/url_filter.py http://example.org/ there

or, for `fyke crawl` with `PYTHONPATH=examples`: `[plugins] filters = ["url_filter:NoTraps"]`.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fyke

SEGMENTS = 12  # deepest path that people write
REPEATS = 3  # most occurrences of one segment


class NoTraps:
    """A filter that refuses paths that are very deep or repeat a segment often."""

    def accept(self, urls: pa.RecordBatch) -> np.ndarray:
        """Return one answer for each row. It looks one by one only at paths with many slashes."""
        slashes = pc.count_substring(urls.column("url"), b"/").to_numpy(zero_copy_only=False)
        mask = np.ones(urls.num_rows, bool)
        for row in np.flatnonzero(slashes > 2 + REPEATS):
            mask[row] = self._believable(urls.column("url")[row].as_py())
        return mask

    def _believable(self, url: bytes) -> bool:
        steps = [step for step in url.partition(b"?")[0].split(b"/")[3:] if step]
        return len(steps) <= SEGMENTS and all(steps.count(step) <= REPEATS for step in set(steps))


def main(url: str, into: str) -> None:
    with fyke.Crawl(url, into=into, filters=[NoTraps()]) as crawl:
        for page in crawl:
            print(page.url)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: python examples/url_filter.py URL FOLDER", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
