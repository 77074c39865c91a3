"""Sketches made to order: pairs of a given Jaccard coefficient, without texts."""

from collections.abc import Iterator, Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.search.lots import ROWS, SKETCHES, Fate, Lot
from fyke.search.sketch import BAND_BINS, BANDS, MOST_SIGNS, SIGNS

Array = npt.NDArray[Any]


def formula(resemblance: float) -> float:
    """The probability that a pair with this Jaccard coefficient is found."""
    differ = (1 - resemblance) / 2
    confirmed = sum(comb(SIGNS, n) * differ**n * (1 - differ) ** (SIGNS - n) for n in range(MOST_SIGNS + 1))
    return (1 - (1 - resemblance**BAND_BINS) ** BANDS) * confirmed


def apart(one: Array, other: Array) -> int:
    return int(np.bitwise_count(one["signs"] ^ other["signs"]).sum())


def random_sketches(dice: np.random.Generator, count: int, keys: Sequence[int] | None = None) -> Array:
    """Of texts without relation."""
    out = np.zeros(count, SKETCHES)
    out["key"] = dice.integers(1, 1 << 63, count) if keys is None else keys
    out["bands"] = dice.integers(1, 1 << 63, (count, BANDS))
    out["signs"] = dice.integers(0, 256, out["signs"].shape)
    return out


def like(dice: np.random.Generator, sketches: Array, resemblance: npt.NDArray[np.float64]) -> Array:
    """Of texts that resemble those of `sketches` so much, each by its own coefficient."""
    out = random_sketches(dice, len(sketches))
    kept = dice.random((len(out), BANDS)) < (resemblance**BAND_BINS)[:, None]
    out["bands"][kept] = sketches["bands"][kept]
    flipped = dice.random((len(out), SIGNS)) < ((1 - resemblance) / 2)[:, None]
    out["signs"] = sketches["signs"] ^ np.packbits(flipped, axis=1)
    return out


PLANTED = (1.0, 0.95, 0.9, 0.85, 0.8)


def planted(lots: int, size: int) -> Iterator[Array]:
    """Sketches of so many lots with keys 1, 2, ...; the last tenth of each is like the tenth before, by `PLANTED`."""
    dice, tenth = np.random.default_rng(7), size // 10
    for number in range(lots):
        keys = np.arange(number * size, (number + 1) * size) + 1
        made = random_sketches(dice, size, keys)
        made[-tenth:] = like(dice, made[-2 * tenth : -tenth], np.array(PLANTED)[(keys[-tenth:] - 1) % len(PLANTED)])
        made["key"] = keys
        yield made


def lot_of(folder: Path, number: int, sketches: Array) -> Lot:
    """A lot with these sketches, and what else a comparison reads; a page twice in it counts by its last."""
    keys, last = np.unique(sketches["key"][::-1], return_index=True)
    rows = np.zeros(len(keys), ROWS)
    rows["key"], rows["fate"], rows["sketch"] = keys, Fate.SHOWN, len(sketches) - 1 - last
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{number:06}.rows.npy", rows)
    np.save(folder / f"{number:06}.sketches.npy", sketches)
    return Lot(folder, number)


def cut_into_lots(folder: Path, sketches: Array, sizes: Iterator[int]) -> list[Lot]:
    """`sketches` in order, as lots of such sizes."""
    lots: list[Lot] = []
    while len(sketches):
        size = next(sizes)
        lots.append(lot_of(folder, len(lots), sketches[:size]))
        sketches = sketches[size:]
    return lots


def nears(lots: Sequence[Lot]) -> dict[int, tuple[int, int]]:
    """Of each page that is near another, by the last lot that has it: the key of that other, and signs that differ."""
    found: dict[int, tuple[int, int]] = {}
    for lot in lots:
        found.update(zip(lot.rows["key"].tolist(), lot.near[["near_of", "apart"]].tolist(), strict=True))
    return {key: near for key, near in found.items() if near[0]}


def brought(lots: Sequence[Lot]) -> dict[int, tuple[int, int, int]]:
    """In the same way: the key of a page that it brings along, 64 signs of what that said, and signs that differ."""
    found: dict[int, tuple[int, int, int]] = {}
    for lot in lots:
        also = lot.near[["also", "also_said", "also_apart"]].tolist()
        found.update(zip(lot.rows["key"].tolist(), also, strict=True))
    return {key: also for key, also in found.items() if also[0]}


def with_brought(lots: Sequence[Lot]) -> dict[int, tuple[int, int]]:
    """`nears`, also of those that others bring along, of texts that never changed."""
    found = nears(lots)
    firsts, joined = {near_of for near_of, _ in found.values()}, dict[int, tuple[int, int]]()
    for key, (also, _, apart) in sorted(brought(lots).items(), key=lambda one: (one[1][2], found[one[0]][0])):
        if also not in found and also not in firsts:
            joined.setdefault(also, (found[key][0], apart))
    return found | joined
