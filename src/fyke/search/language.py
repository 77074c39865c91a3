"""Which language is a text in, and does its address name another?

Asked once a page while indexing, and by exports. The model of py3langid takes 100 MB and half a second, so it is loaded
at the first question. It reads byte by byte in Python, so it is shown a sample from the middle of the text, where there
is less navigation. It is not asked if the page says its language and resiliparse's guess agrees; that guess costs a
tenth and is right less often. If it is not sure, the page is believed. Invariant: an ISO 639-1 code, or the empty
string if there is too little to tell; the same for the same words, however they are divided into lines.
"""

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from resiliparse.parse.lang import detect_fast

from fyke.core.urls import split
from fyke.disk.files import writing
from fyke.search.lines import one_line

READ_CHARS = 20_000
SAMPLE_CHARS = 500  # from the middle of what is read
LEAST_CHARS = 40  # with fewer the guess is worth less than what the page says of itself
SURE = 0.8  # the confidence from which a guess is worth more than that; a list in several languages has 0.3
_CODES = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en
    eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv
    ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne
    ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st
    su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
ISO_639_1 = frozenset(_CODES.split())
_NAME = re.compile(r"([a-z]{2})(?:[-_][a-z]{2,4})?", re.IGNORECASE)
_IN_QUERY = re.compile(rf"(?:^|&)(?:lang|language|locale|hl)={_NAME.pattern}(?=&|$)", re.IGNORECASE)
_PART_OF = {  # macrolanguages (ISO 639-3) of what has no code of its own
    "ary": "ar", "arz": "ar", "cmn": "zh", "fuv": "ff", "gug": "gn", "sdh": "ku", "uzs": "uz", "wuu": "zh", "yue": "zh",
}  # fmt: skip


class LanguageGuesser:
    """A guesser of languages."""

    def guess(self, text: str, declared: str = "") -> str:
        """Return the language of `text`. If that is not sure, it is the one that the page `declared` (an HTML
        `lang`)."""
        code = _code(declared.strip().lower().replace("_", "-").partition("-")[0])
        text = one_line(text, READ_CHARS)
        if len(text) < LEAST_CHARS:
            return code
        begin = max(0, (len(text) - SAMPLE_CHARS) // 2)
        sample = text[begin : begin + SAMPLE_CHARS]
        if code and detect_fast(sample)[0] == code:
            return code
        guessed, confidence = _model().classify(sample)
        return code if code and confidence < SURE else _code(str(guessed)) or code


def is_untranslated(url: str, language: str) -> bool:
    """Return whether the address of a page in `language` names other languages alone: in a folder (`/de/`, `/de-AT/`),
    in the first name of the host, or in the query (`?lang=de`)."""
    parts = split(url)
    path, _, query = parts.target.partition("?")
    named = {
        match[1].lower()
        for name in (parts.host.partition(".")[0], *path.split("/")[:-1])
        if (match := _NAME.fullmatch(name))
    }
    named |= {match[1].lower() for match in _IN_QUERY.finditer(query)}
    return bool(language) and language not in named and not named.isdisjoint(ISO_639_1)


def _code(name: str) -> str:
    """Return the ISO 639-1 code of a language or its macrolanguage, empty if there is none."""
    name = _PART_OF.get(name, name)
    return name if name in ISO_639_1 else ""


@lru_cache(maxsize=1)
def _model() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 - heavy, see above

    with writing(Path(os.environ.get("TMPDIR", "/tmp"))):  # the model is unpacked there
        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
