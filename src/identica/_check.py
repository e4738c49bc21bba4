"""Checks of what a caller hands in: one clear error that names the argument and what would be right."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray


class InputError(ValueError):
    """Input that cannot be used. The message names the argument and says what would be right."""


def positive(name: str, value: float) -> float:
    """A finite number above zero.

    >>> positive("scale", 0.05)
    0.05
    """
    number = finite(name, value)
    if number <= 0:
        raise InputError(f"{name} must be greater than 0, got {value!r}")
    return number


def nonnegative(name: str, value: float) -> float:
    """A finite number of at least zero."""
    number = finite(name, value)
    if number < 0:
        raise InputError(f"{name} must be at least 0, got {value!r}")
    return number


def finite(name: str, value: float) -> float:
    """A finite number (not a bool, not a string)."""
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, got {value!r}")
    return number


def count(name: str, value: int, at_least: int = 1, at_most: int | None = None) -> int:
    """A whole number of at least `at_least`, and at most `at_most` if that is given."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < at_least or (at_most is not None and value > at_most):
        limit = "" if at_most is None else f" and at most {at_most}"
        raise InputError(
            f"{name} must be a whole number of at least {at_least}{limit}, got {value!r}"
        )
    return int(value)


def seed(name: str, value: int) -> int:
    """A seed: a whole number below 2⁶³, so that twice as much and one more still has 64 bits."""
    return count(name, value, at_least=0, at_most=2**63 - 1)


def one_of(name: str, value: str, options: Iterable[str]) -> str:
    """One of the named options; a near miss is pointed out.

    >>> one_of("method", "pearsn", ["pearson", "spearman"])
    Traceback (most recent call last):
    identica._check.InputError: method must be one of pearson, spearman; got 'pearsn' (did you ...
    """
    known = list(options)
    if value in known:
        return value
    near = get_close_matches(str(value), known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise InputError(f"{name} must be one of {', '.join(known)}; got {value!r}{hint}")


def as_matrix(name: str, data: Any, *, rows: int = 2) -> NDArray[np.float64]:
    """N×d float64 from a NumPy array, torch tensor, data frame or nested list; a vector becomes N×1.

    Refuses anything that is not numeric and finite, or has fewer than `rows` rows.
    """
    if hasattr(data, "detach"):  # a torch tensor, without importing torch
        data = data.detach().cpu()
    try:
        matrix = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numeric, N×d: {error}") from None
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError(f"{name} must have shape N×d, got {matrix.shape}")
    if len(matrix) < rows:
        raise InputError(f"{name} must have at least {rows} rows, got {len(matrix)}")
    if not np.isfinite(matrix).all():
        bad = int((~np.isfinite(matrix).all(axis=1)).sum())
        raise InputError(f"{name} must be finite: {bad} of {len(matrix)} rows have NaN or infinity")
    return matrix


def same_rows(**matrices: NDArray[np.float64]) -> None:
    """All arguments must have the same number of rows."""
    lengths = {name: len(m) for name, m in matrices.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise InputError(f"{' and '.join(lengths)} must have the same number of rows: {told}")
