"""What tests of commands share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import in_process
from crawl.runs import settings
from crawl.small_site import small_site


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A crawl that has ended, with an index."""
    folder = tmp_path_factory.mktemp("whole")
    with small_site(pages=4) as site:
        config = str(settings(folder))
        assert in_process("crawl", site.url, "--into", str(folder / "crawl"), "--config", config).status == 0
        assert in_process("index", str(folder / "crawl")).status == 0
        yield folder / "crawl"
