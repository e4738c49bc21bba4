"""Pictures of codes, of training and of evidence, as functions that draw into matplotlib Axes.

Each takes arrays or a fitted object and `ax=`, and returns the Axes it drew into; without `ax` it makes a
figure. Colours can be told apart by the colour-blind and are legible on dark and on light
backgrounds; text and lines follow matplotlib's style. matplotlib is loaded when something is drawn.
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
