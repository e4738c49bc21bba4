"""Plots of matrices: correlations of factors and codes, and agreement of restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_matrix, instance, one_of
from identica.errors import InputError
from identica.metrics import agreement, correlation_matrix
from identica.plots.style import one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERED = 8  # rows and columns up to which numbers are written into the cells
UP_TO = {"permutation": "code by code (MCC)", "linear": "up to a linear map (R²)"}


def correlations(z: Any, h: Any = None, *, ax: Axes | None = None) -> Axes:
    """Correlation of every factor with every code, from −1 to 1.

    One strong entry in each row and column says that each factor has a code of its own; several in a row say
    that codes are mixtures.

    Args:
        z: true factors, N×d; or a diagnosis with true factors, without h.
        h: codes, N×k.
        ax: where to draw; a new figure by default.

    >>> ax = correlations([[0, 0], [0, 1], [1, 0], [1, 1]], [[0, 3], [0, 2], [-1, 3], [-1, 2]])
    >>> ax.images[0].get_array().tolist()
    [[-1.0, 0.0], [0.0, -1.0]]
    """
    if h is None:
        truth = getattr(z, "truth", None)
        if truth is None:
            raise InputError("h must be the codes, unless z is a diagnosis with true factors")
        values = as_matrix("z", truth.matrix, rows=1)
    else:
        values = correlation_matrix(z, h)
    ax = one_axes(ax)
    _matrix(ax, values, low=-1.0, colours="RdBu_r", digits=2)
    _number(ax, values.shape)
    ax.set(xlabel="code", ylabel="factor")
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(ax.images[0], ax=ax, shrink=0.85, label="correlation")
    bar.outline.set_visible(False)
    return ax


def restarts(source: Any, up_to: str = "permutation", *, ax: Axes | None = None) -> Axes:
    """Agreement of fits that started differently, 1 for the same codes.

    Args:
        source: a diagnosis, or a list of codes of the same rows, N×n each.
        up_to: "permutation" (MCC, code by code) or "linear" (R², up to a linear map).
        ax: where to draw; a new figure by default.

    >>> h = np.random.default_rng(0).normal(size=(100, 2))
    >>> restarts([h, -h[:, ::-1]]).images[0].get_array().round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    one_of("up_to", up_to, UP_TO)
    matrices = getattr(source, "restarts", source)
    values = getattr(matrices, up_to, None)
    if values is None:
        values = _agreement(source, up_to)
    ax = one_axes(ax)
    _matrix(ax, values, low=0.0, colours="Blues", digits=3)
    ticks = range(len(values)), [f"fit {i + 1}" for i in range(len(values))]
    ax.set_xticks(*ticks)
    ax.set_yticks(*ticks)
    ax.set_title(f"agreement {UP_TO[up_to]}")
    return ax


def _agreement(source: Any, up_to: str) -> NDArray[np.float64]:
    instance("source", source, (Sequence, np.ndarray), "a diagnosis or a list of codes")
    if len(source) < 2:
        raise InputError(f"source must hold at least 2 codes to compare, got {len(source)}")
    kind = "affine" if up_to == "linear" else up_to
    values = np.eye(len(source))
    for i, j in zip(*np.triu_indices(len(source), 1), strict=True):
        values[i, j] = values[j, i] = agreement([source[i], source[j]], kind)
    return values


def _matrix(
    ax: Axes, values: NDArray[np.float64], *, low: float, colours: str, digits: int
) -> None:
    """A matrix as an image, with its numbers where they fit."""
    image: Any = ax.imshow(values, vmin=low, vmax=1.0, cmap=colours)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if max(values.shape) > NUMBERED:
        return
    rows, columns = values.shape
    ax.hlines(np.arange(rows - 1) + 0.5, -0.5, columns - 0.5, color="white", lw=1)
    ax.vlines(np.arange(columns - 1) + 0.5, -0.5, rows - 0.5, color="white", lw=1)
    for (i, j), value in np.ndenumerate(values):
        red, green, blue, _ = image.cmap(image.norm(value))
        light = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5
        text = f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
        ax.text(j, i, text, ha="center", va="center", color="black" if light else "white", size=8)


def _number(ax: Axes, shape: tuple[int, ...]) -> None:
    """Rows and columns by number, from 1; all of them while they fit."""
    for axis, number in ((ax.yaxis, shape[0]), (ax.xaxis, shape[1])):
        places = range(0, number, max(1, number // 10))
        axis.set_ticks(list(places), [str(k + 1) for k in places])
