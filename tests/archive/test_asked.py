"""What was asked of a crawl is on the disk before it counts, however often the disk is full."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.archive import asked as module
from fyke.archive.asked import AskedLater, host_named
from fyke.core.errors import BadUrl, DiskFull

Order = Callable[[Any], object]

HOSTS = st.sampled_from(["a.example", "b.example"])
ORDERS: st.SearchStrategy[Order] = st.one_of(
    st.builds(lambda host, blocked: lambda one: one.block(host, blocked), HOSTS, st.booleans()),
    st.builds(lambda host: lambda one: one.add_seeds([f"http://{host}/"]), HOSTS),
)


def full(path: Path, data: bytes) -> None:
    raise DiskFull("no room")


@given(orders=st.lists(st.tuples(ORDERS, st.booleans()), max_size=12))
def test_what_counts_is_what_is_on_the_disk(orders: list[tuple[Order, bool]]) -> None:
    """An order that fails changes nothing; the others do what they do on a disk that is never full."""
    with TemporaryDirectory() as folder, TemporaryDirectory() as roomy:
        asked, calm = AskedLater(Path(folder)), AskedLater(Path(roomy))
        for order, fails in orders:
            with pytest.MonkeyPatch.context() as patch:
                if fails:
                    patch.setattr(module, "write_whole", full)
                with suppress(DiskFull):
                    done = order(asked)
                    patch.undo()
                    assert order(calm) == done
            for one in (asked, AskedLater(Path(folder))):
                assert (one.seeds, one.blocked) == (calm.seeds, calm.blocked)


def test_who_shares_it_writes_nothing(tmp_path: Path) -> None:
    asked = AskedLater(tmp_path, shared=True)
    asked.add_seeds(["http://a.example/"])
    assert asked.block("a.example", blocked=True) and not asked.block("a.example", blocked=True)
    assert (asked.seeds, asked.blocked) == (["http://a.example/"], ["a.example"]) and not any(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["*", "*.a.example", "http://*.a.example/", "a.*", "", "a b"])
def test_a_pattern_is_no_host(text: str) -> None:
    with pytest.raises(BadUrl, match="is not a host"):
        host_named(text)
    assert host_named("https://a.example:8080/*?*") == "a.example"
