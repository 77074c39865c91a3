"""The counts of a simulation: totals, a bounded series of samples, pages a domain.

`Simulation` and its fetcher write it; report and progress line read it; checkpoints keep it.

Bounded: a series of `MOST_SAMPLES` is thinned to every second sample. Invariant: at a checkpoint, totals, series and
pages a domain describe the same instant.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fyke.core.batches import U64, Mask
from fyke.disk.store import Store
from fyke.lab.simulate.chance import I64
from fyke.lab.simulate.distinct import DistinctSample

MOST_SAMPLES = 400


@dataclass(slots=True)
class Totals:
    """Totals since the simulation began, over all its runs."""

    pages: int = 0
    spam_pages: int = 0
    links: int = 0
    failures: int = 0  # visits that ended without a page
    retries: int = 0
    page_bytes: int = 0
    rules: int = 0  # origins whose robots.txt came
    policy_bytes: int = 0  # read and written by the queues of rounds
    wall_s: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """How the simulation stood at one instant."""

    virtual_s: float
    pages: int
    spam_pages: int
    links: int  # checked against the URLs seen, which some still wait for
    unique: int  # distinct URLs met
    spam_share: float  # of `unique`
    waiting: int  # for their round
    over_budget: int
    ready: int
    spilled: int
    at_workbench: int
    domains: int  # met
    policy_bytes: int
    wall_s: float
    memory_bytes: int


@dataclass(slots=True)
class Tally:
    """Everything that is counted."""

    pages_of: np.typing.NDArray[np.uint32]  # fetched, by domain number
    totals: Totals = field(default_factory=Totals)
    samples: list[Sample] = field(default_factory=list)
    every_pages: int = 1000  # between two samples
    discovered: DistinctSample = field(default_factory=DistinctSample)
    _file: str = ""

    def fetched(self, domain: I64, spam: Mask) -> None:
        """Count fetched pages: domain numbers int64[n], and whether each is spam, bool[n]."""
        np.add.at(self.pages_of, domain, np.uint32(1))
        self.totals.pages += len(domain)
        self.totals.spam_pages += int(spam.sum())

    def linked(self, keys: U64, spam: Mask) -> None:
        """Count links to pages with these keys."""
        self.totals.links += len(keys)
        self.discovered.add(keys, spam)

    @property
    def sample_due(self) -> bool:
        """Whether the next sample is due."""
        return self.totals.pages >= (self.samples[-1].pages if self.samples else 0) + self.every_pages

    def add(self, sample: Sample) -> None:
        """Add `sample` to the series."""
        self.samples.append(sample)
        if len(self.samples) >= MOST_SAMPLES:
            self.samples = self.samples[1::2]
            self.every_pages *= 2

    def save(self, store: Store) -> dict[str, Any]:
        """Return everything that a restart needs; write pages a domain to a file of their own."""
        self._file = store.write_array("tally", self.pages_of, self._file)
        return {
            "file": self._file,
            "totals": asdict(self.totals),
            "samples": [list(asdict(sample).values()) for sample in self.samples],
            "every_pages": self.every_pages,
            "discovered": self.discovered.state(),
        }


def tally_of(domains: int, store: Store, saved: Mapping[str, Any]) -> Tally:
    """Return the tally that `save` gave, or a new one for this number of `domains`."""
    if not saved:
        return Tally(np.zeros(domains, np.uint32))
    return Tally(
        store.array(saved["file"], np.dtype("<u4"), domains).copy(),
        Totals(**saved["totals"]),
        [Sample(*values) for values in saved["samples"]],
        saved["every_pages"],
        DistinctSample(saved["discovered"]),
        saved["file"],
    )
