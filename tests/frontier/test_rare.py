"""At a host without an end in sight a chain beside made-up pages goes on, and nothing is lost."""

from pathlib import Path

import numpy as np
import pytest

from frontier.test_window import line, refilled
from fyke.core.batches import concat, texts, u64, url_batch
from fyke.core.urls import locate
from fyke.frontier.rare import SHARE
from fyke.frontier.window import FEW_VISITS, Window

CHAIN, MADE_UP = 60, 8  # pages of the chain; made-up pages that each page leads to
REST_S = 1.0
HOST = "http://maze.example"


def found_on(url: str) -> list[str]:
    """A page of the chain leads to the next; each page leads to made-up ones."""
    name = url.rpartition("/")[2]
    made_up = [f"{HOST}/m/{name}-{n}" for n in range(MADE_UP)]
    if "/story/" in url and int(name) < CHAIN:
        return [*made_up, f"{HOST}/story/{int(name) + 1}"]
    return made_up


@pytest.mark.parametrize("host_visits", [4, 32, 256])
@pytest.mark.parametrize("endless", [True, False])
def test_a_chain_beside_made_up_pages_goes_on(tmp_path: Path, host_visits: int, endless: bool) -> None:
    """One visit in a few is its next page's. At a host that has an end, all comes in the order in which it was met."""
    queues = line(tmp_path)
    window = Window(10_000, host_visits, REST_S)
    refill = refilled(queues, window)
    queues.stage.put(url_batch([locate(f"{HOST}/story/1")]))
    out: list[str] = []
    fetched: list[str] = []
    while len(fetched) < 2000 and not (fetched and fetched[-1].endswith(f"/story/{CHAIN}")):
        out += texts(refill.visits(len(fetched) * REST_S))
        fetched.append(out.pop(0))
        done = locate(fetched[-1])
        hosts = np.array([done.host], np.uint64)
        window.ended(np.array([done.key], np.uint64), hosts)
        window.slow.ended(hosts, [REST_S], np.array([endless]))
        window.rests([done.host], [REST_S])
        queues.stage.put(url_batch([*map(locate, found_on(fetched[-1]))]))
    assert len(set(fetched)) == len(fetched)
    read = sum("/story/" in url for url in fetched)
    if endless:
        assert read == CHAIN and len(fetched) <= 2 * FEW_VISITS * CHAIN
    else:
        assert read < CHAIN // SHARE
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
