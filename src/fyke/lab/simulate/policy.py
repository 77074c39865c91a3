"""Which policy is tried: names for a few settings of the real crawler.

`fyke simulate --policy NAME --order NAME` and the benches choose here; the driver builds frontier and workbench
from the `Config` that comes out. Delays are IRLbot's (Lee et al., WWW 2008, section 6.1): 40 seconds a host and
one a server.

Invariant: a policy says nothing that `fyke.toml` could not say.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fyke.core.config import Config, build
from fyke.core.errors import ConfigurationError

_SHARED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "crawl": {"scope": "web"},
        "politeness": {"host_delay_s": 40.0, "address_delay_s": 1.0, "delay_factor": 0.0},
        "fetch": {"connections": 1000},
        "frontier": {
            "window_visits": 100_000,
            "host_visits": 32,
        },
    }
)

POLICIES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "star-beast": {"enforcement": "beast"},  # budgets by reputation; what is over budget waits
        "naive": {"enforcement": "naive"},  # the same budgets, and two queues
        "breadth-first": {"enforcement": "none", "budget": "equal"},  # first come, first served, at fixed delays
    }
)


def config_of(policy: str, order: str = "breadth-first", **sections: Mapping[str, Any]) -> Config:
    """The settings of a simulation under `policy`, with those in `sections` over them.

    Raises ConfigurationError for a policy that has no name here.
    """
    if policy not in POLICIES:
        raise ConfigurationError(f"unknown policy {policy!r}; known here: {', '.join(POLICIES)}")
    values = {name: dict(section) for name, section in _SHARED.items()}
    values["frontier"] |= {"order": order, **POLICIES[policy]}
    for name, section in sections.items():
        values.setdefault(name, {}).update(section)
    return build(values, f"policy {policy}")
