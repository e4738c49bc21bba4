"""Helpers of the linear metrics: standardised columns, and which columns vary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_matrix, same_rows

Matrix = NDArray[np.float64]


def factors_and_codes(z: Any, h: Any, *, rows: int = 2) -> tuple[Matrix, Matrix]:
    """The true factors z (N×d) and the codes h (N×k) as float64 matrices with the same rows.

    A data frame stores its columns one after the other, and sums would then round differently;
    in one memory order the same numbers give the same score wherever they come from.
    """
    factors, codes = as_matrix("z", z, rows=rows), as_matrix("h", h, rows=rows)
    same_rows(z=factors, h=codes)
    return _near_zero(np.ascontiguousarray(factors)), _near_zero(np.ascontiguousarray(codes))


def _near_zero(matrix: Matrix) -> Matrix:
    """Columns as they are, but scaled down by a power of two where sums could overflow, and moved to
    0 where they lie so far out that their means would round; both are exact."""
    huge = np.abs(matrix).max(axis=0) > 2.0**960
    matrix = np.where(huge, matrix * 2.0**-64, matrix) if huge.any() else matrix
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    far = np.minimum(np.abs(low), np.abs(high)) > 1e6 * (high - low)
    return np.where(far & ~is_constant(matrix), matrix - matrix[0], matrix) if far.any() else matrix


def unit_size(matrix: Matrix, axis: int | None = None) -> tuple[Matrix, NDArray[np.int64]]:
    """The matrix, or each column (axis 0), over the power of two 2^e just above its largest value;
    and e. Squares neither overflow nor underflow then, and nothing is rounded."""
    exponent = np.frexp(np.abs(matrix).max(axis=axis))[1].astype(np.int64)
    return np.ldexp(matrix, -exponent), exponent


def is_constant(matrix: Matrix) -> NDArray[np.bool_]:
    """Which columns do not vary by more than rounding: a learnt constant is rarely exactly one."""
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    rounding = 8 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high))
    return np.asarray(high - low <= rounding)


def centre_and_scale(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """Mean and standard deviation of each column; infinity for a constant one.

    So `(matrix - centre) / scale` has unit columns, and zeros where nothing varies.
    """
    centre = matrix.mean(axis=0)
    spread = np.abs(matrix - centre).max(axis=0)
    constant = is_constant(matrix)
    safe = np.where(constant, 1.0, spread)  # squares of the scaled values cannot overflow
    scale = safe * np.sqrt((((matrix - centre) / safe) ** 2).mean(axis=0))
    return centre, np.where(constant, np.inf, scale)


def standardised(matrix: Matrix, within: slice = slice(None)) -> Matrix:
    """Columns of mean 0 and standard deviation 1 (of some rows); a constant column becomes 0."""
    centre, scale = centre_and_scale(matrix[within])
    return (matrix - centre) / scale
