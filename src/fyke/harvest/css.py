"""The references of a style sheet: `url(…)`, `@import "…"`, and the strings of an `image-set(…)`.

Called by `fyke.harvest.requisites` for style sheets, and for the styles in a page. CSS is read by its tokens (comments,
strings, escapes), never evaluated.

A regular expression holds the interpreter until it has matched, and a stranger's sheet has megabytes. So tokens are
looked for in one piece of the sheet after the other. A token that reaches the end of its piece is read again by itself,
as far as it goes, in runs of characters. The thread may wait between pieces, also of such a run.

Invariant: the size of a piece changes no result.
"""

import re
from collections.abc import Generator, Iterator

from fyke.core.pace import breathe
from fyke.core.urls import MAX_HREF_CHARS

PIECE_CHARS = 1 << 13
_MOST_CHARS = 8 * MAX_HREF_CHARS  # of a reference: an escape has eight

# Possessive throughout: no style sheet may make reading it slow.
_STRING = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
_WORD = r"(?>[^\s\"'()\\]|\\[0-9a-f]{1,6}\s?|\\.)*+"
_UNCLOSED = r"\"(?:[^\"\\\n]|\\.)*+|'(?:[^'\\\n]|\\.)*+"
_TOKEN = (  # also one that the end of the piece cuts
    rf"/\*.*?(?:\*/|\Z)|url\(\s*+(?:({_STRING}|{_WORD})\s*+\)|(?:{_STRING}|{_UNCLOSED}|{_WORD})\\?\s*+\Z)"
    rf"|@import\s*+(?:({_STRING})|(?:{_UNCLOSED})?\\?\Z)|({_STRING})|(?:{_UNCLOSED})\\?"
)
_SET = r"image-set\("  # -webkit-image-set too
_FLAGS = re.IGNORECASE | re.DOTALL
_BEGIN_OF_SET = re.compile(_SET, _FLAGS)
# Brackets are many, and looked for near sets only. Elsewhere their groups match nothing.
_OUTSIDE_SETS = re.compile(rf"{_TOKEN}|((?!))((?!))", _FLAGS)
_AROUND_SETS = re.compile(rf"{_TOKEN}|({_SET}|\(++)|(\)++)", _FLAGS)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|\s)?|(\r\n|.))", re.DOTALL)
_LOOK_BACK = len("image-set")  # characters of a name whose end is in the next piece

# Of each, `PIECE_CHARS` at most: matches nothing where the run ends.
_BLANKS = re.compile(rf"\s{{0,{PIECE_CHARS}}}+")
_OF_COMMENT = re.compile(rf"(?>[^*]|\*(?!/)){{0,{PIECE_CHARS}}}+")
_OF_STRING = re.compile(rf"(?>[^\"\\\n]|\\.){{0,{PIECE_CHARS}}}+", re.DOTALL)
_OF_QUOTED = re.compile(rf"(?>[^'\\\n]|\\.){{0,{PIECE_CHARS}}}+", re.DOTALL)
_OF_WORD = re.compile(rf"(?>[^\s\"'()\\]|\\[0-9a-f]{{1,6}}\s?|\\.){{0,{PIECE_CHARS}}}+", re.IGNORECASE | re.DOTALL)


def css_references(text: str, piece_chars: int = PIECE_CHARS) -> Iterator[str]:
    """Yield the URLs in CSS, as written but for escapes; `piece_chars` are looked at without a break."""
    if "(" in text or "@import" in text:
        for raw in _StyleSheet(text, max(piece_chars, 2 * _LOOK_BACK)).references():
            raw = raw[1:-1] if raw[0] in "'\"" else raw
            if 0 < len(raw) <= _MOST_CHARS:
                yield _ESCAPE.sub(_unescaped, raw)


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1], 16)
        return "\ufffd" if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)
    return "" if match[2] in "\r\n\f" else match[2]


class _StyleSheet:
    """A style sheet while it is read."""

    def __init__(self, text: str, piece_chars: int) -> None:
        self._text = text
        self._piece_chars = piece_chars
        self._at = 0  # what is before it was read
        self._brackets = 0  # that are open
        self._set_at = 0  # the number of the bracket with which an image set began

    def references(self) -> Iterator[str]:
        """Yield what the sheet refers to, as written, with quotes."""
        while self._at < len(self._text):
            breathe()
            cut_at = yield from self._references_of_piece(min(self._at + self._piece_chars, len(self._text)))
            if cut_at >= 0 and (raw := self._read_long(cut_at)):
                yield raw

    def _references_of_piece(self, end: int) -> Generator[str, None, int]:
        """Yield the references before `end`. Returns where the token begins that reaches it; -1 if none does."""
        near = self._set_at or _BEGIN_OF_SET.search(self._text, self._at, end)
        for match in (_AROUND_SETS if near else _OUTSIDE_SETS).finditer(self._text, self._at, end):
            url, imported, string, opens, closes = match.groups("")
            self._at = match.end()
            if opens or closes:
                self._count(opens, closes)
            elif self._at == end < len(self._text):
                return match.start()
            elif url or imported or (string and self._is_in_set):
                yield url or imported or string
        self._at = end if end == len(self._text) else max(self._at, end - _LOOK_BACK)
        return -1

    @property
    def _is_in_set(self) -> bool:
        return 0 < self._set_at == self._brackets

    def _count(self, opens: str, closes: str) -> None:
        """Count brackets."""
        self._brackets = max(0, self._brackets + opens.count("(") - len(closes))
        if opens[:1] not in ("", "(") and not self._set_at:
            self._set_at = self._brackets
        elif self._brackets < self._set_at:
            self._set_at = 0

    # --- a token longer than a piece, or cut by its end

    def _read_long(self, at: int) -> str:
        """Read the token at `at` as far as it goes; return the reference that it is, if any."""
        first = self._text[at]
        if first == "/":
            self._at = self._end_of(_OF_COMMENT, at + len("/*")) + len("*/")
            return ""
        if first in "'\"":
            self._at, is_closed = self._end_of_string(at)
            return self._text[at : self._at] if is_closed and self._is_in_set else ""
        if first == "@":
            self._at = begin = self._end_of(_BLANKS, at + len("@import"))
            end, is_closed = self._end_of_string(begin)
            self._at = end if is_closed else begin
            return self._text[begin:end] if is_closed else ""
        return self._read_address(at + len("url("))

    def _read_address(self, at: int) -> str:
        begin = self._end_of(_BLANKS, at)
        end, is_whole = self._end_of_string(begin)
        if end == begin:
            end, is_whole = self._end_of(_OF_WORD, begin), True
        bracket = self._end_of(_BLANKS, end)
        if is_whole and self._text[bracket : bracket + 1] == ")":
            self._at = bracket + 1
            return self._text[begin:end]
        self._at = at - len("(")  # the bracket counts, and no more is known
        return ""

    def _end_of_string(self, begin: int) -> tuple[int, bool]:
        """Return where the string ends that begins at `begin`, and whether it is closed; `begin` if there is none."""
        quote = self._text[begin : begin + 1]
        if quote not in ("'", '"'):
            return begin, False
        end = self._end_of(_OF_STRING if quote == '"' else _OF_QUOTED, begin + 1)
        is_closed = self._text[end : end + 1] == quote
        return end + is_closed, is_closed

    def _end_of(self, run: re.Pattern[str], at: int) -> int:
        """Return where a run ends that begins at `at`."""
        while (piece := run.match(self._text, at)) and piece.end() > at:
            breathe()
            at = piece.end()
        return at
