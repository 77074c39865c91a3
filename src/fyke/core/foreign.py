"""Which elements of a tree are HTML? Within `<svg>` and `<math>`, elements of the same names are not.

Called where a `<base>` is read: only one that is HTML says what links are relative to (HTML, 2.4.1, "document base
URL"). lexbor knows, but tells it nowhere.

Invariant: each element is looked at once for all questions, so that they take linear time.
"""

from selectolax.lexbor import LexborNode

_HTML, _SVG, _MATH, _ANNOTATION = "", "svg", "math", "annotation-xml"  # what an element holds
_IN_SVG = frozenset({"foreignobject", "desc", "title"})  # hold HTML (HTML, 13.2.6, "integration point")
_IN_MATH = frozenset({"mi", "mo", "mn", "ms", "mtext"})
_ENCODINGS = frozenset({"text/html", "application/xhtml+xml"})


class ForeignParts:
    """The images and formulas of one tree, as far as was asked: what each element around them holds."""

    def __init__(self) -> None:
        self._held: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"ForeignParts({len(self._held)} elements)"

    def is_html(self, node: LexborNode) -> bool:
        """Return whether an element that is neither `<svg>` nor `<math>` is HTML."""
        parent = node.parent
        around = []
        while parent is not None and parent.mem_id not in self._held:
            around.append(parent)
            parent = parent.parent
        held = _HTML if parent is None else self._held[parent.mem_id]
        for element in reversed(around):
            held = self._held[element.mem_id] = _held_by(element, held)
        return held == _HTML


def _held_by(element: LexborNode, around: str) -> str:
    """Return what `element` holds, which is in what holds `around`."""
    tag = (element.tag or "").lower()
    if around == _HTML:
        return tag if tag in (_SVG, _MATH) else _HTML
    if around == _SVG or (around == _ANNOTATION and tag == _SVG):
        return _HTML if tag in _IN_SVG else _SVG
    if tag == _ANNOTATION:
        return _HTML if (element.attributes.get("encoding") or "").lower() in _ENCODINGS else _ANNOTATION
    return _HTML if tag in _IN_MATH else _MATH
