"""Contact sheets: many small images in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._io import make_folder, replacing
from identica.datasets._reading import reason
from identica.errors import InputError


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


def save(picture: NDArray[np.uint8], path: Path) -> None:
    """Write a picture as a PNG file, in one step."""
    from PIL import Image

    make_folder("out", path.parent)
    try:
        with replacing(path) as temporary:
            Image.fromarray(picture).save(temporary, format="png")
    except OSError as error:
        raise InputError(f"out: cannot write {path}: {reason(error)}") from None
