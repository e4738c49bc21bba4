"""Folders of images, read as one array in order of their names."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_path
from identica.datasets.reading import reading, reason
from identica.errors import InputError

SUFFIXES = (".png", ".jpg", ".jpeg")
PIXELS = 1 << 26  # of an image, at most


def load(folder: str | Path) -> NDArray[Any]:
    """The PNG and JPEG images of a folder: bytes N×H×W if all are grey, and N×H×W×3 otherwise.

    They are sorted by name, with numbers in order of size (frame9 before frame10). Grey images of 16 bits
    become numbers from 0 to 1, N×H×W×1. Transparency and hidden files are ignored; any other file, and an
    image of another size, is an error.
    """
    folder = as_path("folder", folder)
    try:
        files = sorted((p for p in folder.iterdir() if p.name[0] != "."), key=_place)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} must be a folder of images: {reason(error)}") from None
    foreign = [path.name for path in files if path.suffix.lower() not in SUFFIXES]
    if foreign or not files:
        raise InputError(
            f"{folder} must hold PNG and JPEG images alone, got {foreign[0] if foreign else 'none'}"
        )
    first, whole = _read(files[0]), None
    for number, path in enumerate(files):
        image = _read(path)
        if image.shape[:2] != first.shape[:2]:
            sizes = ["{}×{}".format(*one.shape) for one in (first, image)]
            raise InputError(
                f"{folder} must hold images of one size, but {files[0].name} has {sizes[0]} pixels and "
                f"{path.name} {sizes[1]}"
            )
        if image.dtype != first.dtype:
            raise InputError(
                f"{folder} must hold images of one depth, but {files[0].name} has {first.dtype} and "
                f"{path.name} {image.dtype}"
            )
        if whole is None:
            whole = _room(folder, (len(files), *image.shape), image.dtype)
        if image.ndim > whole.ndim - 1:  # a colour image after grey ones
            grey, whole = whole, _room(folder, (len(files), *image.shape), image.dtype)
            whole[:number] = grey[:number, ..., None]
        whole[number] = image if image.ndim == whole.ndim - 1 else image[..., None]
    assert whole is not None
    return whole if whole.dtype == np.uint8 else (whole / np.float32(65535))[..., None]


def _place(path: Path) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), part) if part.isdecimal() else (-1, part) for part in parts]


def _room(folder: Path, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    try:
        return np.empty(shape, dtype)
    except MemoryError:
        raise InputError(f"{folder} holds more than fits into memory") from None


def _read(path: Path) -> NDArray[Any]:
    """Bytes H×W or H×W×3, or 16 bits H×W."""
    from PIL import Image

    with (
        reading(path, "an image in PNG or JPEG format") as file,
        # from memory, which ends where the file does
        Image.open(BytesIO(file.read()), formats=["PNG", "JPEG"]) as image,
    ):
        if image.width * image.height > PIXELS:
            raise InputError(
                f"{path} must have at most {PIXELS} pixels, got {image.height}×{image.width}"
            )
        if image.mode.startswith("I"):
            return np.asarray(image).astype(np.uint16)
        grey = image.mode in ("1", "L", "LA")
        return np.asarray(image.convert("L" if grey else "RGB"))
