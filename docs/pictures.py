"""Redraw the pictures of the pages: python docs/pictures.py (a few minutes, since models are trained).

Every picture shows a grid of two factors: lines of equal first factor in one colour, of equal second
factor in the other. Straight and upright lines say that both factors were found.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch import Tensor

from identica import Box, ContrastiveICA, CouplingFlow, GenerativeProcess, Laplace, Uniform
from identica._io import write_text
from identica.estimator.pairs import Batch

FIRST, SECOND, PLAIN = "#2a5db0", "#d9722e", "#444444"
STYLE = {
    "font.size": 10,
    "text.color": PLAIN,
    "axes.edgecolor": "#bbbbbb",
    "axes.labelcolor": PLAIN,
    "axes.titlesize": 11,
    "svg.fonttype": "none",
    "svg.hashsalt": "identica",  # the same drawing gives the same file
}
SIDE, STEP = 1.2, 0.1  # half a side of the box, and the scale of the steps within pairs
SPACE = Box(2, -SIDE, SIDE)
PROCESS = GenerativeProcess(SPACE, Uniform(), Laplace(STEP), CouplingFlow(2, seed=5, layers=3))


def lines(steps: int = 11, points: int = 41) -> tuple[list[Tensor], list[Tensor]]:
    """The lines of equal first factor and those of equal second factor, each P×2."""
    along, at = torch.linspace(-SIDE, SIDE, points), torch.linspace(-SIDE, SIDE, steps)
    first = [torch.stack([value.expand(points), along], 1) for value in at]
    return first, [line.flip(1) for line in first]


def grid(axes: Axes, mapped: Callable[[Tensor], Tensor], **style: float) -> None:
    for found, colour in zip(lines(), (FIRST, SECOND), strict=True):
        for line in found:
            axes.plot(*np.asarray(mapped(line)).T, color=colour, linewidth=0.9, **style)


def frame(axes: Axes, title: str, below: str = "") -> None:
    axes.set_title(title)
    axes.set_xlabel(below)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.06)
    axes.set_box_aspect(1)


def panels(number: int) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(1, number, figsize=(2.55 * number, 3.0), layout="constrained")
    return figure, list(axes)


def fit(sample: Callable[..., object], steps: int, **model: object) -> Callable[[Tensor], Tensor]:
    """From factors to codes, by a model that saw nothing but pairs of observations."""
    ica = ContrastiveICA(2, steps=steps, batch=512, **model).fit(sample)
    return lambda z: ica.transform(PROCESS.mixing(z).numpy())


# --- the pictures -----------------------------------------------------------------------------------


def idea(steps: int) -> Figure:
    """Factors, pairs, observations, codes."""
    figure, (factors, pairs, observed, codes) = panels(4)
    grid(factors, lambda z: z)
    frame(factors, "1  factors z", "hidden")

    grid(pairs, lambda z: z, alpha=0.25)
    drawn = PROCESS.sample(40, generator=4)
    ends = torch.stack([drawn.z, drawn.z_pos], 1)
    pairs.add_collection(LineCollection(ends.numpy(), color=PLAIN, linewidth=1.2))
    pairs.plot(*drawn.z.T, ".", color=PLAIN, markersize=5)
    frame(pairs, "2  pairs z, z̃", "hidden")

    grid(observed, PROCESS.mixing)
    observed.plot(*drawn.x.T, ".", color=PLAIN, markersize=3)
    frame(observed, "3  observations x = g(z)", "all that is seen")

    grid(codes, fit(PROCESS.sample, steps, conditional="laplace"))
    frame(codes, "4  codes h(x)", "learnt from pairs")
    return figure


def violations(steps: int) -> Figure:
    """Codes where the assumptions hold, and where one of them does not."""

    def uneven(size: int, *, generator: torch.Generator) -> Batch:
        z = PROCESS.latents(size, generator=generator)
        away = PROCESS.positives(z, generator=generator) - z
        step = away * (0.2 + 1.5 * (1 + z[:, :1] / SIDE))  # up to sixteen times as far
        return Batch(PROCESS.mixing(z), PROCESS.mixing(SPACE.project(z + step)))

    def forgotten(size: int, *, generator: torch.Generator) -> Batch:
        z = PROCESS.latents(size, generator=generator)
        z_pos = PROCESS.positives(z, generator=generator)
        z_pos[:, 1] = PROCESS.latents(size, generator=generator)[:, 1]
        return Batch(PROCESS.mixing(z), PROCESS.mixing(z_pos))

    box = {"conditional": "laplace"}
    cases = [
        ("all assumptions hold", "each factor by itself", PROCESS.sample, box),
        (
            "no walls, round conditional",
            "turned, but straight",
            PROCESS.sample,
            {"space": "unbounded", "conditional": "normal"},
        ),
        ("steps grow with a factor", "bent and stretched", uneven, box),
        ("a factor is not kept in pairs", "that factor is lost", forgotten, box),
    ]
    figure, axes = panels(len(cases))
    for panel, (title, below, sample, model) in zip(axes, cases, strict=True):
        grid(panel, fit(sample, steps, **model))
        frame(panel, title, below)
    return figure


def families(steps: int) -> Figure:
    """Where positives lie around a factor: lines of equal density."""
    figure, axes = panels(3)
    angle = np.linspace(0, 2 * np.pi, 121)  # with the corners
    circle = np.stack([np.cos(angle), np.sin(angle)])
    named = [
        ("laplace", 1.0, "p = 1: corners on the axes"),
        ("normal", 2.0, "p = 2: all directions alike"),
        ("gennorm3", 3.0, "p = 3: flat across the axes"),
    ]
    for panel, (name, p, below) in zip(axes, named, strict=True):
        for radius in (0.15, 0.4, 0.65, 0.9):
            line = radius * circle / (np.abs(circle) ** p).sum(axis=0) ** (1 / p)
            panel.plot(*line, color=FIRST, linewidth=1.1)
        panel.axhline(0, color="#cccccc", linewidth=0.6, zorder=0)
        panel.axvline(0, color="#cccccc", linewidth=0.6, zorder=0)
        frame(panel, name, below)
    return figure


def main(out: Path, steps: int = 1200) -> None:
    with plt.rc_context(STYLE):
        for draw in (idea, violations, families):
            figure = draw(steps)
            figure.savefig(drawn := io.StringIO(), format="svg", metadata={"Date": None})
            plt.close(figure)
            # a hundredth of a point is fine enough, and half the size
            short = re.sub(r"\d+\.\d{3,}", lambda n: f"{float(n[0]):.2f}", drawn.getvalue())
            write_text(out / f"{draw.__name__}.svg", short)


if __name__ == "__main__":
    torch.set_num_threads(1)
    plt.switch_backend("svg")
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "img")
