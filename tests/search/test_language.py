"""Which language a text is in, where the model that tells it cannot be unpacked."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.core.errors import DiskFull
from fyke.search.language import ISO_639_1, LanguageGuesser, _model, is_untranslated

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
    assert LanguageGuesser().guess(TEXT, "de") == "en"
    assert LanguageGuesser().guess(f"\n\n  {TEXT * 1000}".replace(". ", ".\n\n")) == "en"


SEVERAL = """Index of our latest stories
How to brew tea like a monk
東京タワーで新春展覧会が開かれる
Zażółć gęślą jaźń: święto języka
Новый мост через Волгу открыт в Самаре
Phở là món ăn nổi tiếng của Việt Nam
"""
NUMBERS = "1234 5678 9012 3456 7890 1234 5678 9012 3456 "
FEW_WORDS = "Gizmo 2.1 gizmo --dry-run foo bar baz qux quux"


@pytest.mark.parametrize("text", [SEVERAL, NUMBERS, FEW_WORDS, "Start " + "x " * 30, "Hello"])
def test_where_the_text_does_not_tell_the_page_does(text: str) -> None:
    assert LanguageGuesser().guess(text, "en-GB") == "en"


@pytest.mark.parametrize(("declared", "code"), [("", ""), ("xx", ""), ("eng", ""), ("yue", "zh"), ("de_AT", "de")])
def test_a_language_has_two_letters_or_none(declared: str, code: str) -> None:
    assert LanguageGuesser().guess(NUMBERS, declared) == code
    assert LanguageGuesser().guess("", declared) == code


@settings(max_examples=50, deadline=None)
@given(st.text(min_size=40) | st.sampled_from([SEVERAL, "القاهره دى عاصمه مصر واكبر مدينه فيها من ناحيه السكان " * 3]))
def test_any_text_has_a_language_of_iso_639_1(text: str) -> None:
    assert LanguageGuesser().guess(text) in {"", *ISO_639_1}


@pytest.mark.parametrize("code", ["de", "de-AT", "DE_at", "zh-Hant"])
@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/{}/", "http://a.example/docs/{}/a/b.html", "http://{}.a.example/", "http://a.example/?lang={}",
        "http://a.example/b?x=1&hl={}&y=2",
    ],
)  # fmt: skip
def test_an_address_names_a_language(url: str, code: str) -> None:
    named = code[:2].lower()
    assert is_untranslated(url.format(code), "en")
    assert not is_untranslated(url.format(code), named)
    assert not is_untranslated(url.format(code), "")
    assert not is_untranslated(f"http://{named}.example/en/{code}/?lang={code}", "en"), "it names both"


@pytest.mark.parametrize("target", ["/", "/de", "/de.html", "/xx/", "/deu/", "/d-e/", "/a/?sort=de", "/lang=de"])
def test_other_addresses_name_none(target: str) -> None:
    assert not is_untranslated(f"http://a.example{target}", "en")
