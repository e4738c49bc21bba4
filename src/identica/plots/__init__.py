"""Plots of codes, learning curves and evidence, drawn into matplotlib Axes.

Each function takes arrays or a fitted object and `ax=`, and returns the Axes it drew into; without `ax` it
creates a figure. Colours are suitable for colour-blind readers and legible on dark and light backgrounds;
text and lines follow matplotlib's style. matplotlib is imported on the first plot.
"""

from identica.plots.curves import evidence, history
from identica.plots.matrices import correlations, restarts
from identica.plots.points import codes, density, recovered

__all__ = [
    "codes",
    "correlations",
    "density",
    "evidence",
    "history",
    "recovered",
    "restarts",
]
