"""The division of a crawl between agents: a domain belongs to a shard of the frontier, an address to an agent.

There are as many shards as agents at the crawl's beginning. The number of agents may grow later, and never shrinks: a
later agent has a shard without domains, and addresses of its own. One process may run several agents. Each has a part
of the crawl's directory: its state, and its own series of files in archive and tables.
"""

import os
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from fyke.core.batches import U64
from fyke.core.errors import StateDamaged
from fyke.disk.files import allowed, read_whole, write_whole
from fyke.disk.sealed import sealed, unsealed


class Division(NamedTuple):
    """The numbers of shards of the frontier, and of agents, each of which has a directory of state."""

    shards: int = 1
    agents: int = 1

    def shard_of(self, domain: int) -> int:
        """Return the shard of a domain, by the top bits of its key, so that a shard could be split into neighbours."""
        return (domain >> 32) * self.shards >> 32

    def shards_of(self, domains: U64) -> npt.NDArray[np.int64]:
        """Return the shards of many domains: int64[n]."""
        return ((domains >> np.uint64(32)) * np.uint64(self.shards) >> np.uint64(32)).astype(np.int64)

    def agent_of(self, address: str) -> int:
        """Return the agent that asks the server at `address`; for IPv6 by its first 64 bits, which belong to one
        customer."""
        try:
            ip = ip_address(address)
            network = ip.packed[:8] if isinstance(ip, IPv6Address) else ip.packed
        except ValueError:  # the name of a host that is asked through a proxy
            network = address.encode()
        return xxhash.xxh3_64_intdigest(network) % self.agents


def division(state: Path) -> Division:
    """Return how the crawl with the folder `state` is divided. Raises StateDamaged."""
    path = state / "agents.json"
    if not os.path.lexists(path):
        with allowed(state):
            is_divided = (state / "shard-0001").is_dir()  # made after agents.json
        if is_divided:
            raise StateDamaged(f"{path} is gone: restore it from a copy")
        return Division()
    try:
        with allowed(path):
            found = unsealed("agents", read_whole(path))
        return Division(int(found["shards"]), int(found["agents"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise StateDamaged(f"{path} is damaged: restore it from a copy") from None


def divide(state: Path, agents: int, *, begun: bool) -> Division:
    """Make sure that the crawl has at least `agents`, and write that down; `begun` says that it has run before."""
    before = division(state)
    wanted = Division(before.shards if begun else agents, max(agents, before.agents if begun else 1))
    if wanted != before:
        write_whole(state / "agents.json", sealed("agents", wanted._asdict()))
    return wanted
