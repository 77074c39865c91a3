"""The fields of a document, and how text becomes words: the same for pages and for queries.

Used by the writing of documents and by searching. Words are runs of letters and digits, in small letters and
without accents; each character of the scripts that write without blanks is a word by itself, and a word of a query
in such a script a phrase. `stem_<language>` holds the words of a page by their stems in its own language, so
that "sorting" finds "sort"; `stem_` those of languages without a stemmer, as they are. What is shown is kept apart
from what is looked for.

Invariant: `Analysis.words` of a text gives exactly the terms under which a document with it is found.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import tantivy
from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from fyke.core.errors import DirectoryError

LONGEST_WORD = 64
SHOWN = ("title", "description", "text")  # also kept as they are shown
STEMMED = {
    "ar": "arabic", "da": "danish", "nl": "dutch", "en": "english", "fi": "finnish", "fr": "french", "de": "german",
    "el": "greek", "hu": "hungarian", "it": "italian", "no": "norwegian", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "es": "spanish", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
STEM_FIELDS = ("stem_", *(f"stem_{code}" for code in STEMMED))
_ALIKE = {"nb": "no", "nn": "no"}
# Thai, Lao, Burmese, Khmer, kana, Han: written without blanks.
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])"
)


def spaced(text: str) -> str:
    """`text` with blanks around each character of a script that is written without."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)


def stem_field(language: str) -> str:
    """The field of stems for a language."""
    language = _ALIKE.get(language, language)
    return f"stem_{language}" if language in STEMMED else "stem_"


@lru_cache(maxsize=1)
def schema() -> tantivy.Schema:
    """The fields; raise `fyke.search.folder.FORMAT` when they change."""
    build = tantivy.SchemaBuilder()
    build.add_unsigned_field("key", stored=True, indexed=True, fast=True)
    build.add_unsigned_field("fingerprint", stored=True, fast=True)
    build.add_unsigned_field("host", stored=True, indexed=True, fast=True)  # key of the host
    for name in ("url", "language"):
        build.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    build.add_text_field("site", tokenizer_name="raw", index_option="basic")  # the host and all that end it
    for name in ("title", "headings", "description", "anchors", "address", "text"):
        build.add_text_field(name, tokenizer_name="words")
    for name in STEM_FIELDS:
        build.add_text_field(name, tokenizer_name=name, index_option="freq")
    for name in SHOWN:
        build.add_bytes_field(f"shown_{name}", stored=True)
    build.add_integer_field("date_s", stored=True, indexed=True, fast=True)
    build.add_integer_field("fetched_at", stored=True)  # microseconds
    build.add_float_field("weight", stored=True, fast=True)
    return build.build()


class Analysis:
    """The analysers, made once for an index: `words` and `stems` say what a text is looked for by."""

    def __init__(self) -> None:
        self._words = _analyser()
        self._stems = {stem_field(code): _analyser(name) for code, name in STEMMED.items()} | {"stem_": self._words}
        self.words: Callable[[str], list[str]] = lru_cache(maxsize=4096)(self._words_of)
        self.stems: Callable[[str, str], list[str]] = lru_cache(maxsize=4096)(self._stems_of)

    def register(self, index: tantivy.Index) -> None:
        """Make them known to `index`."""
        index.register_tokenizer("words", self._words)
        for name, analyser in self._stems.items():
            index.register_tokenizer(name, analyser)

    def _words_of(self, text: str) -> list[str]:
        return self._words.analyze(spaced(text))

    def _stems_of(self, field: str, text: str) -> list[str]:
        return self._stems[field].analyze(spaced(text))


def _analyser(language: str | None = None) -> TextAnalyzer:
    built = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(LONGEST_WORD)).filter(Filter.lowercase())
    if language is not None:  # before accents go: the stemmers know them
        built = built.filter(Filter.stemmer(language))
    return built.filter(Filter.ascii_fold()).build()


def open_engine(path: Path, analysis: Analysis) -> tantivy.Index:
    """The index in the folder `path`, made if there is none. Raises DirectoryError."""
    with engine_at(path):
        path.mkdir(parents=True, exist_ok=True)
        index = tantivy.Index(schema(), str(path))
        analysis.register(index)
    return index


@contextmanager
def engine_at(path: Path) -> Iterator[None]:
    """Turns what the engine in the folder `path` raises, mostly for the disk, into what a person can act on."""
    try:
        yield
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DirectoryError(
            f"the index in {path} cannot be used: {reason}; free some space, or delete {path.parent} and make it again"
        ) from error
