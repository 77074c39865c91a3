"""The numbers of ordered lists, carried as marks through a reader that counts items from one.

HTML may begin a list elsewhere (`start`), count it down (`reversed`), or number an item itself (`value`). `numbered`
writes such numbers into the items, as characters of Unicode's private use; `NUMBER` finds them in the reader's text.
Called by `fyke.export.prose`. Invariant: a page without such lists, or with such characters, stays as it is; work is
linear.
"""

import re
from dataclasses import dataclass, field

MOST_NUMBERS = 20_000  # items of a page
_MARK = "\ue008"
NUMBERS = f"{_MARK}\\d{{1,10}}{_MARK}"
NUMBER = re.compile(f"{_MARK}(\\d{{1,10}}){_MARK}")  # one more digit than is read: it counts on
_OURS = re.compile(f"{_MARK}|&#(?:[xX]0*+[eE]008|0*+57352)")
_ASKS = re.compile(r"<(?:ol\s[^<>]*?(?:start|reversed)|li\s[^<>]*?value)", re.IGNORECASE)
_TAG = re.compile(r"<(?:(/?)([ou]l)|li)(?=[\s/>])([^<>]*+)>", re.IGNORECASE)
_SAID = re.compile(r"(?<![\w-])(?:start|value)\s*+=\s*+[\"']?\s*+(-?\d{1,9})(?!\d)", re.IGNORECASE)
_REVERSED = re.compile(r"(?<![\w-])reversed(?![\w-])", re.IGNORECASE)


@dataclass(slots=True)
class _List:
    """An open list; `items` are where their text begins, and the number that each says."""

    tag: str
    start: int | None
    step: int
    items: list[tuple[int, int | None]] = field(default_factory=list)

    def numbers(self) -> list[tuple[int, int]]:
        """Return where an item needs a number, and which."""
        number = self.start if self.start is not None else 1 if self.step > 0 else len(self.items)
        found = []
        for at, (place, said) in enumerate(self.items, 1):
            number = number if said is None else said
            if self.tag == "ol" and number != at and number >= 0:
                found.append((place, number))
            number += self.step
        return found


def numbered(html: str) -> str:
    """Return `html` with a mark in each item whose number is not its place in the list."""
    if not _ASKS.search(html) or _OURS.search(html):
        return html
    found: list[tuple[int, int]] = []
    lists: list[_List] = []
    for tag in _TAG.finditer(html):
        ends, name, attributes = tag.groups()
        if ends and lists:
            found += lists.pop().numbers()
        elif name and not ends:
            lists.append(_List(name.lower(), _said(attributes), -1 if _REVERSED.search(attributes) else 1))
        elif not name and lists:
            lists[-1].items.append((tag.end(), _said(attributes)))
    found += [number for one in lists for number in one.numbers()]
    out: list[str] = []
    done = 0
    for place, number in sorted(found)[:MOST_NUMBERS]:
        out += html[done:place], f"{_MARK}{number}{_MARK}"
        done = place
    return "".join((*out, html[done:]))


def _said(attributes: str) -> int | None:
    found = _SAID.search(attributes)
    return int(found[1]) if found else None
