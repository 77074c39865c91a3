"""A snippet is a piece of the page; what is marked in it are words of the query."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.search.schema import Analysis
from fyke.search.snippets import CONTEXT_CHARS, SNIPPET_CHARS, Highlighter, fold

ANALYSIS = Analysis()
PLAIN = ["sort", "sorting", "Sorted", "resort", "ab_sort", "-", "x"]
WORDS = st.sampled_from([*PLAIN, "café", "CAFE", "straße", "İstanbul", "東京"])
TEXTS = st.lists(WORDS | st.text(max_size=5), max_size=300).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, query=st.lists(WORDS, max_size=3), language=st.sampled_from(["en", "de", "ja", ""]))
def test_a_piece_of_the_text(text: str, query: list[str], language: str) -> None:
    words = {term: 1.0 for word in query for term in ANALYSIS.words(word)}
    spans = Highlighter(ANALYSIS, words).snippet(text, "", language)
    assert all(piece for piece, _ in spans)
    pieces = [piece for piece, _ in spans]
    if pieces and pieces[0] == "… ":
        pieces = pieces[1:]
    if pieces and pieces[-1] == " …":
        pieces = pieces[:-1]
    assert "".join(pieces) in " ".join(text.split("\n"))
    assert len("".join(pieces)) <= SNIPPET_CHARS + 2 * CONTEXT_CHARS
    for piece, marked in spans:
        if marked:
            same = ANALYSIS.words(piece) + (
                ANALYSIS.stems(f"stem_{language}", piece) if language in ("en", "de") else []
            )
            stems = {s for w in words for s in ANALYSIS.stems("stem_en", w) + ANALYSIS.stems("stem_de", w)}
            assert set(same) & (words.keys() | stems)


def test_the_best_piece() -> None:
    far = "nothing " * 200
    text = f"one {far} two one three {far} two"
    spans = Highlighter(ANALYSIS, {"one": 1.0, "two": 1.0, "three": 2.0}).snippet(text, "", "")
    assert [piece for piece, marked in spans if marked] == ["two", "one", "three"]
    assert Highlighter(ANALYSIS, {"zebra": 1.0}).snippet(text, "a zebra", "") == (("a ", False), ("zebra", True))
    assert Highlighter(ANALYSIS, {}).snippet("", "", "") == ()


LINES = st.lists(st.sampled_from(["Previous | Next", "Skip to sort", "sorting plums", "a plum", "x"]), max_size=12)


@given(lines=LINES, repeated=st.sets(st.sampled_from(["Previous | Next", "Skip to sort"])))
def test_repeated_lines_are_not_shown_where_others_answer(lines: list[str], repeated: set[str]) -> None:
    spans = Highlighter(ANALYSIS, {"sort": 1.0}).snippet("\n".join(lines), "", "en", repeated)
    shown = "".join(piece for piece, _ in spans)
    if any(line.startswith("sorting") for line in lines):
        assert not any(line in shown for line in repeated)
    if any("sort" in line for line in lines):
        assert any(marked for _, marked in spans)


def test_what_stands_at_the_end_of_a_long_page_is_found() -> None:
    text = "\n".join([*["nothing of the kind"] * 9_000, "the ripe persimmon"])
    spans = Highlighter(ANALYSIS, {"persimmon": 1.0, "plum": 1.0}).snippet(text, "a description", "en")
    assert [piece for piece, marked in spans if marked] == ["persimmon"]


def test_what_stands_late_in_a_page_is_found() -> None:
    text = "\n".join([*["sort nothing"] * 1000, "sort the ripe persimmon"])
    spans = Highlighter(ANALYSIS, {"sort": 1.0, "persimmon": 3.0}).snippet(text, "", "en")
    assert "persimmon" in [piece for piece, marked in spans if marked]


@given(st.text())
def test_folding_keeps_places(text: str) -> None:
    assert len(fold(text)) == len(text)
