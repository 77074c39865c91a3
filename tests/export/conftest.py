"""One crawl of the synthetic web for all tests of this folder."""

from pathlib import Path

import pytest

from export.crawls import crawled


@pytest.fixture(scope="session")
def crawl_of_the_web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawled(tmp_path_factory.mktemp("web"))
