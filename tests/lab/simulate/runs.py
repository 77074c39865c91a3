"""A web small enough to be crawled to its end, a crawl of it in a process of its own, and what that crawl fetched.

`python runs.py DIR LOG POLICY` simulates in DIR until nothing is left, and appends a row to LOG for each page:
the process, the number of its newest checkpoint, the page's domain, its number. The tests kill it and start it again.
"""

import os
import sys
from pathlib import Path

import numpy as np

from fyke.lab.simulate import texts
from fyke.lab.simulate.keep import SimulationSettings, opened, simulate
from fyke.lab.simulate.simulation import SEEDS
from fyke.lab.simulate.spec import VirtualWebSpec

FINITE = VirtualWebSpec(
    domains=150, size_scale=4.0, giants=0, farms=0, size_growth=0.6, dead_share=0, weary_share=0, slow_share=0.02
)
ROW = np.dtype([("run", "<i8"), ("checkpoint", "<i8"), ("domain", "<i8"), ("page", "<i8")])


def settings_for(policy):
    """A crawl of the finite web; impatient, so that it ends soon."""
    return SimulationSettings(
        FINITE, policy, politeness={"host_delay_s": 0.25, "address_delay_s": 0.1}, fetch={"connections": 300}
    )


def reachable(web):
    """All pages that can be reached from the seeds, as pairs of numbers."""
    text = texts.of_column(web.seeds(SEEDS).column("url"))
    met = {row.tobytes() for row in text}
    while len(text):
        links = web.links_of(text, np.zeros(len(text), np.int64)).urls
        found = {row.tobytes() for row in texts.of_column(links.column("url"))} - met
        met |= found
        text = np.frombuffer(b"".join(sorted(found)), np.uint8).reshape(-1, texts.URL_BYTES)
    domain, _, page = texts.read(np.frombuffer(b"".join(sorted(met)), np.uint8).reshape(-1, texts.URL_BYTES))
    return set(zip(domain.tolist(), page.tolist(), strict=True))


class Log:
    """Appends what was fetched to a file that outlives a kill."""

    def __init__(self, path):
        self.simulation = None
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, text):
        rows = np.zeros(len(text), ROW)
        rows["run"] = os.getpid()
        rows["checkpoint"] = self.simulation.number
        rows["domain"], _, rows["page"] = texts.read(text)
        os.write(self._file, rows.tobytes())


def logged(path):
    """What a log holds; a torn row at its end is none."""
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(data[: len(data) // ROW.itemsize * ROW.itemsize], ROW)


def main():
    directory, path, policy = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    log = Log(path)
    with opened(directory, settings_for(policy), log) as simulation:
        log.simulation = simulation
        simulate(simulation, sys.maxsize, checkpoint_pages=400)


if __name__ == "__main__":
    main()
