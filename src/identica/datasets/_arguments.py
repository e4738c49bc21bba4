"""Validation of arguments, shared by the data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from identica._validate import as_array, as_matrix, instance
from identica.errors import InputError

MOST = 100_000_000  # draws in one call: their factors alone take 4 GB
KINDS = {"uint8": "uint8", "whole numbers": ("int", "uint"), "floats": "float", "text": "str"}


def whole_numbers(name: str, values: ArrayLike, below: int | Sequence[int]) -> NDArray[np.int64]:
    """A vector of whole numbers that are at least 0 and below a limit, or a matrix with a limit for each
    column.

    Booleans, dates and floats are refused, whatever their values; only what is empty has no type.
    """
    columns = () if isinstance(below, int) else (len(below),)
    wanted = f"{name} must be whole numbers of shape {shape_text((None, *columns))}"
    try:
        array = as_array(name, values)
    except InputError as error:  # such as rows of different lengths
        raise InputError(f"{wanted}: {error}") from None
    fits = array.ndim > 0 and array.shape[1:] == columns
    if not fits or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{wanted}, got {array.dtype} of shape {array.shape}")
    outside = (array < 0) | (array >= np.asarray(below))
    if outside.any():
        raise InputError(f"{name} must be at least 0 and below {below}, got {array[outside][0]}")
    return array.astype(np.int64)


def real_matrix(name: str, data: Any, columns: int) -> NDArray[np.float64]:
    """N×columns finite numbers, as `as_matrix` returns them; text, dates, complex numbers and objects
    are refused rather than converted."""
    array = as_array(name, data)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be numeric, N×{columns}: got {array.dtype}")
    matrix = as_matrix(name, array, rows=0)
    if matrix.shape[1] != columns:
        raise InputError(f"{name} must have shape N×{columns}, got {matrix.shape}")
    return matrix


def check_array(name: str, array: Any, kind: str, shape: tuple[int | None, ...]) -> None:
    """Raise unless the value is a NumPy array of one of the `KINDS` and of a shape, in which None stands for
    any length; floats must be finite."""
    instance(name, array, np.ndarray, "a NumPy array")
    fits = len(shape) == array.ndim and all(
        n in (None, found) for n, found in zip(shape, array.shape, strict=True)
    )
    if not fits or not array.dtype.name.startswith(KINDS[kind]):
        raise InputError(
            f"{name} must be {kind} of shape {shape_text(shape)}, got {array.dtype} of shape "
            f"{shape_text(array.shape)}"
        )
    if kind == "floats" and not np.isfinite(array).all():
        raise InputError(f"{name} must be finite")


def shape_text(shape: tuple[int | None, ...]) -> str:
    """A shape as in messages, such as N×5 or N×d."""
    return "×".join("Nd"[k] if n is None else str(n) for k, n in enumerate(shape)) or "()"
