"""The laws of a crawl, as the servers and the files tell them."""

import gzip
import random
from collections import Counter
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from crawl.runs import FAST, archived, crawl, crawl_killed, fyke, settings
from fyke.simweb import Plan, WebSpec, audit_politeness, lively, plain, running_web

AUXILIARY_OK = 1.0


def expected_exactly(into: Path, expectation, requests, ports) -> None:
    """Every expected page archived once, nothing else fetched, nothing forbidden asked for."""
    got = Counter(archived(into))
    auxiliary = expectation.auxiliary
    pages = {url for url in got if url not in auxiliary}
    assert not expectation.archived - pages, sorted(expectation.archived - pages)[:5]
    assert not pages - expectation.archived, sorted(pages - expectation.archived)[:5]
    assert max(got.values()) == 1
    asked = asked_for(requests, ports)
    assert not set(asked) & expectation.forbidden
    assert not set(asked) & expectation.avoided
    outside = set(asked) - expectation.requested - auxiliary
    assert not outside, sorted(outside)[:5]
    again = [url for url, n in asked.items() if n > 1 and url in expectation.archived - expectation.passing]
    assert not again, again[:5]


def asked_for(requests, ports) -> Counter[str]:
    rows = requests.to_pydict()
    port = {"http": ports.http, "https": ports.http, "gopher": ports.gopher, "ftp": ports.ftp}
    return Counter(
        f"{scheme}://{host}:{port[scheme]}{path}"
        for scheme, host, path in zip(rows["scheme"], rows["host"], rows["path"], strict=True)
    )


@pytest.mark.timeout(180)
def test_exactness(tmp_path: Path) -> None:
    """20,000 pages on 500 hosts with robots of every kind: each fetched once, none forbidden, none outside."""
    spec = lively(pages=20_000, hosts=500)
    with running_web(spec) as web:
        into = tmp_path / "crawl"
        run = crawl(into, settings(tmp_path, web), *web.seeds, "--scope", "web", timeout_s=170)
        assert run.status == 0, run.errors
        expected_exactly(into, web.perfect(Plan(scope="web")), web.ledger(), web.ports)
