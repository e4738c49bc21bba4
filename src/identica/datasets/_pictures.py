"""Contact sheets: many small images in one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def tile(images: NDArray[Any], gap: int = 2) -> NDArray[np.uint8]:
    """One grey picture of R×C images, with mid-grey lines between them.

    Args:
        images: R×C×H×W of values 0…255 (booleans count as 0 and 255).
        gap: Width of the lines in pixels.

    >>> tile(np.zeros((2, 3, 64, 64), bool)).shape
    (134, 200)
    """
    if images.dtype == bool:
        images = images * np.uint8(255)
    rows, columns, height, width = images.shape
    sheet = np.full((rows, height + gap, columns, width + gap), 128, np.uint8)
    sheet[:, gap:, :, gap:] = images.transpose(0, 2, 1, 3)
    picture = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap), 128, np.uint8)
    picture[:-gap, :-gap] = sheet.reshape(rows * (height + gap), -1)
    return picture
