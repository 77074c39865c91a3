"""A budget function that uses signals: the links between a farm's own domains earn hardly any budget.

`fyke index` writes a table of domains, `domainrank`. For each domain it says how many domains are behind its linkers,
that is, link to the domains that link to it. Here the environment variable DOMAINRANK names that table, of an earlier
crawl or of this one. For `fyke crawl` with `PYTHONPATH=examples`:
`[frontier] budget = "signal_budget:SignalBudget"`.

    python examples/signal_budget.py http://example.org/ again there/tables/domainrank.parquet

crawls a hundred pages of the web from that URL on. It leaves no domain out: a domain of a farm only has fewer
URLs a round.
"""

import os
import sys

import numpy as np
import pyarrow.parquet as pq

import fyke

DEFAULT, HIGHEST = 10, 10_000
DEPENDENT_URLS = 2  # a round, for a dependent domain
LEAST_LINKERS = 10  # a dependent domain has at least this many linkers,
DEPENDENT = 0.1  # and behind these less than this share of the usual number


class SignalBudget:
    """Budgets by reputation, except for domains whose linkers have hardly any domain behind them."""

    def __init__(self) -> None:
        columns = ["key", "linkers", "independence"]
        table = pq.read_table(os.environ["DOMAINRANK"], columns=columns)
        keys, linkers, independence = (table.column(name).to_numpy() for name in columns)
        self._dependent = np.sort(keys[(linkers >= LEAST_LINKERS) & (independence < DEPENDENT)])

    def budgets(self, domains: np.ndarray, in_degree: np.ndarray, standing: np.ndarray) -> np.ndarray:
        """Return one budget for each domain."""
        earned = np.rint(DEFAULT + (HIGHEST - DEFAULT) * standing).astype(np.int64)
        return np.where(np.isin(domains, self._dependent), DEPENDENT_URLS, earned)


def main(url: str, into: str, table: str) -> None:
    os.environ["DOMAINRANK"] = table
    config = fyke.Config(frontier={"budget": "signal_budget:SignalBudget"})
    with fyke.Crawl(url, into, config=config, scope="web", pages=100) as crawl:
        for page in crawl:
            print(page.exchange.visit.url)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print("usage: python examples/signal_budget.py URL FOLDER TABLE", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
