"""Weights of pages as a person gives them: read whatever they are called, refused in one line."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fyke.core.batches import url_batch, with_column
from fyke.core.errors import ConfigurationError
from fyke.core.urls import locate
from fyke.crawl import weight_lists
from fyke.crawl.weight_lists import read_weights

URLS = ["http://a.example/", "http://a.example/b?c", "http://d.example/"]


def batch() -> pa.RecordBatch:
    return url_batch([locate(url) for url in URLS])


def test_without_a_list_all_weigh_the_same() -> None:
    assert read_weights("").of(batch()).tolist() == [1, 1, 1]
    weighed = read_weights("in-degree").of(with_column(batch(), "in_degree", np.array([0, 5, 9])))
    assert weighed.tolist() == [1, 6, 10]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_list_is_of_urls_as_people_write_them(tmp_path: Path, kind: str) -> None:
    """Other columns are nobody's business; of a page that is there twice the last row counts."""
    path = tmp_path / f"weights.{kind}"
    rows = {
        "url": ["HTTP://A.example", "no url", "http://d.example/", "http://d.example:80/"],
        "n": [1, 2, 3, 4],
        "weight": [2.5, 7.0, 1.0, 0.0],
    }
    if kind == "parquet":
        pq.write_table(pa.table(rows), path)
    else:
        path.write_text(
            "\n".join([",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))])
        )
    assert read_weights(str(path)).of(batch()).tolist() == [2.5, 1, 0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("url,heft\nhttp://a/,1", "cannot be read"),
        ("url,weight\nhttp://a/,much", "cannot be read"),
        ("", "cannot be read"),
        ("url,weight\nhttp://a/,-1", "0 or more"),
        ("url,weight\nhttp://a/,inf", "0 or more"),
        ("url,weight\nhttp://a/,1\nhttp://b/,1\nhttp://c/,1", "more than 2 rows"),
    ],
)
def test_what_is_no_list_of_weights(tmp_path: Path, text: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_lists, "MOST", 2)
    path = tmp_path / "weights.csv"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=reason) as raised:
        read_weights(str(path))
    assert "\n" not in str(raised.value)
    with pytest.raises(ConfigurationError, match="no such file"):
        read_weights(str(tmp_path / "other.csv"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_list_that_is_no_utf_8(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"weights.{kind}"
    if kind == "parquet":
        urls = pa.array([b"http://a.example/\xff"]).view(pa.string())
        pq.write_table(pa.table({"url": urls, "weight": [1.0]}), path)
    else:
        path.write_bytes(b"url,weight\nhttp://a.example/\xff,1\n")
    with pytest.raises(ConfigurationError, match=r"cannot be read: .*UTF-?8"):
        read_weights(str(path))
