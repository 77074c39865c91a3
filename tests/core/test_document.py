"""Documents that share what memory there is: whatever is written, read, closed and dropped, they hold no more."""

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.document import Document, SharedMemory

MOST, ALONE = 1000, 600
STEPS = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(["write", "read", "close", "drop"]), st.binary(max_size=400))
)


@given(STEPS)
def test_many_hold_no_more_than_there_is(steps: list[tuple[int, str, bytes]]) -> None:
    shared = SharedMemory(MOST)
    documents: dict[int, Document] = {}
    written: dict[int, bytes] = {}
    for number, step, data in steps:
        if step == "write":
            documents.setdefault(number, Document(memory_bytes=ALONE, shared=shared)).write(data)
            written[number] = written.get(number, b"") + data
        elif step == "close" and number in documents:
            documents.pop(number).close()
            del written[number]
        elif step == "drop":
            documents.pop(number, None)
            written.pop(number, None)
        held = sum(document.size for document in documents.values() if document._file is None)
        assert held == MOST - shared.left_bytes <= MOST
        assert all(documents[each].read() == written[each] for each in documents)
    documents.clear()
    assert shared.left_bytes == MOST


def test_large_ones_leave_room_for_small_ones() -> None:
    """However many are large, one that is small stays in memory, until its own part is full."""
    shared = SharedMemory(4 << 20)
    large = [Document(shared=shared) for _ in range(20)]
    for each in large:
        each.write(b"x" * 600_000)
    small = [Document(shared=shared) for _ in range(8)]
    for each in small:
        each.write(b"x" * 100_000)
    assert all(each._file is None for each in small)
    assert sum(each._file is None for each in large) == 5
    for each in [*large, *small]:
        each.close()


def test_what_does_not_fit_on_the_disk_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """And whole: nobody reads half of it as if it were all."""
    document = Document(b"begin", memory_bytes=1 << 20)
    document.write(b", and the rest of it")
    with monkeypatch.context() as full:
        full.setattr(tempfile, "TemporaryFile", lambda dir: open("/dev/full", "r+b"))  # noqa: SIM115, PTH123
        with pytest.raises(OSError, match="No space"):
            document.to_disk()
    assert document.read() == b"begin, and the rest of it"
    document.to_disk()
    assert document.read() == b"begin, and the rest of it"
    document.close()


def test_a_full_disk_is_met_by_who_writes_and_not_by_who_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    document = Document()
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: open("/dev/full", "r+b"))  # noqa: SIM115, PTH123
    document.to_disk()
    with pytest.raises(OSError, match="No space"):
        document.write(b"x")
    document.close()
