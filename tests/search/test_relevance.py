"""Ranking, judged by others: the Cranfield collection, where it is to be had; and the judges themselves."""

import pytest
from relevance import average_precision, by_bm25, by_fyke, crawled, measured, ndcg, oracle, read


@pytest.mark.skipif(not (oracle() / "cran.all.1400").exists(), reason="needs the Cranfield collection in FYKE_ORACLES")
def test_no_worse_than_lucenes_bm25(tmp_path):
    pytest.importorskip("bm25s")
    collection = read(oracle())
    ours = measured(collection, by_fyke(crawled(collection, tmp_path)))
    theirs = measured(collection, by_bm25(collection))
    assert ours[0] >= theirs[0]
    assert ours[1] >= theirs[1]


def test_a_small_collection_is_read_crawled_and_found(tmp_path):
    (tmp_path / "cran.all.1400").write_text(
        ".I 1\n.T\nwings & slipstreams\n.A\nbrenckman\n.B\nj. ae. 25\n.W\nwings & slipstreams\nthe lift of wings .\n"
        ".I 2\n.T\nheat\n.W\nheat conduction in composite slabs .\n.I 3\n.T\nnothing\n.W\nshells .\n"
    )
    (tmp_path / "cran.qry").write_text(
        ".I 001\n.W\nwhat is the\nlift of wings .\n.I 007\n.W\nslabs that conduct heat .\n"
    )
    (tmp_path / "cranqrel").write_text("1 1 2 \n1 3 -1\n2 2 1\n")
    collection = read(tmp_path)
    assert collection.judged == {1: {1: 3}, 2: {2: 4}}
    assert measured(collection, by_fyke(crawled(collection, tmp_path / "work"))) == (1, 1)


def test_the_measures():
    judged = {1: 4, 2: 1, 3: 2}
    assert ndcg([1, 3, 2], judged) == 1
    assert ndcg([9, 8], judged) == 0
    assert ndcg([2, 1, 3], judged) == pytest.approx((1 + 4 / 1.5849625 + 2 / 2) / (4 + 2 / 1.5849625 + 1 / 2))
    assert average_precision([1, 9, 2], judged) == pytest.approx((1 + 2 / 3) / 3)
    assert average_precision([], {}) == 0
