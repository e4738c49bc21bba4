"""Figures for pages: those of `identica.plots` in panels, and some that only pages need; made without
touching matplotlib's global state."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from identica import plots
from identica.plots.style import BLUE, COLUMNS, GREY, ORANGE

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "svg.fonttype": "none",
    "savefig.transparent": False,
}
styled = rc_context(STYLE)  # as a decorator


def inline(figure: Figure, *, dpi: int = 110) -> str:
    """Encode a figure as a data URL, which keeps pages self-contained."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, bbox_inches="tight")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """The figure as an image in colour, H×W×3."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(110)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())[:, :, :3]


@styled
def training_curve(
    histories: Mapping[str, Sequence[Mapping[str, float]]],
    score: str,
    *,
    goal: float | None = None,
    on: str = "unseen pairs",
) -> Figure:
    """`identica.plots.history` of a score, a line for each named history."""
    figure = Figure(figsize=(6.6, 3.0), layout="constrained")
    plots.history(histories, score, on=on, published=goal, ax=figure.subplots())
    return figure


@styled
def fit_curves(histories: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """`identica.plots.history` of fits: loss in training and held-out evidence."""
    figure = Figure(figsize=(6.6, 3.0), layout="constrained")
    plots.history(histories, ax=figure.subplots())
    return figure


@styled
def true_against_recovered(
    z: NDArray[np.float64],
    h: NDArray[np.float64],
    *,
    names: Sequence[str] | None = None,
    label: str = "recovered",
) -> Figure:
    """`identica.plots.recovered` of codes that are aligned, N×d, a panel for each factor."""
    figure, grid = panels(z.shape[1])
    plots.recovered(z, h, up_to=None, names=names, label=label, ax=grid)
    return figure


def panels(number: int) -> tuple[Figure, list[Any]]:
    """A figure of small panels, and their Axes."""
    columns = min(COLUMNS, number)
    rows = -(-number // columns)
    figure = Figure(figsize=(1.8 * columns + 0.3, 1.75 * rows + 0.2), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for empty in grid[number:]:
        empty.set_visible(False)
    return figure, list(grid[:number])


@styled
def correlations(z: Any, h: Any = None, xlabel: str = "code") -> Figure:
    """`identica.plots.correlations` of factors and codes, or of a diagnosis."""
    figure = Figure(figsize=(3.9, 3.2), layout="constrained")
    plots.correlations(z, h, ax=figure.subplots()).set_xlabel(xlabel)
    return figure


@styled
def coloured_codes(
    codes: Mapping[str, NDArray[np.float64]],
    label: NDArray[np.float64],
    name: str,
    *,
    cyclic: bool = False,
) -> Figure:
    """`identica.plots.codes` of each named model (N×n), coloured by a label (N)."""
    figure = Figure(figsize=(3.9 * len(codes), 3.2), layout="constrained")
    grid = figure.subplots(1, len(codes), squeeze=False)[0]
    for axes, (title, points) in zip(grid, codes.items(), strict=True):
        plots.codes(points, label.astype(float), name=name, cyclic=cyclic, ax=axes)
        axes.set_title(title)
    return figure


@styled
def sheet(picture: NDArray[np.uint8], rows: Sequence[str], title: str = "") -> Figure:
    """A contact sheet, grey or in colour, with a name for each row of it."""
    height, width = picture.shape[:2]
    figure = Figure(figsize=(width / 100, height / 100), layout="constrained")
    axes = figure.subplots()
    axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
    middles = (np.arange(len(rows)) + 0.5) * height / len(rows)
    axes.set_yticks(middles, rows)
    axes.set(xticks=[], title=title)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


@styled
def bars(values: Mapping[str, float], label: str) -> Figure:
    """A bar between 0 and 1 for each named value, with its number."""
    figure = Figure(figsize=(5.2, 0.25 * len(values) + 0.7), layout="constrained")
    axes = figure.subplots()
    drawn = axes.barh(list(values), list(values.values()), color=BLUE, height=0.7)
    axes.bar_label(drawn, fmt="%.3f", padding=3)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.12), xticks=[0, 0.5, 1], xlabel=label)
    axes.tick_params(axis="y", length=0)
    return figure


@styled
def limit(
    negatives: Sequence[int], values: Sequence[float], bars: Sequence[float], goal: float
) -> Figure:
    """Values with error bars against the number of negatives, and below them the distance to the limit."""
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    style: dict[str, Any] = {"fmt": "o-", "ms": 4, "lw": 1, "capsize": 3, "color": BLUE}
    above.errorbar(negatives, values, bars, label="estimate", **style)
    above.axhline(goal, color=GREY, ls="--", lw=1, label=f"limit ({goal:.4f})")
    above.set(xscale="log", ylabel="nats")
    above.legend(frameon=False)
    gaps = np.array(values) - goal
    low = np.minimum(bars, 0.9 * np.abs(gaps))  # a bar that ends below 0 has no end here
    below.errorbar(negatives, np.abs(gaps), [low, bars], **style)
    below.set(yscale="log", xlabel="negatives M", ylabel="distance from the limit")
    return figure


def decoded_over_time(
    seconds: NDArray[np.float64],
    true: NDArray[np.float64],
    decoded: NDArray[np.float64],
    names: Sequence[str],
    *,
    period: float | None = None,
) -> Figure:
    """Plot decoded values (points) and true values (line) against time, in a panel for each column.

    Args:
        seconds: N times.
        true, decoded: N×d.
        names: what each column is, with its unit.
        period: of values that are cyclic; the line is broken where it jumps by more than half of it.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(7.2, 1.0 + 1.3 * len(names)), layout="constrained")
        grid = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for axes, name, line, points in zip(grid, names, true.T, decoded.T, strict=True):
            shown = line.astype(float)
            if period is not None:
                shown[1:][np.abs(np.diff(line)) > period / 2] = np.nan
            axes.plot(seconds, points, ".", ms=2.5, color=ORANGE, label="decoded")
            axes.plot(seconds, shown, color=BLUE, lw=1.2, label="true")
            axes.set(ylabel=name)
        grid[-1].set(xlabel="seconds")
        grid[0].legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    return figure
