"""Which language is a text in?

Asked once a page while indexing. The model of py3langid takes 100 MB and half a second, so it is loaded at the first
question. It reads byte by byte in Python, so it is shown a sample from the middle of the text, where there is less
navigation. It is not asked if the page says its language and resiliparse's guess agrees; that guess costs a tenth and
is right less often. Invariant: an ISO 639-1 code, or the empty string if there is too little to tell; the same for the
same page.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from resiliparse.parse.lang import detect_fast

from fyke.disk.files import writing

SAMPLE_CHARS = 500
LEAST_CHARS = 40  # with fewer the guess is worth less than what the page says of itself


class LanguageGuesser:
    """A guesser of languages."""

    def guess(self, text: str, declared: str = "") -> str:
        """Return the language of `text`; the one that the page `declared` (an HTML `lang`) if there is little text."""
        code = declared.strip().lower().replace("_", "-").partition("-")[0]
        code = code if len(code) == 2 and code.isascii() and code.isalpha() else ""
        if len(text) < LEAST_CHARS:
            return code
        begin = max(0, (len(text) - SAMPLE_CHARS) // 2)
        sample = text[begin : begin + SAMPLE_CHARS]
        return code if code and detect_fast(sample)[0] == code else str(_model().classify(sample)[0])


@lru_cache(maxsize=1)
def _model() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 - heavy, see above

    with writing(Path(os.environ.get("TMPDIR", "/tmp"))):  # the model is unpacked there
        return LanguageIdentifier.from_model_file(MODEL_FILE)
