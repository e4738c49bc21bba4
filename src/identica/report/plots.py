"""Pictures as inline SVG or PNG, made without touching matplotlib's global state."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "svg.fonttype": "none",
    "savefig.transparent": False,
}
INK, ACCENT, SOFT = "#1f2937", "#2563eb", "#9ca3af"
styled = rc_context(STYLE)  # as a decorator


def inline(figure: Figure, *, dpi: int = 110) -> str:
    """The figure as the address of an <img>, so that a page needs no other file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, bbox_inches="tight")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def pixels(figure: Figure, *, dpi: int = 110) -> NDArray[np.uint8]:
    """The figure as an image in colour, H×W×3."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())[:, :, :3]


@styled
def training_curve(
    histories: Mapping[str, Sequence[Mapping[str, float]]],
    score: str,
    *,
    name: str | None = None,
    goal: float | None = None,
    on: str = "unseen pairs",
) -> Figure:
    """A score against the step, a line for each named history, on a scale that expands near 1.

    `name` is the printed name of the score, by default `score` itself.
    """
    beside = len(histories) > 5  # a long legend would cover the lines
    figure = Figure(figsize=(6.6 if beside else 5.2, 3.0), layout="constrained" if beside else None)
    axes = figure.subplots()
    for label, records in histories.items():
        steps = [r["step"] for r in records]
        axes.plot(steps, [1 - r[score] for r in records], marker=".", label=label)
    if goal is not None:
        axes.axhline(1 - goal, color=SOFT, ls="--", lw=1, label=f"published ({goal:.4f})")
    axes.set_yscale("log")
    axes.invert_yaxis()
    ticks = [0.5, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001]
    axes.set_yticks(ticks, [f"{1 - t:g}" for t in ticks])
    axes.minorticks_off()
    lowest = min([1 - r[score] for rs in histories.values() for r in rs] or [0.1])
    axes.set_ylim(1, max(lowest / 2, 2e-5))
    axes.set(xlabel="step", ylabel=f"{name or score} on {on}")
    if beside:
        figure.legend(frameon=False, loc="outside right upper")
    else:
        axes.legend(frameon=False)
    return figure


@styled
def true_against_recovered(
    z: NDArray[np.float64],
    h: NDArray[np.float64],
    label: str,
    *,
    names: Sequence[str] | None = None,
) -> Figure:
    """One small scatter plot for each factor: its true value against the recovered one."""
    n = z.shape[1]
    columns = min(5, n)
    rows = -(-n // columns)
    figure = Figure(figsize=(1.7 * columns, 1.75 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for i, axes in enumerate(grid.flat):
        if i >= n:
            axes.set_visible(False)
            continue
        axes.scatter(z[:, i], h[:, i], s=2, alpha=0.35, color=ACCENT, linewidths=0)
        low, high = z[:, i].min(), z[:, i].max()
        axes.plot([low, high], [low, high], color=INK, lw=0.7)
        axes.set(xticks=[], yticks=[], title=names[i] if names else f"factor {i + 1}")
    figure.supxlabel("true", fontsize=9)
    figure.supylabel(label, fontsize=9)
    return figure


@styled
def matrix(values: NDArray[np.float64], xlabel: str, ylabel: str) -> Figure:
    """A matrix of correlations between −1 and 1 as an image."""
    figure = Figure(figsize=(3.6, 3.2))
    axes = figure.subplots()
    picture: Any = axes.imshow(values, vmin=-1, vmax=1, cmap="RdBu_r")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    for way, number in (("x", values.shape[1]), ("y", values.shape[0])):
        set_ticks = getattr(axes, f"set_{way}ticks")
        set_ticks(range(number), [str(i + 1) for i in range(number)])
    figure.colorbar(picture, shrink=0.85)
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
    drawn = axes.barh(list(values), list(values.values()), color=ACCENT, height=0.7)
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
    style: dict[str, Any] = {"fmt": "o-", "ms": 4, "lw": 1, "capsize": 3, "color": ACCENT}
    above.errorbar(negatives, values, bars, label="estimate", **style)
    above.axhline(goal, color=SOFT, ls="--", lw=1, label=f"limit ({goal:.4f})")
    above.set(xscale="log", ylabel="nats")
    above.legend(frameon=False)
    gaps = np.array(values) - goal
    low = np.minimum(bars, 0.9 * np.abs(gaps))  # a bar that ends below 0 has no end here
    below.errorbar(negatives, np.abs(gaps), [low, bars], **style)
    below.set(yscale="log", xlabel="negatives M", ylabel="distance from the limit")
    return figure
