"""Codes of held-out pairs and their evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


class Codes(NamedTuple):
    """Codes of one model for held-out pairs, and their evidence.

    Attributes:
        h, h_pos: codes of the members of each pair, N×n.
        bits: evidence of each pair, shape N (see `identica.metrics.evidence`).
        control: the same for positives in a random order, at their best temperature.
        seen: mean evidence of as many training pairs, if available.
    """

    h: Matrix
    h_pos: Matrix
    bits: Matrix
    control: Matrix
    seen: float | None = None


@dataclass(frozen=True)
class Score:
    """Evidence of held-out pairs in bits above chance, with standard errors.

    `control` is the evidence of shuffled pairs, `seen` that of training pairs, and `most` the largest
    possible value for this many pairs. `related` says whether the observations of a pair are related, if
    observations are available.
    """

    bits: float
    error: float
    control: float
    control_error: float
    seen: float | None
    most: float
    related: bool | None = None
