"""How every picture of this project looks, and how it is saved.

For the rooms that draw (`fyke.lab.plan.figure` and others that show curves); they import it only when a picture is
asked for, because matplotlib takes a while to load. One look: black on white, few lines, a faint grid, colours that the
colour-blind tell apart, and each curve named at its end instead of in a legend. Invariant: nothing global is touched,
neither pyplot nor matplotlib's settings, and the same figure is saved as the same bytes.
"""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from fyke.core.errors import ConfigurationError

INK, FAINT, GRID = "#22272b", "#6b747b", "#e4e7e9"
BLUE, ORANGE, GREEN, RED, PURPLE = "#0067a5", "#d1650f", "#00856a", "#b8293d", "#7d5ba6"  # in the order to use them
FORMATS = ("png", "svg", "pdf")
PIXELS_PER_INCH = 160
NAME_BELOW_PT, LINE_PT = 9, 14  # how far under its point a figure stands, and how far from the next

Floats = NDArray[np.float64]

_UNDATED: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def panels(columns: int, title: str, subtitle: str, *, width_in: float, height_in: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with `columns` panels side by side, under a title that says what is to be seen."""
    figure = Figure(figsize=(width_in, height_in), facecolor="white")
    margin_in, top_in, gap = 0.75, 1.5, 0.36
    grid = figure.add_gridspec(
        1,
        columns,
        left=margin_in / width_in,
        right=1 - margin_in / width_in,
        bottom=0.7 / height_in,
        top=1 - top_in / height_in,
        wspace=gap,
    )
    left = 0.3 / width_in
    figure.text(left, 1 - 0.25 / height_in, title, fontsize=15, fontweight="bold", color=INK, va="top")
    figure.text(left, 1 - 0.6 / height_in, subtitle, fontsize=10, color=FAINT, va="top")
    return figure, [figure.add_subplot(grid[0, column]) for column in range(columns)]


def dress(axes: Axes, title: str, across: str, up: str) -> None:
    """Give `axes` the look; `title` stands over them, `across` and `up` say what is measured and in what unit."""
    axes.set_title(title, loc="left", fontsize=11.5, fontweight="bold", color=INK, pad=24)
    axes.set_xlabel(across, fontsize=10, color=FAINT, labelpad=6)
    axes.set_ylabel(up, fontsize=10, color=FAINT, labelpad=6)
    axes.grid(which="major", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", labelsize=9.5, labelcolor=INK, color=GRID, length=0, pad=5)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(FAINT)


def name_curve(axes: Axes, x: Floats, y: Floats, name: str, colour: str, *, at: float) -> None:
    """Write `name` along the curve (`x`, `y`), so that it ends at the part `at` of it. Call it when all limits are
    set."""
    end = min(len(x) - 1, round(at * (len(x) - 1)))
    begin = max(0, end - max(1, len(x) // 20))
    (left, low), (right, high) = axes.transData.transform([(x[begin], y[begin]), (x[end], y[end])])
    angle = math.degrees(math.atan2(high - low, right - left))
    note(
        axes, name, (x[end], y[end]), (-5 * math.sin(math.radians(angle)), 5 * math.cos(math.radians(angle))), colour,
        bold=True, ha="right", va="bottom", rotation=angle, rotation_mode="anchor",
    )  # fmt: skip


def mark_points(axes: Axes, x: float, points: Sequence[tuple[float, str, str]]) -> None:
    """Draw a dot at `x` for each height, name and colour, and the names to the right, none over another. Call it when
    all limits are set."""
    points_per_pixel = 72 / axes.figure.dpi
    free_pt = -math.inf
    for y, name, colour in sorted(points, key=lambda point: point[0]):
        axes.plot([x], [y], "o", color=colour, markersize=7.5, markeredgecolor="white", markeredgewidth=1.2, zorder=4)
        y_pt = float(axes.transData.transform((x, y))[1]) * points_per_pixel
        name_pt = max(y_pt - NAME_BELOW_PT, free_pt)
        note(axes, name, (x, y), (8, name_pt - y_pt), colour, ha="left", va="center", zorder=5)
        free_pt = name_pt + LINE_PT


def note(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    offset_pt: tuple[float, float],
    colour: str,
    *,
    bold: bool = False,
    **how: Any,
) -> None:
    """Write `text` near the point `at`, white around it so that it can be read over lines; `how` as matplotlib's."""
    axes.annotate(
        text, at, xytext=offset_pt, textcoords="offset points", color=colour, fontsize=10,
        fontweight="bold" if bold else "normal", path_effects=[withStroke(linewidth=3, foreground="white")], **how,
    )  # fmt: skip


def extension(path: Path) -> str:
    """Return the format that `path` asks for by its ending. Raises ConfigurationError for one that cannot be
    written."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ConfigurationError(f"{path}: not a kind of picture Fyke writes; end the name in .png, .svg or .pdf")
    return kind


def save(figure: Figure, path: Path) -> None:
    """Write `figure` to `path`, in the format of its ending. Raises ConfigurationError."""
    kind = extension(path)
    drawn = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "fyke"}):  # for this save alone
        figure.savefig(drawn, format=kind, dpi=PIXELS_PER_INCH, metadata=_UNDATED[kind])
    try:
        path.write_bytes(drawn.getvalue())
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}; name a file that can be written") from None
