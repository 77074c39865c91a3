"""What the tests of the store share: exchanges made to order."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fyke.archive.tables import links_batch
from fyke.core.batches import LinkKind, binary_array
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.urls import key_of
from fyke.core.visits import Exchange, Visit

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX-Name: caf\xe9 \xff\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n"

MakeExchange = Callable[..., Exchange]


def link_rows(source: int, *numbers: int, kind: LinkKind = LinkKind.PAGE) -> pa.RecordBatch:
    """The links of a page to pages with these numbers."""
    urls = binary_array([b"http://www.example.org/%d" % number for number in numbers])
    columns = (np.array(values, np.uint64) for values in ([source] * len(numbers), numbers, [kind] * len(numbers)))
    sources, targets, kinds = columns
    return links_batch(sources, targets, urls, kinds)


@pytest.fixture(scope="session")
def make_exchange() -> MakeExchange:
    """An exchange of the URL with the body given, anything else by keyword."""

    def make(
        url: str = "http://www.example.org/", body: bytes | Document = b"<p>hello</p>", **facts: object
    ) -> Exchange:
        visit = Visit(url, key_of(url.encode()), 1, 2, via=3, depth=2)
        fields: dict[str, object] = {
            "outcome": Outcome.OK,
            "started_at": 1_795_000_000.25,
            "duration_s": 0.125,
            "address": "192.0.2.7",
            "status": 200,
            "request": REQUEST,
            "head": HEAD,
            "body": body if isinstance(body, Document) else Document(body),
            "effective_protocol": "http/1.1",
        }
        return Exchange(visit, **(fields | facts))  # type: ignore[arg-type]

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A crawl directory that is not there yet."""
    return tmp_path / "crawl"
