"""The barn: whoever of the sinks fails as it is closed, all are closed, and each that failed is told."""

from itertools import product
from pathlib import Path

import pytest

from fyke.archive.payloads import Payloads
from fyke.archive.tables import PagesTable
from fyke.archive.warc import WarcWriter
from fyke.core.errors import PluginError
from fyke.core.pages import Page
from fyke.crawl.barn import Barn
from fyke.crawl.passes import Passes
from fyke.disk.checkpoint import Checkpoint


class Sink:
    """A sink that fails as it is closed, if it is to."""

    def __init__(self, name: str, fails: bool) -> None:
        self.name, self.fails, self.closed = name, fails, False

    def page(self, page: Page) -> None: ...

    def close(self) -> None:
        self.closed = True
        if self.fails:
            raise OSError(f"no room for {self.name}")


@pytest.mark.parametrize("fail", list(product((False, True), repeat=3)))
def test_all_sinks_are_closed(tmp_path: Path, fail: tuple[bool, ...]) -> None:
    sinks = [Sink(name, fails) for name, fails in zip("abc", fail, strict=True)]
    archive, pages = WarcWriter(tmp_path, 1, "test"), PagesTable(tmp_path, 1)
    told = ""
    try:
        with Checkpoint(tmp_path / "shard") as checkpoint:
            payloads = Payloads(checkpoint.store, 1 << 16)
            Barn(archive, payloads, pages, None, sinks, Passes(None), {}, {}).close_sinks()
    except PluginError as error:
        told = str(error)
    assert all(sink.closed for sink in sinks)
    assert [f"no room for {sink.name}" in told for sink in sinks] == list(fail)
