"""What a turn may take of the loop's time: no more of what was over budget than so many rows, and so many bytes."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from fyke.core.batches import url_batch
from fyke.core.slices import Steps, whole
from fyke.core.urls import locate
from fyke.frontier.placing import SLICES, SLICES_BYTES, Placing
from fyke.frontier.sizes import Sizes

ROWS = 8192


class Rereading(Placing):
    """Notes what is read again, of a queue of URLs over budget that does not end."""

    def __init__(self, url_chars: int) -> None:
        urls = [f"http://a.example/{number:0{url_chars}}" for number in range(ROWS)]
        self.batch = url_batch(list(map(locate, urls)))
        self.read_bytes: list[int] = []
        idle = {"full": False, "pending": 0}
        beast = SimpleNamespace(splitting=True, take_over_budget=lambda rows: self.batch.slice(0, rows))
        stages: Any = SimpleNamespace(star=SimpleNamespace(**idle), domains=SimpleNamespace(**idle), beast=beast)
        super().__init__(stages, Sizes(batch=ROWS))

    def _ask(self, urls: pa.RecordBatch) -> Steps[None]:
        self.read_bytes.append(urls.nbytes)
        yield


@pytest.mark.parametrize("url_chars", [50, 500, 1000, 1900])
def test_a_turn_reads_so_many_bytes_again_however_long_urls_are(url_chars: int) -> None:
    placing = Rereading(url_chars)
    assert whole(placing.turn(may_merge=False))
    assert placing.read_bytes.pop() > 0, "one that does not know how long they are"
    assert whole(placing.turn(may_merge=True))
    before_the_last = sum(placing.read_bytes[:-1])
    assert before_the_last < SLICES_BYTES
    assert len(placing.read_bytes) == SLICES or sum(placing.read_bytes) >= SLICES_BYTES
    assert max(placing.read_bytes) <= 1.01 * SLICES_BYTES, "of one slice too"
