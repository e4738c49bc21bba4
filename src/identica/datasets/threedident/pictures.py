"""Contact sheets of 3DIdent images, and the PSNR between images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from identica.datasets.pictures import tile
from identica.datasets.threedident.raycaster import render
from identica.datasets.threedident.scene import FACTORS, latents
from identica.datasets.threedident.storage import ImageSet

Bytes = NDArray[np.uint8]


def traversals(size: int = 96, columns: int = 9) -> Bytes:
    """A sheet with each factor in turn from −1 to 1, a row each, the others at 0."""
    along = np.linspace(-1, 1, columns)
    z = np.concatenate([latents(**{name: along}) for name in FACTORS])
    images = render(z, size)
    return tile(images.reshape(len(FACTORS), columns, *images.shape[1:]))


def first_images(data: ImageSet, side: int = 8) -> Bytes:
    """A sheet of the first images of a data set, `side` by `side` at most."""
    columns = min(side, len(data))
    rows = min(side, len(data) // columns)
    images = data.images(np.arange(rows * columns))
    return tile(images.reshape(rows, columns, *images.shape[1:]))


def psnr(images: Bytes, others: Bytes) -> NDArray[np.float64]:
    """Peak signal to noise of each image (N×S×S×3) against another, in dB; equal ones have 99.

    >>> psnr(np.zeros((1, 8, 8, 3), np.uint8), np.full((1, 8, 8, 3), 255, np.uint8))
    array([0.])
    """
    error = np.square(images.astype(float) - others).mean(axis=(1, 2, 3))
    return np.minimum(99.0, 10 * np.log10(255**2 / np.maximum(error, 1e-12)))
