"""The fields of a document, and how text becomes words: the same for pages and for queries.

Used by the writing of documents and by searching.

- Words are runs of letters and digits, in small letters, without accents and points. In scripts without blanks, and in
  Hangul, each character is a word, and a word of a query is a phrase; so are emoji, in whatever colour of skin. Emoji
  and signs that make a name (`c++`, `f#`, `.net`) are spelt in letters first.
- `stem_<language>` holds the words of a page by their stems in its own language, so that "sorting" finds "sort";
  `stem_` those of languages without a stemmer, as they are. `title_stems` and its like hold what the page is called, by
  stems of its language. Stemmers know accents: a word that has another stem if typed without them has both.
- Text that is shown is kept apart from text that is searched.

Invariant: `Analysis.words` of a text gives exactly the terms under which a document with it is found.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from unicodedata import normalize

import tantivy
from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from fyke.core.errors import DirectoryError
from fyke.core.urls import split
from fyke.disk.files import means_no_room, no_room, require_readable

LONGEST_WORD = 64
SHOWN = ("title", "description", "text")  # also kept as they are shown
STEMMED = {
    "ar": "arabic", "da": "danish", "nl": "dutch", "en": "english", "fi": "finnish", "fr": "french", "de": "german",
    "el": "greek", "hu": "hungarian", "it": "italian", "no": "norwegian", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "es": "spanish", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
NAMES = ("title", "headings", "anchors", "address")  # what a page is called, here and elsewhere
STEM_FIELDS = ("stem_", *(f"stem_{code}" for code in STEMMED))
_ALIKE = {"nb": "no", "nn": "no"}
LANGUAGES = (*STEMMED, *_ALIKE)
# Languages with a list of fillers, words around what is asked; the engine's list for English has no question words.
_LISTED = {"da", "nl", "fi", "fr", "de", "hu", "it", "no", "pt", "ru", "es", "sv"}
_ENGLISH = """
    a an the this that these those i me my mine we us our ours you your yours he him his she her hers it its
    they them their theirs one is am are was were be been being do does did done doing have has had having can
    could may might must shall should will would need needs want wants and or but nor if so as at by for from in
    into of off on onto out over to than then too up with without about via what which who whom whose when where
    why how whether there here now just only very really also any some all each every both either such same own
    other another more most not no yes please
