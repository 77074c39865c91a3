"""The Python interface: every page once, slowly or fast, with `with` and `async with`, left and taken up again."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fyke
from crawl.runs import archived, settings
from crawl.small_site import small_site
from fyke.core.config import load
from fyke.core.errors import BadUrl, ConfigurationError, DirectoryInUse, OtherCrawl, PluginError
from fyke.crawl import interface
from fyke.crawl.interface import BUFFER_PAGES, SLOW_READER_S
from fyke.fetcher.connections import other_connections
from fyke.lab.simweb import RunningWeb, plain, running_web

PAGES = 400


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with running_web(plain(pages=PAGES, hosts=10)) as running:
        yield running


@pytest.fixture
def config(tmp_path: Path, web: RunningWeb) -> fyke.Config:
    return load(settings(tmp_path, web, fetch={"connections": 32}))


def test_public_names() -> None:
    """Each can be had, also all at once, and importing fyke imports nothing of the crawler."""
    for name in fyke.__all__:
        assert getattr(fyke, name) is not None
        assert name in dir(fyke)
    with pytest.raises(AttributeError, match="no attribute 'Crawler'"):
        fyke.Crawler  # noqa: B018
    code = "import sys, fyke; sys.exit(any(name.startswith(('fyke.', 'numpy', 'pyarrow')) for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pages_come_as_they_are_archived(tmp_path: Path, web: RunningWeb, config: fyke.Config) -> None:
    into = tmp_path / "crawl"
    with fyke.Crawl(web.seeds, into=into, scope="web", config=config) as crawl:
        assert crawl.ending is None
        page = next(crawl)
        assert (page.url, page.status) == (web.seeds[0], 200) and page.title and page.content
        assert crawl.statistics().pages < PAGES
        urls = [page.url, *(page.url for page in crawl)]
    assert crawl.ending == "finished"
    assert urls == archived(into)
    assert len(set(urls)) == PAGES == crawl.statistics().pages
    with fyke.Crawl(web.seeds, into=into, scope="web", config=config) as again:
        assert list(again) == []
    assert again.ending == "finished" and len(archived(into)) == PAGES


def test_asynchronous_form(tmp_path: Path, web: RunningWeb, config: fyke.Config) -> None:
    async def crawled() -> list[str]:
        async with fyke.Crawl(web.seeds, into=tmp_path / "crawl", scope="web", pages=60, config=config) as crawl:
            urls = [page.url async for page in crawl]
        assert crawl.ending == "pages"
        with pytest.raises(ConfigurationError, match="async with"):
            fyke.Crawl(web.seeds, into=tmp_path / "crawl").__enter__()
        return urls

    assert asyncio.run(crawled()) == archived(tmp_path / "crawl")


def test_resumes_what_was_broken_off(tmp_path: Path, web: RunningWeb, config: fyke.Config) -> None:
    """A `break`, an exception, a `stop`: every page is read once over all of them, and archived once."""
    into, urls = tmp_path / "crawl", []

    def opened() -> fyke.Crawl:
        return fyke.Crawl(web.seeds, into=into, scope="web", config=config)

    with opened() as crawl:
        for page in crawl:
            urls.append(page.url)
            if len(urls) == 20:
                break
    assert crawl.ending == "stopped"
    urls += [page.url for page in crawl]  # archived, not read yet when the block was left
    with pytest.raises(KeyError), opened() as crawl:
        urls.append(next(crawl).url)
        raise KeyError
    urls += [page.url for page in crawl]
    with opened() as crawl:
        urls.append(next(crawl).url)
        crawl.stop()
        urls += [page.url for page in crawl]
    assert crawl.ending == "stopped" and len(urls) < PAGES
    with fyke.Crawl(into=into) as crawl:  # as it was asked
        urls += [page.url for page in crawl]
    assert crawl.ending == "finished"
    assert urls == archived(into)
    assert len(urls) == len(set(urls)) == PAGES


def test_a_slow_reader_holds_the_crawl_back(tmp_path: Path, web: RunningWeb, config: fyke.Config) -> None:
    async def crawled() -> None:
        async with fyke.Crawl(web.seeds, into=tmp_path / "waiting", scope="web", config=config) as crawl:
            await anext(crawl)
            before = -1
            while before != (before := crawl.statistics().visits):
                await asyncio.sleep(0.3)  # the reader is busy elsewhere; the loop goes on
            assert crawl.statistics().in_flight == 0
            under_way = config.fetch.connections + other_connections(config.fetch.connections)
            assert BUFFER_PAGES <= crawl.statistics().pages <= BUFFER_PAGES + under_way
            assert len([page async for page in crawl]) == PAGES - 1

    asyncio.run(crawled())
    with fyke.Crawl(web.seeds, into=tmp_path / "away", scope="web", config=config) as crawl:
        next(crawl)
        for _ in range(3):
            time.sleep(1.1 * SLOW_READER_S)  # the loop stands still: nothing may be on its way
            next(crawl)
            assert crawl.statistics().in_flight == 0
        assert len(list(crawl)) == PAGES - 4


def test_what_waits_for_a_reader_is_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page_bytes, connections, pages = 20_000, 2, 50
    monkeypatch.setattr(interface, "BUFFER_BYTES", 10 * page_bytes)

    async def crawled(config: fyke.Config, url: str) -> None:
        async with fyke.Crawl(url, into=tmp_path / "crawl", config=config) as crawl:
            await anext(crawl)
            before = -1
            while before != (before := crawl.statistics().visits):
                await asyncio.sleep(0.3)
            under_way = connections + other_connections(connections)
            assert 10 <= crawl.statistics().pages <= 10 + under_way < BUFFER_PAGES
            assert len([page async for page in crawl]) == pages - 1

    with small_site(pages, page_bytes) as site:
        asyncio.run(crawled(load(settings(tmp_path, fetch={"connections": connections})), site.url))


class Everything:
    """A plug-in of three kinds."""

    media_types = ("text/html",)

    def __init__(self) -> None:
        self.processed = self.received = 0
        self.closed = False

    def accept(self, urls: pa.RecordBatch) -> np.ndarray:
        return np.array([b".d0.sim" in url.as_py() for url in urls.column("url")], bool)

    def process(self, page: fyke.Page) -> None:
        self.processed += 1
        page.findings["Everything"] = self.processed

    def page(self, page: fyke.Page) -> None:
        self.received += 1

    def close(self) -> None:
        self.closed = True


def test_plugins_as_objects(tmp_path: Path, web: RunningWeb, config: fyke.Config) -> None:
    mine = Everything()
    with fyke.Crawl(
        web.seeds, into=tmp_path / "crawl", scope="web", config=config,
        filters=[mine], processors=[mine], sinks=[mine],
    ) as crawl:  # fmt: skip
        pages = list(crawl)
    assert 0 < len(pages) < PAGES and all(".d0.sim" in page.url for page in pages)
    assert [page.findings["Everything"] for page in pages] == list(range(1, len(pages) + 1))
    assert mine.processed == mine.received == len(pages)
    assert mine.closed and not crawl.statistics().plugin_failures
    with pytest.raises(PluginError, match="is not a PageSink"):
        fyke.Crawl(web.seeds, into=tmp_path / "other", sinks=[object()])  # type: ignore[list-item]
    with pytest.raises(PluginError, match="give an object"):
        fyke.Crawl(web.seeds, into=tmp_path / "other", sinks=[Everything])  # type: ignore[list-item]


class Unclosed:
    """A sink that fails as it is closed, once."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.fails = True

    def page(self, page: fyke.Page) -> None:
        self.urls.append(page.url)

    def close(self) -> None:
        if self.fails:
            raise OSError("no room there")


