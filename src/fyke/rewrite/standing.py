"""Which of several hosts with the same pages do people mean?

`mirrors` asks, to know where its rules lead. First come hosts that a person named as seeds: a crawl that rewrote them
would leave its scope. Then those whose domain more other domains link to, as the crawl counted it when it last stopped.
Then those without `www.` or the like; at last the alphabet decides.

Bounded: seeds and domains stream by, and only those of the hosts in question are kept.
"""

from collections.abc import Collection
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.asked import all_seeds
from fyke.archive.directory import CrawlDirectory
from fyke.archive.reading import scan_table
from fyke.core.urls import main_name, pay_level_domain, split


def by_standing(folder: Path, hosts: Collection[str]) -> list[str]:
    """Return `hosts` of the crawl directory `folder`, those that people mean first. Raises StateDamaged."""
    named, linked = _named(folder, {main_name(host) for host in hosts}), _linked(folder, hosts)

    def standing(host: str) -> tuple[bool, int, bool, str]:
        name = main_name(host)
        return name not in named, -linked.get(pay_level_domain(host), 0), host != name, host

    return sorted(hosts, key=standing)


def _named(folder: Path, names: set[str]) -> set[str]:
    """Return those of the sites `names` that have a seed. A seed may redirect to another host of its site."""
    crawl = CrawlDirectory(folder)
    typed = all_seeds(crawl.state, crawl.config())
    urls = chain((seed.url.decode() for seed in typed), crawl.listed.urls())
    return names.intersection(main_name(split(url).host) for url in urls)


def _linked(folder: Path, hosts: Collection[str]) -> dict[str, int]:
    """Return the in-degree of each domain of `hosts`, as far as it is known."""
    wanted = pa.array({pay_level_domain(host) for host in hosts}, pa.string())
    found: dict[str, int] = {}
    for batch in scan_table(folder, "domains", ["domain", "in_degree"]):
        rows = batch.filter(pc.is_in(batch.column("domain"), value_set=wanted))
        found.update(zip(rows.column("domain").to_pylist(), rows.column("in_degree").to_pylist(), strict=True))
    return found
