"""Figures over time, for the plots: a bounded number of samples over any time.

`fyke.serve.watch` fills it. When it is full, every second sample goes, and from then on samples are taken half as
often. So it always spans the whole time watched. Invariant: at most `MOST` samples, in order of time.
"""

from typing import NamedTuple

MOST = 600


class HistoryPoint(NamedTuple):
    """Figures of an instant that are plotted."""

    at: float  # unix seconds
    pages_s: float
    bytes_s: float
    waiting: int
    awake: int  # hosts
    memory_bytes: int


class History:
    """The samples of one crawl since it was first heard."""

    def __init__(self) -> None:
        self._samples: list[HistoryPoint] = []
        self._every_s = 0.0

    def __repr__(self) -> str:
        return f"History({len(self._samples)} samples, {self._every_s} s apart)"

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def samples(self) -> list[HistoryPoint]:
        return list(self._samples)

    def add(self, sample: HistoryPoint) -> None:
        """Take `sample`, if it is not too near to the one before."""
        if self._samples and sample.at - self._samples[-1].at < self._every_s:
            return
        self._samples.append(sample)
        if len(self._samples) > MOST:
            del self._samples[1::2]
            self._every_s = max(0.9, 2 * self._every_s)
