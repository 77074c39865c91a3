"""The ledger: rows come back, from memory and from a file, also from a torn one."""

from contextlib import closing

import pytest

from fyke.lab.simweb import Ledger, LedgerRow, read_queries, read_requests
from fyke.lab.simweb.ledger import ROWS_PER_BATCH


def row(number):
    return LedgerRow(number, number + 0.5, "http", "127.1.0.1", 4000, "h0.d0.sim", f"/{number}", "fyke", 200, 10)


@pytest.mark.parametrize("in_file", [False, True])
def test_rows_come_back(in_file, tmp_path):
    path = tmp_path / "ledger" if in_file else None
    with closing(Ledger(path)) as ledger:
        for number in range(ROWS_PER_BATCH + 5):
            ledger.add(row(number))
        ledger.add_query(1.5, "h0.d0.sim", 1)
        table = ledger.requests()
        assert len(table) == ROWS_PER_BATCH + 5
        assert table["path"].to_pylist()[-1] == f"/{ROWS_PER_BATCH + 4}"
        assert table["arrived"].to_numpy().dtype == "float64"
        assert ledger.queries().to_pylist() == [{"at": 1.5, "name": "h0.d0.sim", "type": 1}]
        assert ledger.statistics() == (ROWS_PER_BATCH + 5, 1, 10 * (ROWS_PER_BATCH + 5))
        assert "8197 requests" in repr(ledger)
        if path:
            assert read_requests(path).equals(table)


def test_a_torn_file_gives_what_came_before(tmp_path):
    path = tmp_path / "ledger"
    with closing(Ledger(path)) as ledger:
        for number in range(10):
            ledger.add(row(number))
            ledger.flush()
    whole = path.read_bytes()
    counts = []
    for cut in range(0, len(whole), 97):
        path.write_bytes(whole[:cut])
        table = read_requests(path)
        counts.append(len(table))
        assert table["path"].to_pylist() == [f"/{number}" for number in range(len(table))]
    assert counts == sorted(counts) and counts[-1] >= 9
    assert len(read_queries(path)) == 0
