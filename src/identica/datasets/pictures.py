"""Contact sheets: many small images in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._io import writing

GAP = 2  # width of the lines between images, in pixels


def tile(images: NDArray[Any]) -> NDArray[np.uint8]:
    """One picture of R×C images, grey or in colour, with mid-grey lines between them.

    Args:
        images: R×C×H×W or R×C×H×W×3 of values 0…255 (booleans count as 0 and 255).

    >>> tile(np.zeros((2, 3, 64, 64), bool)).shape
    (134, 200)
    """
    if images.dtype == bool:
        images = images * np.uint8(255)
    rows, columns, height, width, *colours = images.shape
    framed = np.full((rows, height + GAP, columns, width + GAP, *colours), 128, np.uint8)
    framed[:, GAP:, :, GAP:] = images.swapaxes(1, 2)
    sheet = framed.reshape(rows * (height + GAP), columns * (width + GAP), *colours)
    ends = [(0, GAP), (0, GAP), *((0, 0) for _ in colours)]
    return np.pad(sheet, ends, constant_values=128)


def save(picture: NDArray[np.uint8], path: Path) -> None:
    """Write a picture as a PNG file, in one step."""
    from PIL import Image

    with writing("out", path) as temporary:
        Image.fromarray(picture).save(temporary, format="png")
