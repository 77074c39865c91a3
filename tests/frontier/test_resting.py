"""Pages that rest in the queues of earlier versions go on to rest."""

from pathlib import Path

import pyarrow as pa
import pytest

from fyke.core.batches import url_batch
from fyke.core.urls import locate
from fyke.disk.checkpoint import Checkpoint
from fyke.disk.queue import DiskQueue
from fyke.frontier.resting import IN_ONE, WITHOUT_FINDS, WITHOUT_TRIED, RestingPages

BELIEVED = {"at": 1000.0, "tried": 1005.0, "shape": 2.0, "time": 3.0, "finds": 0.5}


@pytest.mark.parametrize(
    ("name", "schema", "silent_s", "finds"),
    [("rests", IN_ONE, 5.0, 0.5), ("resting", WITHOUT_FINDS, 5.0, 0.0), ("resting", WITHOUT_TRIED, 0.0, 0.0)],
)
def test_what_rested_in_an_earlier_version(
    tmp_path: Path, name: str, schema: pa.Schema, silent_s: float, finds: float
) -> None:
    urls = url_batch([located for n in range(3) if (located := locate(f"http://a.example/{n}"))])
    columns = [
        pa.array([BELIEVED[field.name]] * 3, field.type) if field.name in BELIEVED else urls.column(field.name)
        for field in schema
    ]
    with Checkpoint(tmp_path) as checkpoint:
        with DiskQueue(checkpoint.store, name, schema) as queue:
            queue.put(pa.RecordBatch.from_arrays(columns, schema=schema))
            saved = {name: queue.state()}
        pages = RestingPages(checkpoint.store, saved)
        pages.take_over()
        (there,) = pages.take_all()
        assert len(pages) == 0
        pages.close()
    assert there[1].column("url") == urls.column("url")
    assert there[0].column("at").to_pylist() == [1000.0] * 3
    assert there[0].column("silent").to_pylist() == [silent_s] * 3
    assert there[0].column("finds").to_pylist() == [finds] * 3
