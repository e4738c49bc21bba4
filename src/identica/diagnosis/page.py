"""The HTML page of a diagnosis: verdict, findings and plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from identica import plots
from identica.diagnosis import Diagnosis
from identica.diagnosis.card import MEANING
from identica.diagnosis.conditional import inner_differences
from identica.diagnosis.marginal import own_range
from identica.diagnosis.verdict import DISTRUST, LINEAR, PERMUTATION, UNSURE
from identica.families import Joint
from identica.plots.style import BLUE, GREY, ORANGE, few_ticks
from identica.report import plots as figures
from identica.report.pages import write_page
from identica.report.plots import STYLE, inline

COLOUR = {PERMUTATION: "yes", LINEAR: "yes", UNSURE: "unsure", DISTRUST: "no"}
PANELS = 10  # number of codes shown


def write_diagnosis_page(path: Path | str, diagnosis: Diagnosis) -> None:
    """Write a diagnosis as a self-contained HTML file."""
    drawn = {
        "score": score(diagnosis),
        "restarts": restarts(diagnosis),
        "marginals": marginals(diagnosis),
        "differences": differences(diagnosis),
        "correlations": correlations(diagnosis),
    }
    said, _, why = diagnosis.headline.partition(". ")
    if diagnosis.truth is not None:
        drawn["truth"] = figures.correlations(diagnosis)
    write_page(
        Path(path),
        "diagnosis.html",
        title="Can these codes be trusted?",
        diagnosis=diagnosis,
        verdict=said.rstrip(".").capitalize(),
        meaning=f"{MEANING[diagnosis.verdict]} {why}".strip(),
        colour="unsure" if said.endswith("caution") else COLOUR[diagnosis.verdict],
        pictures={name: inline(figure) for name, figure in drawn.items()},
    )


def score(d: Diagnosis) -> Figure:
    """Bar chart of the score: held-out, shuffled and training pairs."""
    rows = [("held-out pairs", d.score.bits, d.score.error)]
    rows.append(("shuffled pairs", d.score.control, d.score.control_error))
    if d.score.seen is not None:
        rows.append(("training pairs", d.score.seen, 0.0))
    names, values, errors = zip(*rows, strict=True)
    with rc_context(STYLE):
        figure = Figure(figsize=(5.2, 1.7), layout="constrained")
        axes = figure.subplots()
        colours = [BLUE, GREY, ORANGE][: len(rows)]
        spread = 2 * np.array(errors)
        axes.barh(names, values, xerr=spread, color=colours, height=0.6)
        for k, value in enumerate(values):  # right of the axis, clear of the names
            place = max(0.0, value + spread[k]), k
            text = f"{round(value, 2) + 0.0:.2f}"
            axes.annotate(text, place, (6, 0), textcoords="offset points", va="center")
        axes.axvline(0, color="black", lw=0.8)
        low, high = min(0.0, *values), max(0.1, *values)
        axes.set(xlim=(1.25 * low, 1.2 * high), xlabel="bits above chance")
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
    return figure


def restarts(d: Diagnosis) -> Figure:
    """The two matrices of agreement, side by side."""
    with rc_context(STYLE):
        figure = Figure(figsize=(5.6, 2.6), layout="constrained")
        for axes, up_to in zip(figure.subplots(1, 2), ("linear", "permutation"), strict=True):
            plots.restarts(d, up_to, ax=axes)
    return figure


def marginals(d: Diagnosis) -> Figure:
    """A histogram of each code."""
    h = d.codes[0]

    def draw(axes: Axes, k: int) -> None:
        plots.density(h[:, k], names=[f"code {k + 1}"], ax=axes)
        low, high = own_range(h[:, k : k + 1])
        if high[0] > low[0]:
            axes.hlines(1 / (high[0] - low[0]), low[0], high[0], color=GREY)

    return _panels(h.shape[1], draw, "value of the code")


def differences(d: Diagnosis) -> Figure:
    """A histogram of the differences of each code, with the fitted and the assumed distribution."""
    from scipy.stats import gennorm

    h, h_pos = d.codes
    inner = inner_differences(h, h_pos, d.space)

    def draw(axes: Axes, k: int) -> None:
        step = inner[k] if len(inner[k]) else (h_pos - h)[:, k]
        axes.hist(step, bins=40, density=True, color=GREY, alpha=0.5)
        fit = d.positives.codes[k]
        if fit is None:
            return
        line = np.linspace(step.min(), step.max(), 300)
        axes.plot(line, gennorm(fit.shape, scale=fit.scale).pdf(line), color=BLUE, lw=1.4)
        axes.set_title(f"code {k + 1}: β = {fit.shape:.2f}")
        shape = None if isinstance(d.conditional, Joint) else d.conditional.p
        if shape is not None:
            scale = (shape * np.mean(np.abs(step) ** shape)) ** (1 / shape)
            axes.plot(line, gennorm(shape, scale=scale).pdf(line), color="black", lw=0.9, ls="--")

    return _panels(h.shape[1], draw, "difference within a pair")


def correlations(d: Diagnosis) -> Figure:
    """Bar charts of the correlations within pairs: of each code, and canonical."""
    with rc_context(STYLE):
        figure = Figure(figsize=(5.6, 2.3), layout="constrained")
        both: list[tuple[NDArray[np.float64], str]] = [
            (d.dimensions.correlations, "code"),
            (d.dimensions.canonical, "linear combination"),
        ]
        for axes, (values, name) in zip(figure.subplots(1, 2, sharey=True), both, strict=True):
            axes.bar(np.arange(len(values)) + 1, values, color=BLUE)
            axes.axhline(0, color="black", lw=0.8)
            axes.set(xlabel=name, ylim=(min(0.0, float(values.min())), 1))
            axes.locator_params(axis="x", integer=True)
            axes.label_outer()
        figure.axes[0].set_ylabel("correlation within pairs")
    return figure


def _panels(number: int, draw: Any, label: str) -> Figure:
    """A small panel for each code; the label is that of the horizontal axes, which show densities."""
    with rc_context(STYLE):
        figure, grid = figures.panels(min(number, PANELS))
        for k, axes in enumerate(grid):
            axes.set(title=f"code {k + 1}")
            draw(axes, k)
            axes.set(xlabel="", ylabel="")
            few_ticks(axes)
        figure.supxlabel(label, fontsize="medium")
        figure.supylabel("density", fontsize="medium")
    return figure
