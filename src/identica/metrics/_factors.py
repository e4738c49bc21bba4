"""Types of factors, labels (discrete) or measurements (continuous), and splits of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import one_of
from identica.errors import InputError
from identica.metrics.standardise import Matrix, factors_and_codes, is_constant, unit_size


def typed(z: Any, h: Any, factors: str) -> tuple[Matrix, Matrix, NDArray[np.bool_]]:
    """Factors and codes as matrices, and which factors are discrete; every factor must vary."""
    values, codes = factors_and_codes(z, h)
    if (constant := is_constant(values)).any():
        raise InputError(
            f"z must vary in every column: column {int(constant.argmax())} has a single value, "
            "so nothing can be said about that factor"
        )
    discrete = discrete_columns("z", z, values, "factors", factors)
    if (np.abs(np.frexp(np.abs(values).max(axis=0))[1]) > 400).any():  # whose squares are no floats
        values = unit_size(values, axis=0)[0]
    return values, codes, discrete


def discrete_columns(
    name: str, data: Any, values: Matrix, option: str, kind: str
) -> NDArray[np.bool_]:
    """Which columns hold labels rather than measurements.

    "auto" decides by type: an array of integers or booleans, whatever their size, holds labels;
    so does a column of floats in which values repeat ten times on average.
    """
    one_of(option, kind, ["auto", "discrete", "continuous"])
    distinct = np.array([len(np.unique(column)) for column in values.T])
    if kind == "auto":
        held = data.detach().cpu() if hasattr(data, "detach") else data
        whole = np.asarray(held).dtype.kind in "biu"
        discrete = np.full(len(distinct), True) if whole else distinct * 10 <= len(values)
    else:
        discrete = np.full(len(distinct), kind == "discrete")
    if (many := discrete & (distinct * 2 > len(values)) & (distinct > 2)).any():
        column = int(many.argmax())
        raise InputError(
            f"{name} has {distinct[column]} distinct values in the {len(values)} rows of column "
            f'{column}, too many for labels: give more rows, or {option}="continuous"'
        )
    return np.asarray(discrete)


def labels_of(column: Matrix) -> NDArray[np.intp]:
    """Labels 0, …, K−1 of the distinct values of a column, in their order."""
    return np.unique(column, return_inverse=True)[1]


def fitted_labels(
    column: Matrix, order: NDArray[np.intp], train: int, number: int
) -> NDArray[np.intp]:
    """Labels in the given order; the first `train` must hold at least two values."""
    labels = labels_of(column)[order]
    if len(np.unique(labels[:train])) < 2:
        raise InputError(
            f"z column {number} has a single value in the {train} rows fitted on: give more rows"
        )
    return labels


def shuffled_split(rows: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], int]:
    """All rows in random order, and how many of them to fit on: two thirds.

    The benchmark draws 10,000 rows to fit on and 5,000 to score on; 15,000 rows give the same.
    """
    return rng.permutation(rows), 2 * rows // 3
