"""Figures as SVG inside a page: the shared look, in the page's own colours and fonts.

`fyke.report.charts` uses it. Text stays text and colours become the variables of the page's style sheet, so a figure is
dark if the page is. Invariant: nothing in the SVG points out of it, and a label is never read as mathematics.
"""

import io
import re

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fyke.plots import BLUE, FAINT, GREEN, GRID, INK, ORANGE, PURPLE, RED, dress

WIDTH_IN, HEIGHT_IN = 4.7, 3.0

_VARIABLES = {
    INK: "ink", FAINT: "faint", GRID: "grid", BLUE: "blue", ORANGE: "orange", GREEN: "green", RED: "red",
    PURPLE: "purple", "#ffffff": "paper",
}  # fmt: skip
_STYLE = re.compile(r'style="[^"]*"')
_COLOUR = re.compile("|".join(_VARIABLES))
_METADATA = re.compile(r"<metadata>.*?</metadata>|<title>.*?</title>", re.DOTALL)
_SIZE = re.compile(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"|(<svg[^>]*?) height="[^"]*" width="[^"]*"')


def canvas(
    across: str, up: str, *, left_in: float = 0.68, height_in: float = HEIGHT_IN, top_in: float = 0.1
) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes; the page adds the title."""
    figure = Figure(figsize=(WIDTH_IN, height_in), facecolor="none")
    bottom_in, right_in = (0.62 if across else 0.38), 0.22
    axes = figure.add_axes(
        (
            left_in / WIDTH_IN,
            bottom_in / height_in,
            1 - (left_in + right_in) / WIDTH_IN,
            1 - (bottom_in + top_in) / height_in,
        )
    )
    axes.set_facecolor("none")
    dress(axes, "", across, up)
    return figure, axes


def svg(figure: Figure, name: str) -> str:
    """Return `figure` as an SVG element; `name` keeps its ids distinct from those of others."""
    drawn = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "text.parse_math": False}):
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = drawn.getvalue()
    text = _METADATA.sub("", text[text.index("<svg") :])
    text = _STYLE.sub(lambda style: _COLOUR.sub(lambda colour: f"var(--{_VARIABLES[colour[0]]})", style[0]), text)
    return _SIZE.sub(lambda found: found[1] or found[2], text, count=1)
