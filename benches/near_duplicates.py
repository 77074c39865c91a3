"""Near-duplicates against the truth: exact Jaccard coefficients of all pairs of pages.

    .venv/bin/python benches/near_duplicates.py FOLDER...       HTML files below the folders, as one crawl
    .venv/bin/python benches/near_duplicates.py --scale 10000000 [--memory MIB]

The first form reads main texts as the index does, each folder as a host. For classes of exact J (runs of four words)
it prints the share of pairs that each test finds. Then it prints the figures of clusters, with datasketch's LSH
beside them if it is installed (`pip install --group bench`). Last come clusters of own texts, as the index makes
them.

The second form plants pairs among unrelated texts, as sketches. It prints the share found beside the formula, texts a
second, and memory. Pages to tune on came from

    apt-get download libboost1.74-doc libboost1.81-doc && dpkg -x ...
"""

import argparse
import importlib.util
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fyke.core.batches import NO_KEYS
from fyke.core.config import FetchSection
from fyke.core.decoding import decode_body
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.urls import key_of, locate
from fyke.core.visits import Exchange, Visit
from fyke.harvest import Parser
from fyke.search.extract import Extract, TextExtractor
from fyke.search.lots import SKETCHES, Lot
from fyke.search.near import find_near
from fyke.search.own_text import OwnText
from fyke.search.sketch import LEAST_SHINGLES, MOST_SIGNS, SKETCH, shingles, sketch_of, word_hashes
from search.near_kit import PLANTED, cut_into_lots, formula, lot_of, planted, with_brought

Array = Any
CLASSES = ((0.95, 1.01), (0.9, 0.95), (0.8, 0.9), (0.5, 0.8))
LOT = 8_000
_WORD = re.compile(r"[^\W_]+")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--scale", type=int, default=0, metavar="TEXTS")
    parser.add_argument("--memory", type=int, default=64, metavar="MIB", help="for the table")
    options = parser.parse_args()
    if options.scale:
        _scale(options.scale, options.memory << 20)
    else:
        _quality(list(_pages(options.folders)), options.memory << 20)


# --- real pages


def _pages(folders: Sequence[Path]) -> Iterator[tuple[int, Extract]]:
    """Yield folder number and search extract of each page below the folders, in order of their names."""
    parser, extractor = Parser(shared=True), TextExtractor()
    for number, folder in enumerate(folders):
        for path in sorted(folder.rglob("*.htm*")):
            if path.is_symlink() or not path.is_file():
                continue
            url = f"http://site-{number}.example/{path.relative_to(folder)}".replace(" ", "%20")
            at = locate(url)
            exchange = Exchange(
                Visit(url, at.key, at.host, at.domain), Outcome.OK, 1.0, 0.1, status=200, head=_HEAD,
                body=Document(path.read_bytes()),
            )  # fmt: skip
            read = decode_body(exchange, FetchSection().max_body_bytes).content
            extract = extractor.extract(parser.parse(exchange, read))
            if extract is not None:
                yield number, extract