"""
# Thai, Lao, Burmese, Khmer, kana, Han: written without blanks. And Hangul: its nouns stand with what follows them.
UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    r"\uf900-\ufaff])"
)
# Combining accents (in small letters, a dotted Turkish I leaves one); points of Hebrew; points of Arabic, and
# its stretch.
_POINTS = re.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]"
)
_WORD = re.compile(r"[^\W_]+")
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")  # Latin letters
# Signs that make another name of a name: c++, a++; c#, f#; .net. Not those in j++k, a#b, example.net, 3#.
_SIGNS = re.compile(r"(?<=[^\W_])\+\+(?![^\W\d]|[_+])|(?<=\b[^\W\d_])#(?![\w#])|(?<![\w.])\.(?=net\b)", re.IGNORECASE)
_EMOJI = re.compile(r"[\u2600-\u27bf\u2b50\u2b55\U0001f1e6-\U0001f1ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff]")
_EMOJI_SPELT = re.compile(r"emoji(\d{4,6})")
_SPELT = {"++": "plusplus ", "#": "sharp ", ".": "dot"}


def spelt(text: str) -> str:
    """Return `text` with the signs that make a name spelt in letters."""
    if "++" in text or "#" in text or "." in text:
        text = _SIGNS.sub(lambda match: _SPELT[match[0]], text)
    return text


def prepared(text: str) -> str:
    """Return `text` for the analysers: signs spelt, blanks around characters that are written without, no points that
    may be left out."""
    text = spelt(text)
    if text.isascii():
        return text
    text = _POINTS.sub("", normalize("NFC", text).replace("İ", "I"))
    text = _EMOJI.sub(lambda match: f" emoji{ord(match[0])} ", text)
    return UNSPACED.sub(r" \1 ", text)


def address_words(url: str) -> str:
    """Return the words in a URL: of its host without the suffix, its path and its query."""
    parts = split(url)
    name = parts.host if parts.host[:1].isdigit() else parts.host.removeprefix("www.").rpartition(".")[0]
    return " ".join(_WORD.findall(f"{name} {parts.target}"))


def as_written(term: str) -> str:
    """Return a term as people write it, in small letters, with the signs that `prepared` spelt out."""
    for sign, letters in (("++", "plusplus"), ("#", "sharp")):
        if term.endswith(letters) and len(term) > len(letters):
            return term.removesuffix(letters) + sign
    if emoji := _EMOJI_SPELT.fullmatch(term):
        return chr(int(emoji[1]))
    return ".net" if term == "dotnet" else term


def stem_field(language: str) -> str:
    """Return the field of stems for a language."""
    language = _ALIKE.get(language, language)
    return f"stem_{language}" if language in STEMMED else "stem_"


@lru_cache(maxsize=1)
def schema() -> tantivy.Schema:
    """Return the fields. Increase `fyke.search.folder.FORMAT` when they change."""
    build = tantivy.SchemaBuilder()
    build.add_unsigned_field("key", stored=True, indexed=True, fast=True)
    build.add_unsigned_field("fingerprint", stored=True, fast=True)
    build.add_unsigned_field(
        "near", stored=True, indexed=True, fast=True
    )  # key of its cluster of near-duplicates, or 0
    build.add_unsigned_field("host", stored=True, indexed=True, fast=True)  # key of the host
    for name in ("url", "language"):
        build.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    build.add_text_field("site", tokenizer_name="raw", index_option="basic")  # the host, its ends down to the domain
    for name in ("title", "headings", "description", "anchors", "address", "text"):
        build.add_text_field(name, tokenizer_name="words")
    for name in NAMES:
        build.add_text_field(f"{name}_stems", tokenizer_name="stems", index_option="freq")
    for name in STEM_FIELDS:
        build.add_text_field(name, tokenizer_name=name, index_option="freq")
    for name in SHOWN:
        build.add_bytes_field(f"shown_{name}", stored=True)
    build.add_integer_field("date_s", stored=True, indexed=True, fast=True)
    build.add_integer_field("fetched_at", stored=True)  # microseconds
    build.add_float_field("weight", stored=True, fast=True)
    return build.build()


class Analysis:
    """The analysers, made once for an index. `words` and `stems` return the terms that a text is searched by."""

    def __init__(self) -> None:
        self._words = _analyser()
        self._stems = {stem_field(code): _analyser(name) for code, name in STEMMED.items()} | {"stem_": self._words}
        self._fillers = {code: _fillers(STEMMED[code]) for code in _LISTED} | {
            "en": _fillers("english", _ENGLISH.split())
        }
        self.words: Callable[[str], list[str]] = lru_cache(maxsize=4096)(self._words_of)
        self.stems: Callable[[str, str], list[str]] = lru_cache(maxsize=4096)(self._stems_of)
        self._plain: Callable[[str, str], str] = lru_cache(maxsize=4096)(self._plain_of)

    def register(self, index: tantivy.Index) -> None:
        """Make the analysers known to `index`."""
        index.register_tokenizer("words", self._words)
        index.register_tokenizer("stems", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
        for name, analyser in self._stems.items():
            index.register_tokenizer(name, analyser)

    def is_filler(self, text: str, language: str) -> bool:
        """Return whether all words of `text` are fillers of `language`: "how", "do", "the"."""
        analyser = self._fillers.get(language)
        return analyser is not None and not analyser.analyze(text)

    def without_accents(self, field: str, text: str) -> list[str]:
        """Return words of `text` (prepared) as typed without accents, if their stem is another then."""
        if text.isascii():
            return []
        accented = filter(_ACCENTED.search, _WORD.findall(text))
        return [plain for word in accented if (plain := self._plain(field, word))]

    def _plain_of(self, field: str, word: str) -> str:
        plain = " ".join(self.words(word))
        return plain if self.stems(field, plain) != self.stems(field, word) else ""

    def _words_of(self, text: str) -> list[str]:
        return self._words.analyze(prepared(text))

    def _stems_of(self, field: str, text: str) -> list[str]:
        return self._stems[field].analyze(prepared(text))


def _analyser(language: str | None = None) -> TextAnalyzer:
    built = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(LONGEST_WORD)).filter(Filter.lowercase())
    if language is not None:  # before accents go: the stemmers know them
        built = built.filter(Filter.stemmer(language))
    return built.filter(Filter.ascii_fold()).build()


def _fillers(language: str, words: list[str] | None = None) -> TextAnalyzer:
    """Return an analyser that takes fillers out of a text."""
    among = Filter.stopword(language) if words is None else Filter.custom_stopword(words)
    return TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.lowercase()).filter(among).build()


def open_engine(path: Path, analysis: Analysis) -> tantivy.Index:
    """Return the index in the folder `path`, made if there is none. Raises DirectoryError."""
    with engine_at(path):
        path.mkdir(parents=True, exist_ok=True)
        index = tantivy.Index(schema(), str(path))
        analysis.register(index)
    return index


@contextmanager
def engine_at(path: Path) -> Iterator[None]:
    """Turn errors of the engine in the folder `path`, mostly of the disk, into ones that a person can act on."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, ValueError | OSError) and not is_panic(error):
            raise
        require_readable(path)
        reason = " ".join(str(error).split())[:200]
        if means_no_room(reason):
            raise no_room(path) from error
        raise DirectoryError(
            f"the index in {path} cannot be used: {reason}; delete {path.parent} and make it again"
        ) from error


def is_panic(error: BaseException) -> bool:
    """Return whether the engine gave up, as it does on a damaged file. A panic is no `Exception`."""
    return type(error).__name__ == "PanicException"
