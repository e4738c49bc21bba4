"""Pictures as inline SVG or PNG, made without touching matplotlib's global state."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.colors import ListedColormap
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


# --- recordings -------------------------------------------------------------------------------------

# safe for the colour-blind: from Okabe & Ito's palette, and maps whose lightness alone tells them apart
BLUE, ORANGE = "#0072b2", "#d55e00"
ALONG = colormaps["viridis"]
AROUND = ListedColormap(
    0.85 * colormaps["twilight"](np.linspace(0, 1, 256))[:, :3]
)  # none is white


def fit_curves(histories: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """Loss on pairs of the training, and evidence on held-out ones, against the step, a line for each
    named history (`ContrastiveICA.history_`); the best evidence, whose weights are kept, is marked."""
    with rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.8), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        marks = ["-", "--", ":", "-."]
        for number, (label, records) in enumerate(histories.items()):
            steps = np.array([r["step"] for r in records])
            bits = np.array([r["bits"] for r in records])
            how: dict[str, Any] = {"ls": marks[number % 4], "lw": 1.2}
            above.plot(steps, [r["loss"] for r in records], color=BLUE, **how)
            below.plot(steps, bits, color=ORANGE, label=label, **how)
            if len(bits):
                below.plot(steps[bits.argmax()], bits.max(), "o", ms=4, color=INK)
        above.set(ylabel="loss in training")
        below.axhline(0, color=SOFT, lw=0.7)
        below.set(xlabel="step", ylabel="held-out bits")
        if len(histories) > 1:
            below.legend(frameon=False, fontsize=8)
    return figure


def coloured_codes(
    codes: Mapping[str, NDArray[np.float64]],
    label: NDArray[np.float64],
    name: str,
    *,
    cyclic: bool = False,
) -> Figure:
    """Codes of each model as points in a plane, coloured by a label, such as a track unrolled or a ring.

    Args:
        codes: by the name of the model, N×n; of more than two, the principal plane is shown.
        label: N numbers.
        name: what they are, with their unit.
        cyclic: the label is an angle from −180° to 180°.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(3.0 * len(codes) + 0.8, 3.0), layout="constrained")
        grid = figure.subplots(1, len(codes), squeeze=False)[0]
        drawn: Any = None
        for axes, (title, points) in zip(grid, codes.items(), strict=True):
            middle = points - points.mean(axis=0)
            if points.shape[1] > 2:
                middle = middle @ np.linalg.svd(middle, full_matrices=False)[2][:2].T
            else:
                middle = points
            scale = {"vmin": -180.0, "vmax": 180.0} if cyclic else {}
            drawn = axes.scatter(
                *middle.T, c=label, s=4, linewidths=0, cmap=AROUND if cyclic else ALONG, **scale
            )
            axes.set(xticks=[], yticks=[], title=title, aspect="equal")
            for spine in axes.spines.values():
                spine.set_visible(False)
        figure.colorbar(drawn, ax=list(grid), shrink=0.85, label=name)
    return figure


def decoded_over_time(
    seconds: NDArray[np.float64],
    true: NDArray[np.float64],
    decoded: NDArray[np.float64],
    names: Sequence[str],
    *,
    period: float | None = None,
) -> Figure:
    """What was decoded, as points, over the truth, as a line, against time; a panel for each column.

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
