"""A crawl order: short URLs first, because a site's front pages tend to have them.

    python examples/crawl_order.py http://example.org/ there

or, for `fyke crawl` with `PYTHONPATH=examples`: `[frontier] order = "crawl_order:ShortFirst"`.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fyke

STEP = 16  # bytes of URL for each level


class ShortFirst:
    """Level 0 for URLs of fewer than 32 bytes, and one level more for every 16 bytes."""

    def levels(self, urls: pa.RecordBatch) -> np.ndarray:
        """Return one level from 0 (first) to 7 for each row."""
        lengths = pc.binary_length(urls.column("url")).to_numpy(zero_copy_only=False)
        return np.clip(lengths // STEP - 1, 0, 7)


def main(url: str, into: str) -> None:
    config = fyke.Config(frontier={"order": "crawl_order:ShortFirst"})
    with fyke.Crawl(url, into, config=config) as crawl:
        for page in crawl:
            print(page.url)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: python examples/crawl_order.py URL FOLDER", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
