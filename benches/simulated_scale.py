"""As many pages as fit: the real frontier and politeness over a virtual web, for an hour or a number of pages.

    .venv/bin/python benches/simulated_scale.py DIR [pages] [minutes] [domains]

One process, one core: an hour is enough for 50 to 70 million pages, two for 100 million, in memory that does not
grow. Prints pages a second of the whole simulation (frontier, politeness, virtual web, checkpoints) and the memory
held on the way. May be killed at any time; the same command goes on. Afterwards DIR holds the report.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from usage import arguments

from fyke.lab.simulate.keep import SimulationSettings, StoredSimulation, opened, simulate
from fyke.lab.simulate.report import text, write
from fyke.lab.simulate.session import stopping
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.tally import Sample
from fyke.quantities import bytes_text, count_text, number, time_text

LINE_S = 30.0
CHECKPOINT_PAGES = 2_000_000


def settings_of(domains: int) -> SimulationSettings:
    """Return STAR and BEAST over a web with one spam domain in five hundred, with memory for a crawl of this size."""
    spec = VirtualWebSpec(domains=domains, farms=max(1, domains // 1500))
    return SimulationSettings(spec, "star-beast", frontier={"table_memory_bytes": 128 << 20})


def said() -> Callable[[Sample], None]:
    """Return a function that prints a sample every `LINE_S` seconds."""
    last_s = 0.0

    def say(now: Sample) -> None:
        nonlocal last_s
        if now.wall_s - last_s >= LINE_S:
            last_s = now.wall_s
            rate = f"{number(now.pages / now.wall_s)} pages/s"
            memory = bytes_text(now.memory_bytes)
            print(f"{time_text(now.wall_s):>14} {count_text(now.pages):>14} pages {rate:>15} {memory:>9}", flush=True)

    return say


def run(simulation: StoredSimulation, pages: int, seconds: float) -> None:
    """Simulate up to `pages` pages or for `seconds`."""
    end = perf_counter() + seconds
    with stopping() as stopped:
        over = lambda: stopped() or perf_counter() >= end  # noqa: E731
        simulate(simulation, pages, checkpoint_pages=CHECKPOINT_PAGES, watch=said(), stopped=over)


def memory_held(samples: Sequence[Sample]) -> str:
    """Return the mean memory of each tenth of the pages, over all runs of this simulation, in words."""
    pages = np.array([sample.pages for sample in samples])
    held = np.array([sample.memory_bytes for sample in samples])
    tenth = np.minimum(10 * pages // pages[-1], 9)
    means = [bytes_text(held[tenth == number].mean()) for number in range(10) if (tenth == number).any()]
    return f"memory held, by tenths of the pages: {', '.join(means)}; at most {bytes_text(held.max())}"


def main() -> None:
    directory, pages, minutes, domains = arguments(
        __doc__, directory=Path, pages=100_000_000, minutes=60.0, domains=2_000_000
    )
    settings = settings_of(domains)
    with opened(directory, settings) as simulation:
        run(simulation, pages, 60 * minutes)
        summary = write(simulation, settings, directory)
        samples = simulation.simulation.tally.samples
    print(text(summary))
    print(memory_held(samples))


if __name__ == "__main__":
    main()
