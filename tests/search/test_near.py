"""Clusters are those of the definition, whatever the lots, the merges and the kills."""

import os
import signal
import subprocess
import sys
import time
from itertools import cycle, repeat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alone import traced
from fyke.disk.manifest import FORMAT
from fyke.disk.sealed import sealed, unsealed
from fyke.search.lots import Lot
from fyke.search.near import TOGETHER, find_near
from fyke.search.sketch import FAR_SIGNS, MOST_SIGNS
from search.near_kit import Array, apart, brought, cut_into_lots, formula, like, lot_of, nears, planted, random_sketches

SMALL = 1 << 14  # bytes for the table: its merges come every few hundred texts
LAW = settings(max_examples=15, deadline=None)


def related(seed: int, count: int, pages: int = 1 << 62) -> Array:
    """Texts in generations: each like one before it, or like none; so chains and clusters of all sizes."""
    dice = np.random.default_rng(seed)
    parts = [random_sketches(dice, max(1, count // 4))]
    while sum(map(len, parts)) < count:
        before = np.concatenate(parts)
        chosen = before[dice.integers(0, len(before), max(1, count // 8))]
        parts += [like(dice, chosen, dice.choice([1.0, 0.97, 0.93, 0.9, 0.85, 0.7], len(chosen)))]
    made = np.concatenate(parts)[:count]
    made["key"] %= np.uint64(pages)
    return made[dice.permutation(count)]


def model(sketches: Array) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int, int]]]:
    """The definition, a text at a time on a dict: what each page is near, and what it brings there."""
    owner: dict[tuple[int, int], int] = {}
    first: list[int] = []
    found: dict[int, tuple[int, int]] = {}
    bring: dict[int, tuple[int, int, int]] = {}
    for number, one in enumerate(sketches):
        earlier = {owner.setdefault((at, band), number) for at, band in enumerate(one["bands"].tolist())} - {number}
        near = {first[other] for other in earlier if apart(one, sketches[other]) <= MOST_SIGNS}
        clusters = sorted((apart(one, sketches[place]), place) for place in near)
        signs, place = clusters[0] if clusters else (FAR_SIGNS + 1, number)
        first.append(place if signs <= FAR_SIGNS else number)
        key, page = int(one["key"]), int(sketches["key"][first[-1]])
        found[key] = (page, signs) if page != key else (0, 0)
        bring[key] = (0, 0, 0)
        if page != key and len(clusters) > 1:
            other = clusters[1][1]
            signs = apart(sketches[place], sketches[other])
            said = int.from_bytes(sketches["signs"][other][:8].tobytes(), "little")
            bring[key] = (int(sketches["key"][other]), said, signs) if signs <= FAR_SIGNS else (0, 0, 0)
    return {key: near for key, near in found.items() if near[0]}, {key: also for key, also in bring.items() if also[0]}


@LAW
@given(
    seed=st.integers(0, 1 << 30),
    count=st.integers(1, 900),
    sizes=st.lists(st.integers(1, 400), min_size=1),
    pages=st.sampled_from([60, 1 << 62]),
    runs=st.integers(1, 4),
)
def test_clusters_are_those_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, sizes: list[int], pages: int, runs: int
) -> None:
    """In lots of any size, in one run or several, with a merge now and then; also where pages come again."""
    folder = tmp_path_factory.mktemp("near")
    sketches = related(seed, count, pages)
    lots = cut_into_lots(folder / "lots", sketches, cycle(sizes))
    for run in range(1, runs + 1):
        find_near(folder / "near", lots[: -(-len(lots) * run // runs)], SMALL)
    assert (nears(lots), brought(lots)) == model(sketches)


def test_more_texts_than_are_decided_at_a_time(tmp_path: Path) -> None:
    sketches = related(3, 2 * TOGETHER + 77)
    lots = cut_into_lots(tmp_path / "lots", sketches, repeat(8_000))
    find_near(tmp_path / "near", lots, 8 << 20)
    found = nears(lots)
    assert (found, brought(lots)) == model(sketches)
    assert not {near_of for near_of, _ in found.values()} & found.keys()  # a first page is no member
    place = {int(key): number for number, key in enumerate(sketches["key"])}
    assert all(place[near_of] < place[key] for key, (near_of, _) in found.items())


def test_pairs_are_found_at_the_rate_of_the_formula(tmp_path: Path) -> None:
    dice = np.random.default_rng(8)
    for resemblance in (1.0, 0.95, 0.9, 0.85, 0.8):
        ones = random_sketches(dice, 4_000)
        others = like(dice, ones, np.full(4_000, resemblance))
        lots = cut_into_lots(tmp_path / f"{resemblance}", np.concatenate([ones, others]), repeat(1_000))
        find_near(tmp_path / f"near-{resemblance}", lots, 1 << 20)
        found = nears(lots)
        assert abs(len(found) / 4_000 - formula(resemblance)) < 0.02
        partner = dict(zip(others["key"].tolist(), ones["key"].tolist(), strict=True))
        assert all(partner[key] == near_of for key, (near_of, _) in found.items())


def _peak(folder: Path, count: int) -> int:
    lots = [lot_of(folder / "lots", number, made) for number, made in enumerate(planted(count // 500, 500))]
    return traced(find_near, folder / "near", lots, 1 << 18)[1]


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Four times the texts, and no more memory, but for the names of the table's parts and some bytes a lot."""
    few, many = _peak(tmp_path / "few", 10_000), _peak(tmp_path / "many", 40_000)
    assert many < 1.12 * few < 1.12 * (8 << 20)  # ten bytes for each of the texts that are more


PROGRAM = """
import sys
from pathlib import Path
from fyke.disk.manifest import FORMAT
from fyke.disk.sealed import sealed, unsealed
from fyke.search.lots import Lot
from fyke.search.near import find_near
folder, lots = Path(sys.argv[1]), int(sys.argv[2])
find_near(folder / "near", [Lot(folder / "lots", number) for number in range(lots)], int(sys.argv[3]))
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Each time as the next lots become known; what is there at last is what it would have been."""
    sketches = related(21, 12_000)
    lots = cut_into_lots(tmp_path / "lots", sketches, repeat(200))
    killed = 0
    for wanted in range(1, len(lots), 9):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path), str(len(lots)), str(SMALL)])
        while process.poll() is None and not (tmp_path / "lots" / f"{wanted:06}.near.npy").exists():
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed > 2
    find_near(tmp_path / "near", lots, SMALL)
    lots = [Lot(tmp_path / "lots", lot.number) for lot in lots]
    assert (nears(lots), brought(lots)) == model(sketches)


@pytest.mark.parametrize("suffix", ["met", "vals", "keys"])
def test_what_is_damaged_is_made_anew(tmp_path: Path, suffix: str) -> None:
    """Of the lots, which have all that it is made of."""
    sketches = related(4, 3_000)
    lots = cut_into_lots(tmp_path / "lots", sketches, repeat(300))
    find_near(tmp_path / "near", lots[:5], SMALL)
    for path in (tmp_path / "near").glob(f"*{suffix}"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    find_near(tmp_path / "near", lots, SMALL)
    assert (nears(lots), brought(lots)) == model(sketches)


def test_what_has_another_format_is_made_anew(tmp_path: Path) -> None:
    sketches = related(4, 3_000)
    lots = cut_into_lots(tmp_path / "lots", sketches, repeat(300))
    find_near(tmp_path / "near", lots[:5], SMALL)
    for path in (tmp_path / "near").glob("manifest-*.json"):
        if data := path.read_bytes():
            path.write_bytes(sealed("manifest", unsealed("manifest", data) | {"format": FORMAT + 1}))
    find_near(tmp_path / "near", lots, SMALL)
    assert (nears(lots), brought(lots)) == model(sketches)
