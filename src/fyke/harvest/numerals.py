"""Numbers as people write them.

`fields` reads them from the texts of pages. `1,299.00`, `1.299,00`, `1 299,00` and `1'299.00` are the same number. What
`1.299` alone is, the language of the page decides: in some a point parts thousands, and a comma decimals.

Invariant: a number is read whole or not at all. Marks between digits that make no number, as in a date, an address or
a version, make it none.
"""

import re

_BLANKS = " \u00a0\u2000-\u200a\u202f\u205f\u3000"  # they part only thousands, never two numbers
_NUMBER = re.compile(  # of digits no more than a float may have
    rf"(?P<sign>[-+−]?)(?P<digits>"
    rf"[1-9]\d{{0,2}}([{_BLANKS}])\d{{3}}(?:\3\d{{3}}){{0,8}}(?![{_BLANKS}]?\d)(?:[.,]\d{{1,20}})?(?![.,'’]\d)"
    rf"|(?:(?<![\w.,])[.,])?\d{{1,400}}(?:[.,'’]\d{{1,400}})*)"
    rf"(?P<dash>[{_BLANKS}]?[.,][-–—−]{{1,2}}(?![-–—−\w]))?"
)
_WITH_EXPONENT = re.compile(r"(?<![\w.,])[-+−]?\d{1,40}(?:[.,]\d{1,20})?[eE][-+−]?\d{1,3}(?!\w|[.,]\d)")
_PARTED = re.compile(r"[1-9]\d{0,2}([.,'’])\d{3}(?:\1\d{3}){0,9}|[1-9]\d?(?:,\d\d){1,9},\d{3}")  # also as in India
_POINTS_PART_THOUSANDS = frozenset(  # by CLDR
    {
        "bs", "ca", "da", "de", "el", "es", "eu", "gl", "hr", "id", "is", "it", "mk", "nl", "pt", "ro", "sl", "sr",
        "tr", "vi",
    }
)  # fmt: skip
_POINTS_PART_DECIMALS = frozenset(  # none the less, in these places
    {"ch", "cu", "do", "gt", "hn", "li", "mx", "ni", "pa", "pe", "pr", "sv", "us", "419"}
)
_SUBTAG = re.compile(r"[^\W_]{1,8}")  # of a language tag (RFC 5646)
LANGUAGE_CHARS = 64


def parts_by_points(language: str) -> bool:
    """Return whether points part thousands in the `language` that a page declares; not if it declares none."""
    subtags = _SUBTAG.findall(language[:LANGUAGE_CHARS].lower())
    return not _POINTS_PART_THOUSANDS.isdisjoint(subtags[:1]) and _POINTS_PART_DECIMALS.isdisjoint(subtags[1:])


def decimal(text: str, *, by_points: bool = False) -> str:
    """Return the first number in `text` with a point before its decimals; empty if there is none.

    Equal marks part thousands, and another one behind them parts decimals. A single comma before three digits parts
    thousands, where thousands may be parted; a single point parts decimals, unless a dash stands for them: 1.299,–.
    With `by_points` it is the other way round: a single point parts thousands, and a single comma decimals.
    """
    match = _NUMBER.search(text)
    if match is None:
        return ""
    if (scientific := _WITH_EXPONENT.match(text, match.start())) is not None:
        return scientific[0].replace("−", "-").replace(",", ".")
    sign, digits = match["sign"].replace("−", "-"), re.sub(rf"[{_BLANKS}]", "", match["digits"])
    marks = re.sub(r"\d", "", digits)
    if _PARTED.fullmatch(digits) and (marks != ("," if by_points else ".") or match["dash"]):
        return sign + re.sub(r"\D", "", digits)
    whole, mark, part = digits.rpartition(marks[-1:] or ".")
    if not mark:
        return sign + digits
    if mark in ".," and mark not in whole and (len(marks) == 1 or _PARTED.fullmatch(whole)):
        return sign + re.sub(r"\D", "", whole) + "." + part
    return ""
