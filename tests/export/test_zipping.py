"""The ZIP that grows, read by the standard library, also beyond the limits of the old format."""

import zipfile
from pathlib import Path

import pytest

from fyke.export.zipping import GrowingZip, ZipMember

AT = (2026, 11, 21, 9, 30, 58)


def test_it_goes_on_after_a_torn_member(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with GrowingZip(path, [], 0, AT) as first:
        first.add("a/ä.txt", 5, [b"one", b"ly"])
        with pytest.raises(ValueError, match="not 9"):
            first.add("torn", 9, [b"abc"])
    with GrowingZip(path, first.members, first.length, AT) as second:
        second.add("b", 0, [])
        second.finish()
    with zipfile.ZipFile(path) as found:
        assert found.testzip() is None and found.namelist() == ["a/ä.txt", "b"]
        assert found.read("a/ä.txt") == b"onely"
        assert found.getinfo("b").date_time == AT


def test_beyond_four_gigabytes(tmp_path: Path) -> None:
    """A file with a hole stands for the first member."""
    path = tmp_path / "x.zip"
    size = 5 << 30
    with path.open("wb") as file:
        file.truncate(size + 100)
    with GrowingZip(path, [ZipMember("huge", 0, size, 7, "")], size + 100, AT) as bundle:
        bundle.add("small", 5, [b"small"])
        bundle.finish()
    with zipfile.ZipFile(path) as found:
        assert [info.file_size for info in found.infolist()] == [size, 5]
        assert found.getinfo("small").header_offset == size + 100 and found.read("small") == b"small"


def test_more_members_than_the_old_format_counts(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with GrowingZip(path, [ZipMember(f"{number}", 0, 1, 0, "") for number in range(70_000)], 100, AT) as bundle:
        bundle.add("last", 4, [b"last"])
        bundle.finish()
    with zipfile.ZipFile(path) as found:
        assert len(found.namelist()) == 70_001 and found.read("last") == b"last"
