"""A budget function: grow with the square root of the in-degree, so that mid-sized sites get their share.

For `fyke crawl` with `PYTHONPATH=examples`: `[frontier] budget = "budget_function:SquareRoot"`.

    python examples/budget_function.py http://example.org/ there

crawls a hundred pages of the web from that URL on, and prints the budget of each domain.
"""

import sys

import numpy as np
import pyarrow.parquet as pq

import fyke

LEAST = 10


class SquareRoot:
    """Ten URLs a round for a domain without in-links, otherwise ten times the square root of its in-degree."""

    def budgets(self, domains: np.ndarray, in_degree: np.ndarray, standing: np.ndarray) -> np.ndarray:
        """Return one budget for each domain.

        It does not use `domains` (their keys) or `standing` (their places in the ranking, 0 to 1).
        """
        return np.clip(LEAST * np.sqrt(in_degree), LEAST, 65_535).astype(np.int64)


def main(url: str, into: str) -> None:
    config = fyke.Config(frontier={"budget": "budget_function:SquareRoot"})
    with fyke.Crawl(url, into, config=config, scope="web", pages=100) as crawl:
        for _ in crawl:
            pass
    table = pq.read_table(f"{into}/tables/domains-00000.parquet")
    for row in table.sort_by([("in_degree", "descending")]).slice(0, 20).to_pylist():
        print(f"{row['domain']:30} in-degree {row['in_degree']:4}, budget {row['budget']:5}, {row['fetched']} pages")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: python examples/budget_function.py URL FOLDER", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
