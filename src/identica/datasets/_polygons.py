"""Filled polygons on 64×64 pixels, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def fill(
    outlines: Sequence[Array],
    shape: Array,
    centre: Array,
    scale: Array,
    angle: Array,
    samples: int = 1,
    white: int = 1,
) -> NDArray[np.uint8]:
    """Images of one polygon each, N×64×64: `white` times the covered share of each pixel.

    The polygon is outline · scale, turned by `angle` from x (right) to y (down) and moved to
    `centre`. The share is that of a lattice of samples² points; a single one is the middle.

    Args:
        outlines: For each shape its corners, C×2, as (x, y) in pixels; simple polygons.
        shape: N indices into `outlines`.
        centre: N×2, (x, y) in pixels from the upper left corner of the image.
        scale: N factors.
        angle: N angles in radians.
        samples: Points along each side of a pixel.
        white: Value of a pixel that is wholly inside.

    >>> square = np.array([[-2, -2], [2, -2], [2, 2], [-2, 2.0]])
    >>> one = np.ones(1)
    >>> int(fill([square], np.zeros(1, int), np.array([[10, 10.0]]), one, 0 * one).sum())
    16
    """
    corners = np.concatenate(outlines).astype(np.float64)
    stops = np.cumsum([len(outline) for outline in outlines])
    turn = np.stack([scale * np.cos(angle), scale * np.sin(angle)], axis=1).astype(np.float64)
    grey = np.round(np.arange(samples**2 + 1) * (white / samples**2)).astype(np.uint8)
    images = np.empty((len(shape), 64, 64), np.uint8)
    _fill(corners, stops, shape.astype(np.int64), centre.astype(float), turn, samples, grey, images)
    return images


@numba.njit(nogil=True, cache=True)
def _fill(
    corners: Array,
    stops: Array,
    shape: Array,
    centre: Array,
    turn: Array,
    samples: int,
    grey: Array,
    images: Array,
) -> None:
    """Trace each outline once and accumulate, per line of sample points, the points to its right.

    An edge that crosses a line downwards counts the points to its right +1, one that crosses
    it upwards −1: outside these cancel, inside one remains.
    """
    for n in range(len(shape)):
        change = np.zeros((64, 66), np.int32)  # from a pixel to the next
        stop = stops[shape[n]]
        start = stops[shape[n] - 1] if shape[n] > 0 else 0
        cos, sin = turn[n] * samples
        left, top = centre[n] * samples
        x = left + cos * corners[stop - 1, 0] - sin * corners[stop - 1, 1]
        y = top + sin * corners[stop - 1, 0] + cos * corners[stop - 1, 1]
        for c in range(start, stop):
            x_before, y_before = x, y
            x = left + cos * corners[c, 0] - sin * corners[c, 1]
            y = top + sin * corners[c, 0] + cos * corners[c, 1]
            # Lines i with i + ½ between the two ends; half open, so that corners count once.
            first = max(int(np.ceil(min(y, y_before) - 0.5)), 0)
            last = min(int(np.ceil(max(y, y_before) - 0.5)), 64 * samples)
            sign = 1 if y > y_before else -1
            for i in range(first, last):
                crossing = x_before + (i + 0.5 - y_before) * (x - x_before) / (y - y_before)
                j = min(max(int(np.ceil(crossing - 0.5)), 0), 64 * samples)
                # Sample j and all to its right: part of its pixel, whole pixels from the next.
                change[i // samples, j // samples] += sign * (samples - j % samples)
                change[i // samples, j // samples + 1] += sign * (j % samples)
        for row in range(64):
            inside = 0
            for column in range(64):
                inside += change[row, column]
                images[n, row, column] = grey[abs(inside)]
