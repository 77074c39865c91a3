"""A simulation in a directory: checkpoints while it runs, and resuming from the newest one.

The command, the benches and the tests call `simulate`. The settings lie beside the checkpoints: the same command goes
on, and another one is refused.

Invariant: a checkpoint holds frontier, tally, copies and time at one instant. Nothing is drawn at random, so a
resumed simulation repeats what followed the checkpoint.
"""

import gc
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from fyke.core.config import Config
from fyke.core.errors import ConfigurationError, DirectoryError
from fyke.core.memory import memory_bytes, peak_memory_bytes
from fyke.disk.checkpoint import Checkpoint
from fyke.disk.files import write_whole, writing
from fyke.frontier.order import crawl_order
from fyke.lab.simulate.policy import config_of
from fyke.lab.simulate.simulation import Fetched, Simulation
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.tally import Sample
from fyke.lab.simulate.web import VirtualWeb

CHECKPOINT_PAGES = 500_000
WATCH_S = 0.5
SETTINGS, STATE = "simulation.json", "state"


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """Which policy crawls which web."""

    spec: VirtualWebSpec
    policy: str
    order: str = "breadth-first"
    politeness: Mapping[str, Any] | None = None  # settings of this section, over the policy's
    frontier: Mapping[str, Any] | None = None
    fetch: Mapping[str, Any] | None = None
    revisit: Mapping[str, Any] | None = None

    def config(self) -> Config:
        """Return the settings. Raises ConfigurationError or PluginError for an unknown name."""
        sections = {"politeness": self.politeness, "frontier": self.frontier, "fetch": self.fetch}
        sections["revisit"] = self.revisit
        config = config_of(self.policy, self.order, **{name: section or {} for name, section in sections.items()})
        crawl_order(config.frontier)
        return config


class StoredSimulation:
    """A simulation with its checkpoints."""

    def __init__(self, checkpoint: Checkpoint, settings: SimulationSettings, fetched: Fetched | None) -> None:
        self._checkpoint = checkpoint
        self._store = checkpoint.store
        saved = {name: self._store.participant(name) for name in ("frontier", "tally", "copies")}
        saved = {**saved, "now": checkpoint.counters["now"]} if checkpoint.number else {}
        self.simulation = Simulation(VirtualWeb(settings.spec), settings.config(), self._store, saved, fetched=fetched)
        self._wall_before_s = self.simulation.tally.totals.wall_s
        self._policy_before = self.simulation.tally.totals.policy_bytes
        self._opened_at = perf_counter()

    def __repr__(self) -> str:
        return f"StoredSimulation({self.simulation!r}, {self._checkpoint!r})"

    @property
    def number(self) -> int:
        """Number of the newest checkpoint."""
        return self._checkpoint.number

    def checkpoint(self) -> None:
        """Make the present state durable."""
        simulation = self.simulation
        self.count()
        state = simulation.state(self._store)
        participants = {name: state[name] for name in ("frontier", "tally", "copies")}
        snapshot = self._checkpoint.take(participants, {"now": state["now"]})
        snapshot.make_durable()
        self._checkpoint.committed(snapshot)
        gc.collect()

    def count(self) -> None:
        """Update wall time, policy bytes and peak memory, which are not counted as they come."""
        totals = self.simulation.tally.totals
        totals.wall_s = self._wall_before_s + perf_counter() - self._opened_at
        totals.policy_bytes = self._policy_before + self.simulation.frontier.policy_bytes
        totals.peak_memory_bytes = max(totals.peak_memory_bytes, peak_memory_bytes())

    def sample(self) -> Sample:
        """Return the present state of the simulation."""
        self.count()
        simulation, tally = self.simulation, self.simulation.tally
        now = simulation.frontier.statistics()
        return Sample(
            virtual_s=simulation.virtual_s,
            pages=tally.totals.pages,
            spam_pages=tally.totals.spam_pages,
            links=tally.totals.links - now.unchecked,
            unique=now.unique,
            spam_share=tally.discovered.spam_share,
            waiting=now.waiting,
            over_budget=now.over_budget,
            ready=now.ready,
            spilled=now.spilled,
            at_workbench=simulation.fetcher.bench.visits,
            domains=now.domains,
            policy_bytes=tally.totals.policy_bytes,
            wall_s=tally.totals.wall_s,
            memory_bytes=memory_bytes(),
        )

    def close(self) -> None:
        self.simulation.close()


@contextmanager
def opened(directory: Path, settings: SimulationSettings, fetched: Fetched | None = None) -> Iterator[StoredSimulation]:
    """Open the simulation in `directory`, new or from its newest checkpoint.

    Raises ConfigurationError if `directory` holds another simulation, DirectoryError if it holds anything else, and
    whatever `Checkpoint` raises.
    """
    settings.config()
    _require_ours(directory)
    with Checkpoint(directory / STATE) as checkpoint:
        _note(directory / SETTINGS, settings)
        simulation = StoredSimulation(checkpoint, settings, fetched)
        try:
            yield simulation
        finally:
            simulation.close()


def simulate(
    simulation: StoredSimulation,
    pages: int,
    *,
    checkpoint_pages: int = CHECKPOINT_PAGES,
    watch: Callable[[Sample], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Go on until `pages` pages were fetched in all, nothing is left, or `stopped`; then take a checkpoint.

    `watch` is called with a sample every `WATCH_S` seconds. A simulation that already has its pages is left
    unchanged.
    """
    tally = simulation.simulation.tally
    if tally.totals.pages >= pages:
        return
    checkpoint_at = tally.totals.pages + checkpoint_pages
    watch_at = 0.0
    going = True
    with _garbage_kept():
        while going and tally.totals.pages < pages and not stopped():
            going = simulation.simulation.step()
            if tally.sample_due:
                tally.add(simulation.sample())
            if watch is not None and perf_counter() >= watch_at:
                watch(simulation.sample())
                watch_at = perf_counter() + WATCH_S
            if tally.totals.pages >= checkpoint_at:
                simulation.checkpoint()
                checkpoint_at = tally.totals.pages + checkpoint_pages
        tally.add(simulation.sample())
        simulation.checkpoint()


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Collect garbage only at checkpoints: there are many objects, and hardly a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _require_ours(directory: Path) -> None:
    """Raise DirectoryError if `directory` holds anything but a simulation or the start of one."""
    with writing(directory, refused="fix that, or choose another folder with --into"):
        directory.mkdir(parents=True, exist_ok=True)
        ours = {directory / STATE, directory / STATE / "lock", directory / f"{SETTINGS}.part"}
        if not (directory / SETTINGS).is_file() and not all(path in ours for path in directory.rglob("*")):
            raise DirectoryError(f"{directory} is not empty and holds no simulation: choose another folder with --into")


def _note(path: Path, settings: SimulationSettings) -> None:
    """Write the settings to `path`, or compare them with those written before."""
    now = json.loads(json.dumps(asdict(settings)))
    if not path.exists():
        write_whole(path, (json.dumps(now, indent=2) + "\n").encode())
        return
    try:
        before = json.loads(path.read_bytes())
    except ValueError:  # written by another program, or damaged
        before = None
    if before != now:
        raise ConfigurationError(
            f"{path.parent} holds the simulation of another web or policy: give another directory, or what"
            f" {path.name} there says"
        )
