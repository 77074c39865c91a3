"""Which language a text is in, where the model that tells it cannot be unpacked."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from fyke.core.errors import DiskFull
from fyke.search.language import LanguageGuesser, _model

TEXT = "The weather is fine today, and we walk along the river to the old town. " * 3


@pytest.fixture
def short_files() -> Iterator[None]:
    """Files may have 300 kB, and the model is not loaded yet."""
    _model.cache_clear()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("short_files")
def test_where_temporary_files_have_no_room_their_folder_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else the command would complain of what it prints."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(DiskFull, match=rf"cannot write {tmp_path}: .*; raise the limit .*ulimit -f"):
        LanguageGuesser().guess(TEXT)


def test_a_language_is_told() -> None:
    assert LanguageGuesser().guess(TEXT) == "en"