def test_a_sink_that_cannot_be_closed_is_told_and_gets_its_pages_again(
    tmp_path: Path, web: RunningWeb, config: fyke.Config
) -> None:
    sink = Unclosed()
    for fails in (True, False):
        sink.fails, sink.urls = fails, []
        crawl = fyke.Crawl(web.seeds, into=tmp_path / "crawl", scope="web", config=config, sinks=[sink])
        with pytest.raises(PluginError, match="no room there") if fails else nullcontext(), crawl:
            list(crawl)
    assert sorted(sink.urls) == sorted(archived(tmp_path / "crawl"))
    assert len(sink.urls) == PAGES


def test_mistakes_are_told(tmp_path: Path, web: RunningWeb, config: fyke.Config) -> None:
    with pytest.raises(ConfigurationError, match="no directory given"):
        fyke.Crawl(web.seeds)
    with pytest.raises(fyke.FykeError, match="holds no crawl"):
        fyke.Crawl(into=tmp_path / "nothing")
    with pytest.raises(BadUrl):
        fyke.Crawl("file:///etc/passwd", into=tmp_path / "crawl")
    with pytest.raises(ConfigurationError, match=r"Python runs only one agent.*fyke crawl --agents 4"):
        fyke.Crawl(web.seeds, into=tmp_path / "x", config=fyke.Config(crawl={"agents": 4}))
    with pytest.raises(ConfigurationError, match=r"unknown key crawl\.page"):
        fyke.Crawl(web.seeds, into=tmp_path / "crawl", page=3)  # type: ignore[call-arg]
    with pytest.raises(RuntimeError, match="open the crawl first"):
        next(fyke.Crawl(web.seeds, into=tmp_path / "crawl"))
    with fyke.Crawl(web.seeds, into=tmp_path / "crawl", pages=1, config=config) as crawl:
        with pytest.raises(DirectoryInUse), fyke.Crawl(web.seeds, into=tmp_path / "crawl", config=config):
            pass
        assert len(list(crawl)) == 1
    with pytest.raises(OtherCrawl), fyke.Crawl(web.seeds, into=tmp_path / "crawl", scope="domain", config=config):
        pass


def test_a_failure_of_ours_reaches_the_reader(
    tmp_path: Path, web: RunningWeb, config: fyke.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("fyke.harvest.harvest.Harvest.reap", fails)
    with (
        pytest.raises(ZeroDivisionError),
        fyke.Crawl(web.seeds, into=tmp_path / "read", config=config) as crawl,
    ):
        next(crawl)
    assert crawl.ending is None
    with pytest.raises(ZeroDivisionError), fyke.Crawl(web.seeds, into=tmp_path / "unread", config=config) as crawl:
        crawl._runner.run(asyncio.sleep(0.5))  # type: ignore[union-attr]