def _quality(pages: list[tuple[int, Extract]], memory_bytes: int) -> None:
    texts = [extract.text for _, extract in pages]
    begun = time.process_time()
    found = (shingles(word_hashes(text)) for text in texts)
    sketched = np.array([sketch_of(one if len(one) >= LEAST_SHINGLES else NO_KEYS) for one in found])
    each_us = (time.process_time() - begun) / len(texts) * 1e6
    there = sketched["bands"].any(axis=1)
    begun = time.process_time()
    own = _own(pages)[there]
    own_us = (time.process_time() - begun) / len(texts) * 1e6
    texts, sketched = [text for text, some in zip(texts, there, strict=True) if some], sketched[there]
    sets = [shingles(word_hashes(text)) for text in texts]
    size = sum(map(len, texts)) / len(texts) / 1000
    print(
        f"{len(texts):,} pages of {size:.1f} KB of text and {each_us:.0f} µs a sketch; {(~there).sum():,} are too short"
    )
    one, other, exact = _pairs(sets)
    bands = (sketched["bands"][one] == sketched["bands"][other]).any(axis=1)
    signs = np.bitwise_count(sketched["signs"][one] ^ sketched["signs"][other]).sum(axis=1)
    bits = np.bitwise_count(_simhashes(sets)[one] ^ _simhashes(sets)[other])
    found = bands & (signs <= MOST_SIGNS)
    tests = {
        "simhash ≤ 3": bits <= 3,
        "simhash ≤ 6": bits <= 6,
        "bands": bands,
        "bands, simhash ≤ 6": bands & (bits <= 6),
        "bands, signs": found,
    }
    print(f"\n| exact J | pairs | {' | '.join(tests)} |\n|---|---:|{'---:|' * len(tests)}")
    for low, high in CLASSES:
        some = (exact >= low) & (exact < high)
        shares = " | ".join(f"{test[some].mean():.3f}" if some.any() else "" for test in tests.values())
        print(f"| {low}–{min(high, 1)} | {some.sum():,} | {shares} |")
    for what, test in tests.items():
        print(f"{what:20} recall at J ≥ 0.9 {test[exact >= 0.9].mean():.4f}, precision at 0.8 {_precise(exact[test])}")
    _clusters(sketched, one, other, exact, memory_bytes)
    if importlib.util.find_spec("datasketch") is not None:
        _peer(texts, one, other, exact)
    print(f"\nOwn texts, {own_us:.0f} µs a sketch; J of the whole texts:")
    _clusters(own, one, other, exact, memory_bytes)


def _own(pages: list[tuple[int, Extract]]) -> Array:
    """Return the sketches of own texts, as the index makes them."""
    own_text, hosts = OwnText(), [key_of(f"site-{number}.example") for number, _ in pages]
    pieces = [extract.pieces() for _, extract in pages]
    for host, one in zip(hosts, pieces, strict=True):
        own_text.meet(host, one)
    for host, one in zip(hosts, pieces, strict=True):
        own_text.spread(host, one)
    return np.array([own_text.sketch(host, one) for host, one in zip(hosts, pieces, strict=True)])


def _precise(exact: Array) -> str:
    """Return the share of pairs at J ≥ 0.8, in words."""
    return f"{(exact >= 0.8).mean():.4f} of {len(exact):,}"


def _pairs(sets: list[Array]) -> tuple[Array, Array, Array]:
    """Return all pairs of J ≥ 0.3: the later one, the earlier one, J."""
    known, columns = np.unique(np.concatenate(sets), return_inverse=True)
    sizes = np.array([len(one) for one in sets])
    rows = np.repeat(np.arange(len(sets)), sizes)
    matrix = sparse.csr_matrix((np.ones(len(columns), np.int32), (rows, columns)), shape=(len(sets), len(known)))
    turned = matrix.T.tocsr()
    parts = []
    for begin in range(0, len(sets), 500):
        common = (matrix[begin : begin + 500] @ turned).tocoo()
        one, other = common.row + begin, common.col
        exact = common.data / (sizes[one] + sizes[other] - common.data)
        some = (one > other) & (exact >= 0.3)
        parts.append((one[some], other[some], exact[some]))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]


def _simhashes(sets: list[Array]) -> Array:
    """Return simhashes, the usual alternative to signs: uint64[n]."""
    out = []
    for found in sets:
        bits = np.unpackbits(found.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0, dtype=np.int64)
        out.append(np.packbits(2 * bits > len(found)).view(np.uint64)[0])
    return np.array(out)


