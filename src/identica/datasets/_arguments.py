"""Checks of the arguments that the data sets share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from identica._validate import as_array, as_matrix, count
from identica.errors import InputError

MOST = 100_000_000  # draws in one call: their factors alone take 4 GB


def limited(name: str, value: int, at_most: int = MOST, at_least: int = 1) -> int:
    """A whole number within limits.

    >>> limited("n", 0)
    Traceback (most recent call last):
    identica.errors.InputError: n must be a whole number of at least 1, got 0
    """
    number = count(name, value, at_least)
    if number > at_most:
        raise InputError(f"{name} must be at most {at_most}, got {number}")
    return number


def whole_numbers(name: str, values: ArrayLike, shape: str, columns: int = 0) -> NDArray[np.int64]:
    """A vector of whole numbers, or a matrix if it is to have `columns`.

    Booleans, dates and floats are refused, whatever their values; only what is empty has no type.

    Args:
        name: The argument's.
        values: What the caller handed in.
        shape: For the message, such as "N×5".
        columns: Columns of the matrix; 0 for a vector.
    """
    try:
        array = as_array(name, values)
    except InputError as error:  # such as rows of different lengths
        raise InputError(f"{name} must be whole numbers of shape {shape}: {error}") from None
    fits = array.shape[1:] == (columns,) if columns else array.ndim == 1
    if array.ndim == 0 or not fits or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"{name} must be whole numbers of shape {shape}, got {array.dtype} of shape "
            f"{array.shape}"
        )
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{name} must be whole numbers below 2**63, got {array.max()}")
    return array.astype(np.int64)


def real_matrix(name: str, data: Any) -> NDArray[np.float64]:
    """N×d finite numbers, as `as_matrix` returns them; text, dates, complex numbers and objects are
    refused rather than converted."""
    array = as_array(name, data)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be numeric, N×d: got {array.dtype}")
    return as_matrix(name, array, rows=0)
