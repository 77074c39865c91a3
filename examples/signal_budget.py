"""A budget function that takes signals into account: what a link farm's in-degree has bought it loses again.

`fyke index` writes beside the rank of each domain who stands behind those who link to it. Give the table of an earlier
crawl, or of the one that goes on:

    fyke index there
    DOMAINRANK=there/tables/domainrank.parquet PYTHONPATH=examples fyke crawl ... --into again --config signals.toml

with `[frontier] budget = "signal_budget:SignalBudget"` in signals.toml. Nobody is left out: a round has less of them.
"""

import os

import numpy as np
import pyarrow.parquet as pq

DEFAULT, HIGHEST = 10, 10_000
DEPENDENT_URLS = 2  # a round, of a domain that
LEAST_LINKERS = 10  # so many link to, and behind these are
DEPENDENT = 0.1  # of the others that are usual


class SignalBudget:
    """By reputation, but for domains whose linkers have hardly anybody behind them."""

    def __init__(self) -> None:
        columns = ["key", "linkers", "independence"]
        table = pq.read_table(os.environ["DOMAINRANK"], columns=columns)
        keys, linkers, independence = (table.column(name).to_numpy() for name in columns)
        self._dependent = np.sort(keys[(linkers >= LEAST_LINKERS) & (independence < DEPENDENT)])

    def budgets(self, domains: np.ndarray, in_degree: np.ndarray, standing: np.ndarray) -> np.ndarray:
        """One budget for each domain."""
        earned = np.rint(DEFAULT + (HIGHEST - DEFAULT) * standing).astype(np.int64)
        return np.where(np.isin(domains, self._dependent), DEPENDENT_URLS, earned)
