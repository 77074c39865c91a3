"""How long hosts and addresses rest between two requests: asked by the workbench, and by desks that plan ahead.

The rule is Mercator's (section 3.2 and its successor's k x download time) and IRLbot's (section 6.1, host and server
limits together). After a request a host rests for the longest of its own delay, its Crawl-delay, `delay_factor` times
the download's duration (up to a ceiling), and the server's Retry-After. The delays of host and address are those of a
domain with the default budget. They shrink in proportion to a larger budget, down to a floor, so that a giant's URLs
are fetched as fast as its budget lets them in. For an address the mean budget of its domains counts.
"""

from collections.abc import Callable

from fyke.core.config import PolitenessSection
from fyke.fetcher.host import Address, Host


def download_rest_s(config: PolitenessSection, duration_s: float) -> float:
    """Return the seconds that a host rests because of a download that took `duration_s`."""
    return min(config.delay_factor * duration_s, config.max_delay_s)


class Delays:
    """The delays of a crawl, in seconds."""

    def __init__(
        self, config: PolitenessSection, default_budget_urls: int, own_s: Callable[[str], float | None]
    ) -> None:
        """`own_s(host)` is the rest that a person set in place of the usual one."""
        self._config = config
        self.default_budget_urls = default_budget_urls
        self.own_s = own_s

    def of_host(self, host: Host, duration_s: float) -> float:
        """Return how long `host` rests after a download that took `duration_s`."""
        crawl_delay_s = host.crawl_delay_s or 0.0
        own_s = self.own_s(host.name)
        if own_s is not None:
            return max(own_s, crawl_delay_s)
        return max(self.of_domain(host.budget), download_rest_s(self._config, duration_s), crawl_delay_s)

    def of_address(self, address: Address) -> float:
        """Return how long `address` rests after a request."""
        return self._scaled(self._config.address_delay_s, self._config.min_address_delay_s, address.mean_budget)

    def of_domain(self, budget: int) -> float:
        """Return the least time between two requests to a host of a domain with `budget`."""
        return self._scaled(self._config.host_delay_s, self._config.min_host_delay_s, budget)

    def _scaled(self, delay_s: float, least_s: float, budget: float) -> float:
        """Return `delay_s` x B0 / B, at least `least_s` but never more than `delay_s` (IRLbot, section 6.1)."""
        if budget <= self.default_budget_urls:
            return delay_s
        return max(min(least_s, delay_s), delay_s * self.default_budget_urls / budget)
