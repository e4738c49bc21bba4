"""Conversion of the light in cells to the bytes of pixels: pixel filter and sRGB."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from identica.datasets.threedident._compiled import compiled


@cache
def filter_taps(cells: int) -> NDArray[np.float32]:
    """The weights of the 3·`cells` cells around a pixel along one axis.

    A Blackman-Harris window that ends 1.5 pixels from the middle (Harris 1978), integrated over
    each cell; the filter of the picture is the product of two of them.

    >>> filter_taps(1).round(3)
    array([0.119, 0.763, 0.119], dtype=float32)
    """
    x = np.linspace(0, 1, 3 * cells + 1)
    total = 0.35875 * x
    for k, wave in enumerate((-0.48829, 0.14128, -0.01168), start=1):
        total += wave * np.sin(2 * np.pi * k * x) / (2 * np.pi * k)
    return (np.diff(total) / total[-1]).astype(np.float32)


@cache
def srgb_bytes() -> NDArray[np.uint8]:
    """The sRGB byte of each of 2^14 equal steps of light from 0 to 1.

    >>> srgb_bytes()[[0, 8192, -1]]
    array([  0, 188, 255], dtype=uint8)
    """
    light = np.linspace(0, 1, 1 << 14)
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return (255 * curve).round().astype(np.uint8)


@compiled
def develop(
    light: NDArray[np.float32],
    taps: NDArray[np.float32],
    table: NDArray[np.uint8],
    image: NDArray[np.uint8],
) -> None:
    """Filter the light of a grid of cells, a pixel wider than the image on each side, into bytes."""
    size, n = len(image), len(taps)
    cells = n // 3
    top, half = np.float32(len(table) - 1), np.float32(0.5)
    column = np.empty((len(light), 3), np.float32)
    for y in range(size):
        column[:] = 0
        for k in range(n):
            for x in range(len(light)):
                for c in range(3):
                    column[x, c] += taps[k] * light[y * cells + k, x, c]
        for x in range(size):
            for c in range(3):
                value = half * 0
                for k in range(n):
                    value += taps[k] * column[x * cells + k, c]
                image[y, x, c] = table[int(min(value * top, top) + half)]
