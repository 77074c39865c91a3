"""Numbers as people write them.

`fields` reads them from the texts of pages. `1,299.00`, `1.299,00`, `1 299,00` and `1'299.00` are the same number.

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


def decimal(text: str) -> str:
    """Return the first number in `text` with a point before its decimals; empty if there is none.

    Equal marks part thousands, and another one behind them parts decimals. A single comma before three digits parts
    thousands, where thousands may be parted; a single point parts decimals, unless a dash stands for them: 1.299,–.
    """
    match = _NUMBER.search(text)
    if match is None:
        return ""
    if (scientific := _WITH_EXPONENT.match(text, match.start())) is not None:
        return scientific[0].replace("−", "-").replace(",", ".")
    sign, digits = match["sign"].replace("−", "-"), re.sub(rf"[{_BLANKS}]", "", match["digits"])
    marks = re.sub(r"\d", "", digits)
    if _PARTED.fullmatch(digits) and (marks != "." or match["dash"]):
        return sign + re.sub(r"\D", "", digits)
    whole, mark, part = digits.rpartition(marks[-1:] or ".")
    if not mark:
        return sign + digits
    if mark in ".," and mark not in whole and (len(marks) == 1 or _PARTED.fullmatch(whole)):
        return sign + re.sub(r"\D", "", whole) + "." + part
    return ""
