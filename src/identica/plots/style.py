"""Shared style of the plots: colours, Axes and panels, legends, ticks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from identica._validate import instance
from identica.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

# Okabe & Ito's palette for the colour-blind, those first that stand out on white and on black
BLUE, ORANGE = "#0072b2", "#d55e00"
COLOURS = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GREY = "#808080"  # of lines to compare with
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")
COLUMNS = 5  # panels side by side


def along() -> Colormap:
    """Colours of a quantity: lightness grows with it, and neither end fades into black or white."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["viridis"](np.linspace(0.2, 0.92, 256)), "along")


def around() -> Colormap:
    """Colours of an angle, which end as they begin; none is white or black."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    colours = colormaps["twilight"](np.linspace(0, 1, 256))[:, :3]
    return ListedColormap(0.2 + 0.62 * colours, "around")


def date_ticks() -> tuple[Any, Any]:
    """A locator and a formatter for dates."""
    from matplotlib import dates

    known: Any = dates  # which has no types
    locator = known.AutoDateLocator()
    return locator, known.ConciseDateFormatter(locator)


def ink() -> Any:
    """The colour of text in the present style."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def one_axes(ax: Axes | None, *, solid: bool = False) -> Axes:
    """The Axes to draw into: those given, or those of a new figure; with three dimensions if `solid`."""
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot as plt

        projection = {"projection": "3d"} if solid else {}
        _, ax = plt.subplots(layout="constrained", subplot_kw=projection)
    instance("ax", ax, Axes, "a matplotlib Axes")
    if solid != (ax.name == "3d"):
        wanted = "of projection '3d' for dims=3" if solid else "flat, not of projection '3d'"
        raise InputError(f"ax must be {wanted}")
    return ax


def many_axes(ax: Any, number: int) -> list[Axes]:
    """As many Axes to draw into: those given (one of them, or several), or panels of a new figure."""
    if ax is None:
        from matplotlib import pyplot as plt

        columns = min(COLUMNS, number)
        rows = -(-number // columns)
        size = (2.1 * columns + 0.6, 2.0 * rows + 0.4) if number > 1 else None
        _, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
        for empty in grid.flat[number:]:
            empty.set_visible(False)
        return list(grid.flat[:number])
    if isinstance(ax, np.ndarray):
        ax = list(ax.flat)
    given = list(ax) if isinstance(ax, (list, tuple)) else [ax]
    if len(given) != number:
        raise InputError(f"ax must be {number} Axes, one for each column, got {len(given)}")
    return [one_axes(each) for each in given]


def returned(axes: Sequence[Axes]) -> Any:
    """What a function of several panels returns: the Axes if it is one, else an array of them."""
    if len(axes) == 1:
        return axes[0]
    array = np.empty(len(axes), dtype=object)
    array[:] = axes
    return array


def few_ticks(ax: Axes) -> None:
    """A few ticks, at least two, on both axes of a small panel."""
    from matplotlib.ticker import MaxNLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(3, min_n_ticks=2))


def legend(ax: Axes, at: float = 1.0, title: str | None = None, grown: float = 1.0) -> None:
    """A legend to the right of the Axes, where it covers nothing.

    Args:
        at: where it begins, in widths of the Axes.
        grown: how much larger its markers are than those drawn.
    """
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (at, 1.0)}
    ax.legend(frameon=False, borderaxespad=0.2, markerscale=grown, title=title, **place)
