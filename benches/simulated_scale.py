"""As many pages as fit: the real frontier and politeness over a virtual web, for an hour or for so many pages.

    .venv/bin/python benches/simulated_scale.py DIR [pages] [minutes] [domains]

One process, one core: an hour is enough for 50 to 70 million pages, two hours for 100 million, in memory that does not
grow. Prints pages a second (of the whole simulation, frontier, politeness, virtual web, checkpoints), and how much
memory it held, at a tenth of the way and at the end. May be killed at any time; the same command goes on. Afterwards DIR
holds the report.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from fyke.crawl.statistics import peak_memory_bytes
from fyke.plan.quantities import bytes_text, count_text, number, time_text
from fyke.simulate.keep import Asked, Kept, kept, simulate
from fyke.simulate.report import text, write
from fyke.simulate.session import stopping
from fyke.simulate.spec import WebSpec
from fyke.simulate.tally import Sample

LINE_S = 30.0
CHECKPOINT_PAGES = 2_000_000


def asked_of(domains: int) -> Asked:
    """STAR and BEAST over a web with one spam domain in five hundred, with memory for a crawl of this size."""
    spec = WebSpec(domains=domains, farms=max(1, domains // 1500))
    return Asked(spec, "star-beast", frontier={"table_memory_bytes": 128 << 20})


def said() -> Callable[[Sample], None]:
    """A function that prints a sample every `LINE_S` seconds."""
    last_s = 0.0

    def say(now: Sample) -> None:
        nonlocal last_s
        if now.wall_s - last_s >= LINE_S:
            last_s = now.wall_s
            rate = f"{number(now.pages / now.wall_s)} pages/s"
            memory = bytes_text(now.memory_bytes)
            print(f"{time_text(now.wall_s):>14} {count_text(now.pages):>14} pages {rate:>15} {memory:>9}", flush=True)

    return say


def run(simulation: Kept, pages: int, seconds: float) -> tuple[int, int]:
    """Simulate up to `pages` pages or for `seconds`; peak memory, in bytes, at a tenth of the pages and at the end."""
    end = perf_counter() + seconds
    with stopping() as stopped:
        over = lambda: stopped() or perf_counter() >= end  # noqa: E731
        say = said()
        simulate(simulation, pages // 10, checkpoint_pages=CHECKPOINT_PAGES, watch=say, stopped=over)
        early = peak_memory_bytes()
        simulate(simulation, pages, checkpoint_pages=CHECKPOINT_PAGES, watch=say, stopped=over)
    return early, peak_memory_bytes()


def main() -> None:
    directory, *rest = sys.argv[1:]
    pages, minutes, domains = [*rest, *["100000000", "60", "2000000"][len(rest) :]][:3]
    asked = asked_of(int(float(domains)))
    with kept(Path(directory), asked) as simulation:
        early, late = run(simulation, int(float(pages)), 60 * float(minutes))
        summary = write(simulation, asked, Path(directory))
    print(text(summary))
    print(f"peak memory of this run: {bytes_text(early)} at a tenth of the pages, {bytes_text(late)} at the end")


if __name__ == "__main__":
    main()
