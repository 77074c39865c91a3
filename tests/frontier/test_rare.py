"""At a host without an end in sight a chain beside made-up pages goes on, and nothing is lost."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import xxhash

from frontier.test_window import line, refilled
from fyke.core.batches import Kind, concat, texts, u64, url_batch
from fyke.core.urls import locate
from fyke.frontier.rare import SHARE
from fyke.frontier.window import FEW_VISITS, Window

CHAIN, MADE_UP = 60, 8  # pages of the chain; made-up pages that each page leads to
REST_S = 1.0
HOST = "http://maze.example"


PLACES = {  # of the chain's pages, and of made-up ones: by number, or by a word that no other page has
    "folder": ("/story/{number}", "/m/{number}"),
    "folder of words": ("/story/{word}", "/m/{number}/{word}"),
    "inner folder": ("/m/story/{number}", "/m/{word}"),
    "name": ("/m/story-{number}", "/m/{word}"),
    "number": ("/m/{number}", "/m/{word}"),
    "word": ("/m/{word}", "/m/{number}"),
    "folders made up": ("/page/{number}", "/{word}/{number}-{word}"),
}


def place(pattern: str, number: int) -> str:
    """The URL of a page in a place."""
    word = "".join(chr(ord("a") + int(digit)) for digit in str(number))
    return HOST + pattern.format(number=number, word=f"x{word}x")


def found_on(url: str, chain: list[str], made_up: str) -> list[str]:
    """A page of the chain leads to the next; each page leads to made-up ones."""
    first = MADE_UP * (1 + xxhash.xxh3_64_intdigest(url.encode()) % 10**12)
    asides = [place(made_up, number) for number in range(first, first + MADE_UP)]
    return asides + ([chain[chain.index(url) + 1]] if url in chain[:-1] else [])


@pytest.mark.parametrize(
    ("kind", "host_visits", "endless"),
    [*product(PLACES, [4, 256], [True]), *product(["folder"], [4, 32, 256], [False])],
)
def test_a_chain_beside_made_up_pages_goes_on(tmp_path: Path, kind: str, host_visits: int, endless: bool) -> None:
    """One visit in a few is its next page's. At a host that has an end, all comes in the order in which it was met."""
    queues = line(tmp_path)
    window = Window(10_000, host_visits, REST_S)
    refill = refilled(queues, window)
    of_chain, made_up = PLACES[kind]
    chain = [place(of_chain, number) for number in range(1, CHAIN + 1)]
    queues.stage.put(url_batch([locate(chain[0])]))
    out: list[str] = []
    fetched: list[str] = []
    while len(fetched) < 2000 and chain[-1] not in fetched[-1:]:
        out += texts(refill.visits(len(fetched) * REST_S))
        fetched.append(out.pop(0))
        done = locate(fetched[-1])
        hosts = np.array([done.host], np.uint64)
        window.ended(np.array([done.key], np.uint64), hosts)
        window.slow.ended(hosts, [REST_S], np.array([endless]))
        window.rests([done.host], [REST_S])
        queues.stage.put(url_batch([*map(locate, found_on(fetched[-1], chain, made_up))]))
    assert len(set(fetched)) == len(fetched)
    read = len({*chain} & {*fetched})
    if endless:
        assert read == CHAIN and len(fetched) <= 2 * FEW_VISITS * CHAIN
    else:
        assert read < CHAIN // SHARE
    queues.close()


@pytest.mark.parametrize("host_visits", [4, 32, 256])
@pytest.mark.parametrize("endless", [True, False])
def test_a_probe_goes_before_all_that_waits(tmp_path: Path, host_visits: int, endless: bool) -> None:
    """It comes as soon as what is out is done, and is to judge the others."""
    queues = line(tmp_path)
    window = Window(10_000, host_visits, REST_S)
    refill = refilled(queues, window)
    queues.stage.put(url_batch([locate(place("/m/{word}", number)) for number in range(3000)]))
    probe = locate(f"{HOST}/m/nobody-knows-this-name")
    out: list[str] = []
    for done in range(host_visits + 60):
        out += texts(refill.visits(done * REST_S))
        url = locate(out.pop(0))
        if url.key == probe.key:
            break
        hosts = np.array([url.host], np.uint64)
        window.ended(np.array([url.key], np.uint64), hosts)
        window.slow.ended(hosts, [REST_S], np.array([endless]))
        window.rests([url.host], [REST_S])
        if done == 40:
            queues.stage.put(url_batch([probe], kind=Kind.PROBE))
    assert 40 < done <= 40 + host_visits + 2 and url.key == probe.key
    queues.close()


def test_what_goes_ahead_is_written_down(tmp_path: Path) -> None:
    """And comes out after a restart."""
    queues = line(tmp_path)
    urls = url_batch([locate(f"{HOST}/{name}") for name in range(100)])
    ahead = np.arange(100) % 3 == 0
    queues.stage.put_back(urls, ahead)
    queues.save()
    queues.restart()
    found = concat(list(queues.stage.scan()))
    assert sorted(u64(found, "key").tolist()) == sorted(u64(urls, "key").tolist())
    window = Window(10_000, 1000)
    refill = refilled(queues, window)
    out: list[str] = []
    while len(queues.stage):
        out += texts(refill.visits(float(len(out))))
    assert sorted(out) == sorted(texts(urls))
    assert out[: ahead.sum()] == list(np.array(texts(urls))[ahead])
    queues.close()