def _clusters(sketched: Array, one: Array, other: Array, exact: Array, memory_bytes: int) -> None:
    """Print the clusters that the stage itself finds among these pages."""
    texts = np.zeros(len(sketched), SKETCHES)
    texts["key"] = np.arange(1, len(texts) + 1)
    for name in SKETCH.names:
        texts[name] = sketched[name]
    with tempfile.TemporaryDirectory() as folder:
        lots = cut_into_lots(Path(folder) / "lots", texts, repeat(LOT))
        find_near(Path(folder) / "near", lots, memory_bytes)
        found = with_brought(lots)
    first = np.arange(len(texts))
    for key, (near_of, _) in found.items():
        first[key - 1] = near_of - 1
    same = first[one] == first[other]
    copies = np.zeros(len(texts), np.bool_)
    copies[one[exact >= 0.9]] = True
    truth = dict(zip(zip(one.tolist(), other.tolist(), strict=True), exact.tolist(), strict=True))
    named = np.array([truth.get((key - 1, near_of - 1), 0.0) for key, (near_of, _) in found.items()])
    pairs = sum(count * (count - 1) // 2 for count in Counter(first.tolist()).values())
    print(
        f"\nclusters: {len(found):,} pages are near {len({near_of for near_of, _ in found.values()}):,} others;"
        f" precision at 0.8 of these {_precise(named)}\n"
        f"pairs of J ≥ 0.9 in one cluster {same[exact >= 0.9].mean():.4f},"
        f" pages with such an earlier one that are members {(first != np.arange(len(first)))[copies].mean():.4f}\n"
        f"pairs in one cluster that have J ≥ 0.8: {(exact[same] >= 0.8).sum() / max(1, pairs):.4f} of {pairs:,}"
    )


def _peer(texts: list[str], one: Array, other: Array, exact: Array) -> None:
    """Print the result of datasketch: 128 permutations, LSH at 0.85, confirmed by the estimate of J."""
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415 - it is there for the bench alone

    begun = time.process_time()
    index = MinHashLSH(threshold=0.85, num_perm=128)
    hashes, found = [], set()
    for number, text in enumerate(texts):
        made = MinHash(num_perm=128)
        words = _WORD.findall(text.lower())
        made.update_batch([" ".join(words[at : at + 4]).encode() for at in range(max(1, len(words) - 3))])
        found |= {(number, near) for near in index.query(made) if made.jaccard(hashes[near]) >= 0.85}
        index.insert(number, made)
        hashes.append(made)
    each_us = (time.process_time() - begun) / len(texts) * 1e6
    truth = dict(zip(zip(one.tolist(), other.tolist(), strict=True), exact.tolist(), strict=True))
    near = [pair for pair, value in truth.items() if value >= 0.9]
    right = np.array([truth.get(pair, 0.0) for pair in found])
    recall = sum(pair in found for pair in near) / max(1, len(near))
    print(f"datasketch: {each_us:.0f} µs a page; recall at J ≥ 0.9 {recall:.4f}, precision at 0.8 {_precise(right)}")


# --- many


def _scale(count: int, memory_bytes: int) -> None:
    """Plant a tenth of `count` texts like an earlier one, a fifth of these at each J of `PLANTED`; print the share
    found."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        begun = time.monotonic()
        lots, tenth = 0, LOT // 10
        for lots, sketches in enumerate(planted(-(-count // LOT), LOT)):
            lot_of(folder / "lots", lots, sketches)
        print(
            f"{count:,} texts in {lots + 1:,} lots, in {time.monotonic() - begun:.0f} s; table {memory_bytes >> 20} MiB"
        )
        before, at = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
        for share in range(1, 6):
            begun, cpu_s = time.monotonic(), time.process_time()
            upto = (lots + 1) * share // 5
            find_near(folder / "near", [Lot(folder / "lots", number) for number in range(upto)], memory_bytes)
            took_s, cpu_s = time.monotonic() - begun, time.process_time() - cpu_s
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            texts = (upto - at) * LOT
            print(
                f"{upto * LOT:12,} texts: {texts / took_s:9,.0f} a second, {cpu_s / texts * 1e6:5.1f} µs of CPU each,"
                f" peak {peak / 1024:.0f} MiB ({before / 1024:.0f} before)",
                flush=True,
            )
            at = upto
        found = Counter[int]()
        wrong = 0
        for number in range(lots + 1):
            lot = Lot(folder / "lots", number)
            for key, near_of in zip(lot.rows["key"].tolist(), lot.near["near_of"].tolist(), strict=True):
                if near_of:
                    right = key - near_of == tenth and (key - 1) % LOT >= LOT - tenth
                    found[(key - 1) % len(PLANTED)] += right
                    wrong += not right
        for place, resemblance in enumerate(PLANTED):
            share = found[place] / ((lots + 1) * tenth / len(PLANTED))
            print(f"J {resemblance}: {share:.4f} found, {formula(resemblance):.4f} by the formula")
        print(f"{wrong} pairs that were not planted")


if __name__ == "__main__":
    main()
