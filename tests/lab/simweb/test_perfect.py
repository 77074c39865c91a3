"""The truth agrees with what a crawler that knows nothing of it finds over real sockets."""

import dataclasses
import importlib.util
from pathlib import Path

import pytest

from fyke.lab.simweb import IntendedCrawl, Layout, Ports, WebSpec, lively, perfect, plain, read_queries, running_web

_SPEC = importlib.util.spec_from_file_location("naive_crawler", Path(__file__).with_name("naive_crawler.py"))
naive_crawler = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(naive_crawler)


def crawl(web):
    crawler = naive_crawler.NaiveCrawler(web.dns)
    crawler.crawl(web.seeds[0])
    crawler.close()
    return crawler


def test_plain_web_is_reached_whole():
    spec = plain(pages=300, hosts=12, mean_page_bytes=2000)
    layout = Layout(spec, Ports(8000))
    everything = {layout.url(layout.page(page)) for page in range(spec.pages)}
    assert perfect(layout).archived == everything
    with running_web(spec) as web:
        crawler = crawl(web)
        assert set(crawler.archived) == web.perfect().archived
        assert len(web.ledger()) == 300 + 12


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lively_web_agrees_with_the_naive_crawler(seed, tmp_path):
    spec = lively(pages=900, hosts=60, seed=seed, mean_page_bytes=2500, slow_s=0.05, retry_after_s=0)
    path = tmp_path / "ledger"
    with running_web(spec, path) as web:
        crawler = crawl(web)
        truth = web.perfect(IntendedCrawl(old_protocols=False))
        paths = web.ledger().to_pylist()
    assert crawler.forbidden == truth.forbidden
    assert crawler.unreachable == truth.unreachable
    assert crawler.requested == truth.requested
    assert set(crawler.archived) == truth.archived
    assert set(crawler.begun) == truth.begun
    assert truth.begun and truth.passing and truth.noindex and truth.avoided and truth.auxiliary
    asked = {f"{row['scheme']}://{row['host']}:{web.ports.http}{row['path']}" for row in paths}
    assert asked == truth.requested | truth.auxiliary
    assert len(read_queries(path)) >= spec.hosts


def test_plans_narrow_the_crawl():
    layout = Layout(lively(pages=900, hosts=60), Ports(8000, 53, 70, 21))
    web = perfect(layout)
    home = layout.url(layout.page(0))
    host = perfect(layout, IntendedCrawl(scope="host"))
    domain = perfect(layout, IntendedCrawl(scope="domain"))
    assert all(url.startswith(home) for url in host.requested)
    assert host.archived < domain.archived < web.archived
    prefix = perfect(layout, IntendedCrawl(scope="prefix"))
    assert prefix.archived == host.archived
    assert perfect(layout, IntendedCrawl(depth=0)).requested == {home}
    sizes = [len(perfect(layout, IntendedCrawl(depth=depth)).requested) for depth in (0, 1, 2, 9)]
    assert sizes == sorted(sizes) and sizes[1] > 1
    hasty = perfect(layout, IntendedCrawl(patient=False))
    assert hasty.archived < web.archived
    with_media = perfect(layout, IntendedCrawl(scope="host", requisites=True))
    assert with_media.archived > host.archived
    assert {url.rsplit(".", 1)[1] for url in with_media.archived - host.archived} == {"css", "js", "png"}
    assert perfect(layout, IntendedCrawl(sitemaps=False)).archived < web.archived
    assert sum(url.startswith(("gopher:", "ftp:")) for url in web.archived) == 10


def test_other_seeds():
    layout = Layout(plain(pages=200, hosts=10), Ports(8000))
    seed = layout.url(layout.page(150))
    assert seed in perfect(layout, IntendedCrawl(depth=0), [seed]).archived
    with pytest.raises(ValueError, match="has no"):
        perfect(layout, seeds=["http://h0.d0.sim:8000/no-such"])


def test_a_spec_goes_through_json():
    spec = lively(seed=9)
    assert WebSpec.from_json(spec.to_json()) == spec
    with pytest.raises(ValueError, match="domains"):
        dataclasses.replace(spec, hosts=1)
