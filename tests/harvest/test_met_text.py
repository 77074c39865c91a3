"""Which letters of a page were met: those in fingerprints that came before; and the same in C as by columns."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fyke.harvest import met_text
from fyke.harvest.met_text import (
    GONE,
    GRAM,
    WINDOW,
    MetTexts,
    blocks_of,
    fingerprints,
    unmet_letters,
    weigh_by_columns,
    without_words,
)

compiled = pytest.mark.skipif(met_text.weigh_compiled is None, reason="it was not compiled: there was no compiler")
SEEN = GRAM + WINDOW - 1  # letters of met text that are seen
PLACES = 1 << 6  # few, so that grams take each other's
MANY = 1 << 16  # so many that blocks do not
PIECES = [
    b"<", b">", b"</", b"<a ", b"<A\x0b", b"<ab ", b"<a", b" href=x>", b"<script", b"</Script>", b"<STYLE>", b"</style",
    b"<p>", b"</p>", b"<!--", b"-->", b"\n", b"\t", b" ", b"Two words", b"31.12.", b"\xc3\xa9", b"\x00", b"\xa0",
]  # fmt: skip
TOLD = [b"<p>Copper lanterns grow in every valley where a violin lies.", b"<br>in every valley where a violin",
        b"<td>", b"<p>", b"The harbour of glass was closed by seven silent ministers", b"aaaaaaaa" * 6]  # fmt: skip
PAGES = st.lists(st.sampled_from(PIECES + TOLD * 3) | st.binary(max_size=5), max_size=60).map(b"".join)
WORDS = st.lists(st.text("abc", min_size=1, max_size=4).map(str.encode), max_size=4)


def tables(places: int = MANY) -> tuple[Any, Any]:
    return np.zeros(places, np.uint32), np.zeros(PLACES, np.uint32)


@compiled
@settings(max_examples=500)
@given(st.lists(PAGES, max_size=4), st.lists(st.sampled_from([b"er", b"glass", b"a", b"in", b"seven"])), st.booleans())
@example([b"<p>" + b"ab" * SEEN + b"<p>" + b"b" * (GRAM - 1) + b"<p>" + b"c" * (SEEN - 1)] * 2, [b"ab"], True)
def test_a_page_weighs_the_same_compiled(pages: list[bytes], words: list[bytes], remember: bool) -> None:
    (blocks, grams), (blocks_too, grams_too) = tables(), tables()
    for domain, page in enumerate(pages):
        by_columns = weigh_by_columns(page, words, blocks, grams, domain % 2 << 63, remember)
        weighed = met_text.weigh_compiled(page, tuple(words), blocks_too, grams_too, domain % 2 << 63, remember)
        assert weighed == by_columns
        assert np.array_equal(grams, grams_too)
        assert np.count_nonzero(blocks) == np.count_nonzero(blocks_too)
        assert remember or not blocks.any()


@compiled
@pytest.mark.parametrize(("blocks", "grams"), [(64, 0), (0, 64), (63, 64), (64, 63)])
def test_sizes_that_do_not_fit_are_refused(blocks: int, grams: int) -> None:
    with pytest.raises(ValueError, match="sizes do not fit"):
        met_text.weigh_compiled(b"<p>abc", (), np.zeros(blocks, np.uint32), np.zeros(grams, np.uint32), 0, True)


@compiled
def test_words_that_are_none_are_refused() -> None:
    with pytest.raises(TypeError):
        met_text.weigh_compiled(b"<p>abc", ("a",), *tables(), 0, True)  # type: ignore[arg-type]


@given(st.binary(max_size=300))
def test_any_bytes_have_blocks(content: bytes) -> None:
    assert all(block and b"<" not in block for block in blocks_of(content))


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize(
    "piece", [b"<", b">", b"<a ", b"<a >", b"<script", b"<script>x</script>", b"<style", b"x>", b"<p>ab", b">x", b"x"]
)
def test_work_grows_with_length(piece: bytes, by_columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of each; a second run is not needed to tell minutes from none."""
    if by_columns:
        monkeypatch.setattr(met_text, "weigh_compiled", None)
    met = MetTexts(PLACES, PLACES)
    weight = met.weigh(piece * ((1 << 20) // len(piece)), "http://h/ab/x", 7)
    assert 0 <= weight.brought <= weight.letters <= 1 << 20
    assert len(weight.unmet) <= 1 << 20


BLOCKS = st.lists(
    st.lists(st.binary(max_size=200) | st.sampled_from([b"a" * 40, b"abc" * 20, bytes(range(100, 130))]), max_size=3)
    .map(b"".join)
    .map(lambda text: text.replace(b"\n", b"")),
    max_size=5,
)


@given(BLOCKS, st.binary(max_size=60), st.binary(min_size=SEEN, max_size=60), st.binary(max_size=60))
def test_fingerprints_are_of_one_block_and_shared_wherever_a_text_stands(
    text: list[bytes], before: bytes, shared: bytes, behind: bytes
) -> None:
    found = fingerprints(b"\n".join(text))
    alone = [fingerprints(block) for block in text]
    assert found["key"].tolist() == [key for keys in alone for key in keys["key"].tolist()]
    assert all(len(keys) > 0 if len(block) >= GRAM else len(keys) == 0 for block, keys in zip(text, alone, strict=True))
    before, shared, behind = (part.replace(b"\n", b"x") for part in (before, shared, behind))
    keys = set(fingerprints(shared)["key"].tolist())
    assert keys & set(fingerprints(before + shared + behind)["key"].tolist())


def with_words_gone(text: bytes, gone: list[int]) -> bytes:
    said = bytearray(text)
    for at in gone:
        said[at % len(text) : at % len(text) + 5] = bytes(len(said[at % len(text) : at % len(text) + 5]))
    return bytes(said)


@given(BLOCKS, st.lists(st.integers(0, 1000), max_size=5), st.integers(0, (1 << 64) - 1))
@example([b"", b"a" * GRAM, b"ab" * SEEN, b"", b"b" * (GRAM - 1), b"c" * (SEEN - 1), b""], [3], 7)
def test_letters_are_met_in_grams_that_came_before(text: list[bytes], gone: list[int], domain: int) -> None:
    """By the definition, gram by gram."""
    joined = b"\n".join(text)
    said = with_words_gone(joined, gone) if joined else joined
    met, known = np.zeros(PLACES, np.uint32), dict[int, int]()
    for _ in range(2):
        expected, begin = [], 0
        for block in text:
            covered = set[int]()
            for key, at in fingerprints(block).tolist():
                mixed = (key ^ domain) * 0x9E3779B97F4A7C15 % (1 << 64)
                place, mark = mixed % PLACES, mixed >> 32 | 1
                if known.get(place) == mark:
                    covered.update(range(at - WINDOW + 1, at + SEEN))
                known[place] = mark
            expected.append(sum(said[begin + at] > 0 and at not in covered for at in range(len(block))))
            begin += len(block) + 1
        before = met.copy()
        assert unmet_letters(joined, said, met, domain, remember=False) == (expected or [0])
        assert np.array_equal(met, before)
        assert unmet_letters(joined, said, met, domain, remember=True) == (expected or [0])


@given(st.text("abc\n", max_size=50).map(str.encode), WORDS)
def test_words_are_gone_wherever_they_stand(text: bytes, words: list[bytes]) -> None:
    gone = set[int]()
    for word in words:
        at = text.find(word)
        while at >= 0:
            gone.update(range(at, at + len(word)))
            at = text.find(word, at + len(word))
    expected = bytes(GONE if at in gone else letter for at, letter in enumerate(text))
    assert without_words(text, words) == expected


@pytest.mark.parametrize("text", [b"a" * (1 << 20), bytes(range(11, 255)) * 4200, b"a\n" * (1 << 19)])
def test_fingerprints_of_a_megabyte_are_no_more_than_its_letters(text: bytes) -> None:
    assert len(fingerprints(text)) <= len(text)
