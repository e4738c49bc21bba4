"""Scatter plots of codes, plots of recovered against true factors, and histograms of codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_array, as_matrix, count, flag, instance, members, one_of
from identica.errors import InputError
from identica.metrics import match
from identica.metrics.standardise import Matrix, factors_and_codes
from identica.plots.style import (
    BLUE,
    COLOURS,
    MARKERS,
    along,
    around,
    date_ticks,
    few_ticks,
    ink,
    legend,
    many_axes,
    one_axes,
    returned,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALIGNED = ("permutation", "linear")
BINS = 40  # at most, and 40 values for each
MOST = 1e100  # beyond, projections overflow
MOST_CLASSES = len(COLOURS) * len(MARKERS)


def codes(
    h: Any,
    label: Any = None,
    *,
    name: str | None = None,
    cyclic: bool = False,
    dims: int = 2,
    ax: Axes | None = None,
) -> Axes:
    """Scatter plot of codes in two or three dimensions, coloured by a label or by time.

    If there are more codes than dimensions, their principal components are shown; a single code is plotted
    against the row number. Dates and continuous labels have a colour bar, classes have a legend.

    Args:
        h: codes, N×n.
        label: N numbers, dates or classes, or "time" for the number of the row; one colour by default.
        name: name of the label, with its unit.
        cyclic: the label is an angle in degrees, from −180 to 180.
        dims: 2 or 3.
        ax: Axes to draw into, of projection "3d" for three dimensions; a new figure by default.

    >>> ax = codes([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ["a", "b", "a"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    points = as_matrix("h", h)
    solid = count("dims", dims, at_least=2, at_most=3) == 3
    flag("cyclic", cyclic)
    instance("name", name, (str, NoneType), "text")
    colour = _label(label, len(points))
    dates = False
    if colour is not None and colour.dtype.kind == "M":
        dates = True
        colour = (colour - np.datetime64(0, "s")) / np.timedelta64(1, "D")  # as matplotlib counts
    if points.shape[1] < dims and (solid or points.shape[1] > 1):
        raise InputError(f"dims must be at most the number of codes, {points.shape[1]}, got {dims}")
    titles = [f"code {k + 1}" for k in range(dims)]
    if points.shape[1] == 1:
        points, titles = np.c_[np.arange(len(points)), points], ["row", "code 1"]
    elif points.shape[1] > dims:
        middle = points - points.mean(axis=0)
        points = middle @ np.linalg.svd(middle, full_matrices=False)[2][:dims].T
        titles = [f"principal component {k + 1}" for k in range(dims)]
    if solid and np.abs(points).max() > MOST:
        raise InputError(f"h must be at most {MOST:g} to be drawn in three dimensions")
    ax = one_axes(ax, solid=solid)
    scatter: Any = partial(ax.scatter, s=6, linewidths=0, rasterized=True)
    if colour is None:
        scatter(*points.T, color=BLUE)
    elif colour.dtype.kind == "f":
        scale = {"vmin": -180.0, "vmax": 180.0} if cyclic else {}
        shown = scatter(*points.T, c=colour, cmap=around() if cyclic else along(), **scale)
        said = name or ("row" if isinstance(label, str) else "" if dates else "label")
        figure = ax.get_figure()
        assert figure is not None
        place: dict[str, Any] = {"shrink": 0.75, "pad": 0.12} if solid else {"shrink": 0.9}
        bar = figure.colorbar(shown, ax=ax, label=said, **place)
        bar.outline.set_visible(False)
        if dates:
            bar.locator, bar.formatter = date_ticks()
            bar.update_ticks()
        if cyclic:
            bar.set_ticks([-180, -90, 0, 90, 180])
    else:
        classes = np.unique(colour)
        for number, each in enumerate(classes):
            look = COLOURS[number % len(COLOURS)], MARKERS[number // len(COLOURS)]
            some = points[colour == each]
            scatter(*some.T, color=look[0], marker=look[1], label=str(each))
        legend(ax, 1.15 if solid else 1.0, name, grown=2.5)
    for way, title in zip("xyz", titles, strict=False):
        getattr(ax, f"set_{way}label")(title)
        if solid:
            getattr(ax, f"{way}axis").pane.set_visible(False)  # light grey, whatever the style
    if titles[0] != "row":
        ax.set_aspect("equal", adjustable="box" if solid else "datalim")
    ax.locator_params(nbins=4)
    return ax


def _label(label: Any, rows: int) -> NDArray[Any] | None:
    """Numbers as floats, classes as they are, or None."""
    if label is None:
        return None
    if isinstance(label, str):
        one_of("label", label, ["time"])
        return np.arange(rows, dtype=float)
    labels = as_array("label", label)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (rows,):
        raise InputError(f"label must have one value for each of {rows} rows, got {labels.shape}")
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    if labels.dtype.kind == "M":
        if np.isnat(labels).any():
            raise InputError("label must hold a date for each row, but some are missing")
        return labels
    number = labels.dtype.kind in "fiu"
    if number and (labels.dtype.kind == "f" or len(np.unique(labels)) > len(COLOURS)):
        return as_matrix("label", labels)[:, 0]
    if len(classes := np.unique(labels)) > MOST_CLASSES:
        raise InputError(
            f"label must be numbers, dates (of pandas or NumPy) or at most {MOST_CLASSES} classes, got "
            f"{len(classes)} classes such as {classes[0]!r}"
        )
    return labels


def recovered(
    z: Any,
    h: Any,
    *,
    up_to: str | None = "permutation",
    names: Sequence[str] | None = None,
    label: str = "recovered",
    ax: Any = None,
) -> Any:
    """True factors against recovered ones, a panel for each factor; the line is where they are equal.

    Args:
        z: true factors, N×d.
        h: codes, N×k.
        up_to: what the codes are aligned up to: "permutation" (each factor's own code, in its sign
            and scale) or "linear" (the best linear map of all codes); None draws the d codes as
            they are.
        names: of the factors.
        label: of the vertical axis.
        ax: one Axes for each factor; panels of a new figure by default.

    Returns:
        The Axes, or an array of them where there are several factors.

    >>> z = np.random.default_rng(0).normal(size=(100, 1))
    >>> ax = recovered(z, -2 * z)
    >>> bool(np.allclose(ax.collections[0].get_offsets(), np.c_[z, z]))
    True
    """
    factors, codes = factors_and_codes(z, h)
    d = factors.shape[1]
    if up_to is not None:
        codes = aligned(factors, codes, up_to)
    elif codes.shape[1] != d:
        raise InputError(f"h must have {d} columns, as z, if up_to is None; got {codes.shape[1]}")
    instance("label", label, str, "text")
    titles = _names(names, d, "factor")
    panels = many_axes(ax, d)
    for k, panel in enumerate(panels):
        panel.scatter(
            factors[:, k], codes[:, k], s=4, alpha=0.4, color=BLUE, linewidths=0, rasterized=True
        )
        ends = [factors[:, k].min(), factors[:, k].max()]
        panel.plot(ends, ends, color=ink(), lw=0.8)
        panel.set_title(titles[k])
        few_ticks(panel)
    _share_labels(panels, "true", label)
    return returned(panels)


def aligned(z: Matrix, h: Matrix, up_to: str) -> Matrix:
    """Codes (N×k) after the best map of a kind to the factors (N×d), N×d.

    >>> z = np.random.default_rng(0).normal(size=(100, 2))
    >>> bool(np.allclose(aligned(z, 3 - z[:, ::-1], "permutation"), z))
    True
    """
    if one_of("up_to", up_to, ALIGNED) == "linear":
        design = np.c_[h, np.ones(len(h))]
        return np.asarray(design @ np.linalg.lstsq(design, z)[0])
    columns = match(z, h).columns
    return rescaled(z, np.where(columns < 0, 0.0, h[:, columns]))  # −1: no code is left


def rescaled(z: Matrix, h: Matrix) -> Matrix:
    """Each code after the shift, sign and scale that bring it nearest to its factor, N×d."""
    away = h - h.mean(0)
    slope = ((z - z.mean(0)) * away).mean(0) / np.maximum(h.var(0), 1e-12)
    return away * slope + z.mean(0)


def density(h: Any, *, names: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Histogram of each code, normalised to area 1.

    Args:
        h: one code (N) or several (N×n).
        names: of the codes.
        ax: one Axes for each code; panels of a new figure by default.

    Returns:
        The Axes, or an array of them where there are several codes.

    >>> density([0.0, 0.5, 1.0]).get_ylabel()
    'density'
    """
    codes = as_matrix("h", h)
    titles = _names(names, codes.shape[1], "code")
    panels = many_axes(ax, codes.shape[1])
    for values, panel, title in zip(codes.T, panels, titles, strict=True):
        edges = np.histogram_bin_edges(values, min(BINS, max(5, len(values) // 40)))
        panel.hist(values, bins=list(edges), density=True, color=BLUE, alpha=0.8)
        panel.set_title(title)
        few_ticks(panel)
    _share_labels(panels, "value", "density")
    return returned(panels)


def _names(names: Sequence[str] | None, number: int, what: str) -> list[str]:
    if names is None:
        return [f"{what} {k + 1}" for k in range(number)]
    found = [str(name) for name in members("names", names, "a list of names")]
    if len(found) != number:
        raise InputError(f"names must be {number}, one for each {what}, got {len(found)}")
    return found


def _share_labels(panels: Sequence[Axes], x: str, y: str) -> None:
    """Labels at the left and at the bottom of a grid of panels, once for each row and column."""
    for panel in panels:
        place = panel.get_subplotspec()
        if len(panels) == 1 or place is None or place.is_first_col():
            panel.set_ylabel(y)
        last = place is None or place.is_last_row()
        below = place is not None and any(
            (other := each.get_subplotspec()) is not None
            and other.colspan == place.colspan
            and other.rowspan.start > place.rowspan.start
            for each in panels
        )
        if len(panels) == 1 or last or not below:
            panel.set_xlabel(x)
