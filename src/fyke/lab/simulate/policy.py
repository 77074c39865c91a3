"""The policies that can be tried: names for a few settings of the real crawler.

`fyke simulate --policy NAME --order NAME` and the benches choose here; `Simulation` builds frontier and workbench
from the resulting `Config`. Delays are IRLbot's (Lee et al., WWW 2008, section 6.1): 40 seconds a host, one second a
server.

Invariant: a policy contains only settings that `fyke.toml` could contain.
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
        "star-beast": {"enforcement": "beast"},  # budgets by reputation; URLs over budget wait
        "naive": {"enforcement": "naive"},  # the same budgets, and two queues
        "breadth-first": {"enforcement": "none", "budget": "equal"},  # first come, first served, at fixed delays
    }
)


def config_of(policy: str, order: str = "breadth-first", **sections: Mapping[str, Any]) -> Config:
    """Return the settings of a simulation under `policy`, overridden by those in `sections`.

    Raises ConfigurationError for an unknown policy.
    """
    if policy not in POLICIES:
        raise ConfigurationError(f"unknown policy {policy!r}; known here: {', '.join(POLICIES)}")
    values = {name: dict(section) for name, section in _SHARED.items()}
    values["frontier"] |= {"order": order, **POLICIES[policy]}
    for name, section in sections.items():
        values.setdefault(name, {}).update(section)
    return build(values, f"policy {policy}")
