"""How a crawl is divided between agents: a domain belongs to a shard of the frontier, an address to an agent.

The number of shards is that of the agents a crawl began with. The number of agents may grow later: those that come have
a shard without domains, and addresses of their own. It never shrinks; one process may run several agents. Each has a
part of the crawl's directory: its state, and its own series of files in archive and tables.
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
from fyke.disk.sealed import sealed, unsealed_or_old


class Division(NamedTuple):
    """How a crawl is divided: shards of the frontier, and agents, of which each has a directory of state."""

    shards: int = 1
    agents: int = 1

    def shard_of(self, domain: int) -> int:
        """The shard of a domain, by its key: its top bits, so that a shard could be split into neighbours."""
        return (domain >> 32) * self.shards >> 32

    def shards_of(self, domains: U64) -> npt.NDArray[np.int64]:
        """The same of many: int64[n]."""
        return ((domains >> np.uint64(32)) * np.uint64(self.shards) >> np.uint64(32)).astype(np.int64)

    def agent_of(self, address: str) -> int:
        """The agent that asks the server at `address`: of IPv6 the first 64 bits decide, as they are one customer's."""
        try:
            ip = ip_address(address)
            network = ip.packed[:8] if isinstance(ip, IPv6Address) else ip.packed
        except ValueError:  # of a host that is asked through a proxy: its name
            network = address.encode()
        return xxhash.xxh3_64_intdigest(network) % self.agents


def division(state: Path) -> Division:
    """How the crawl whose folder `state` this is is divided. Raises StateDamaged."""
    path = state / "agents.json"
    if not os.path.lexists(path):
        with allowed(state):
            is_divided = (state / "shard-0001").is_dir()  # made after it
        if is_divided:
            raise StateDamaged(f"{path} is gone: put it back from a copy")
        return Division()
    try:
        with allowed(path):
            found = unsealed_or_old("agents", read_whole(path))
        return Division(int(found["shards"]), int(found["agents"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise StateDamaged(f"{path} is damaged: put it back from a copy") from None


def divide(state: Path, agents: int, *, begun: bool) -> Division:
    """See to it that the crawl has `agents` at least, and write that down; `begun` says that it has run before."""
    before = division(state)
    wanted = Division(before.shards if begun else agents, max(agents, before.agents if begun else 1))
    if wanted != before:
        write_whole(state / "agents.json", sealed("agents", wanted._asdict()))
    return wanted
