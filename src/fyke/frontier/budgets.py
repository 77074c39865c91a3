"""How many URLs of a domain a round lets through: the budget functions to choose from.

STAR (`fyke.frontier.star`) knows how many other domains link to each and asks one of these, or a plug-in of the kind
`BudgetFunction`. They are IRLbot's (section 5.2): the default of its experiment, and two policies named beside it.

The first places belong to the hundredth of all domains met that most others link to, 10,000 at most. `standing` is the
share of these places that a domain stands above, in [0, 1]. So a farm whose domains link to each other needs more links
than the most popular honest ones, however few domains were met. Domains with the same in-degree stand alike.
"""

import numpy as np

from fyke.core.batches import U64
from fyke.core.config import FrontierSection
from fyke.core.plugins import BudgetFunction, Numbers, Shares, load_plugin

MOST_URLS = 65_535  # the most that the column `budget` holds


class Reputation:
    """Linear in the rank among the first, from the default to the highest, as IRLbot crawled (section 7.2)."""

    def __init__(self, default_urls: int, max_urls: int) -> None:
        self._default = min(default_urls, MOST_URLS)
        self._span = max(0, max_urls - self._default)

    def budgets(self, domains: U64, in_degree: U64, standing: Shares) -> Numbers:
        return np.rint(self._default + self._span * standing).astype(np.uint16)


class Equal:
    """The same budget for all domains."""

    def __init__(self, default_urls: int) -> None:
        self._default = min(default_urls, MOST_URLS)

    def budgets(self, domains: U64, in_degree: U64, standing: Shares) -> Numbers:
        return np.full(len(standing), self._default, np.uint16)


class Popular:
    """Budgets for the first domains only, by their rank."""

    def __init__(self, max_urls: int) -> None:
        self._max = max_urls

    def budgets(self, domains: U64, in_degree: U64, standing: Shares) -> Numbers:
        return np.rint(self._max * standing).astype(np.uint16)


def budget_function(config: FrontierSection) -> BudgetFunction:
    """Return the function that `config` names. Raises PluginError for a name that is neither ours nor a plug-in's."""
    match config.budget:
        case "reputation":
            return Reputation(config.default_budget_urls, config.max_budget_urls)
        case "equal":
            return Equal(config.default_budget_urls)
        case "popular":
            return Popular(config.max_budget_urls)
    plugin: BudgetFunction = load_plugin(config.budget, "budgets", BudgetFunction)
    return plugin
