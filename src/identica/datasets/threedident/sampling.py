"""Sample points with low discrepancy, for cells and lights, within and across cells."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

TILE = 16  # period of the points, in cells


@cache
def sample_points(n: int) -> NDArray[np.float32]:
    """TILE×TILE×n×8: n sample points for each cell.

    A point is an offset within the cell, a point of the unit disc for the sun, one of the unit
    square for the area light and one of the unit disc for the spotlight, all centred.
    The cells follow one scrambled Sobol sequence along a Z-curve, so that a small block of cells
    covers the lights as evenly as the samples of a single cell do.

    >>> sample_points(4).shape
    (16, 16, 4, 8)
    """
    from scipy.stats import qmc

    places = TILE * TILE
    bits = (places * n - 1).bit_length()  # the sequence is even only over powers of two
    sobol = qmc.Sobol(8, seed=np.random.default_rng(0)).random_base2(bits)
    row, column = np.indices((TILE, TILE))
    u = sobol.reshape(places, -1, 8)[2 * _spread_bits(row) + _spread_bits(column), :n]
    u[..., (0, 1, 4, 5)] -= 0.5
    if n == 1:  # a lone sample stands for its cell: take the middle
        u[..., :2] = 0
    for k in (2, 6):
        radius, angle = np.sqrt(u[..., k]), 2 * np.pi * u[..., k + 1]
        u[..., k], u[..., k + 1] = radius * np.cos(angle), radius * np.sin(angle)
    return np.ascontiguousarray(u, np.float32)


def _spread_bits(x: NDArray[np.intp]) -> NDArray[np.intp]:
    """Bit b of x moved to bit 2b: two of these interleave to the place on the Z-curve."""
    return np.asarray(sum(((x >> b) & 1) << (2 * b) for b in range(TILE.bit_length())))
