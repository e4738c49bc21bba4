"""Checks of the arguments that the data sets share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from identica._validate import as_array, as_matrix
from identica.errors import InputError

MOST = 100_000_000  # draws in one call: their factors alone take 4 GB


def whole_numbers(name: str, values: ArrayLike, shape: str, columns: int = 0) -> NDArray[np.int64]:
    """A vector of whole numbers, or a matrix if it is to have `columns`; `shape` is for the message.

    Booleans, dates and floats are refused, whatever their values; only what is empty has no type.
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
