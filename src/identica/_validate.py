"""Validation of arguments: one clear error that names the argument and the expected value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica.errors import InputError


class InputTypeError(InputError, TypeError):
    """Input of a wrong type, for which scikit-learn requires a `TypeError`."""


def is_auto(value: Any) -> bool:
    """Whether a parameter is "auto" (an array would be compared elementwise)."""
    return isinstance(value, str) and value == "auto"


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
        number = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: a meta tensor
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, got {value!r}")
    return number


def count(name: str, value: int, at_least: int = 1, at_most: int | None = None) -> int:
    """A whole number of at least `at_least`, and at most `at_most` (or 64 bits)."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if at_most is None and whole and value >= 2**63:
        at_most = 2**63 - 1
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
    identica.errors.InputError: method must be one of pearson, spearman; got 'pearsn' (did you ...
    """
    known = list(options)
    if isinstance(value, str) and value in known:
        return value
    near = get_close_matches(str(value), known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise InputError(f"{name} must be one of {', '.join(known)}; got {value!r}{hint}")


def as_matrix(name: str, data: Any, *, rows: int = 2) -> NDArray[np.float64]:
    """N×d float64 from a NumPy array, torch tensor, data frame or nested list; a vector becomes N×1.

    Refuses anything that is not numeric and finite, or has fewer than `rows` rows.
    """
    matrix = as_floats(name, data)
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


def as_array(name: str, data: Any) -> NDArray[Any]:
    """An array, from a torch tensor or anything that NumPy makes one of."""
    try:
        if hasattr(data, "detach"):  # a torch tensor, without importing torch
            data = data.detach().cpu()
        return np.asarray(data)
    except (TypeError, ValueError, RuntimeError) as error:  # a ragged list, a tensor on meta
        raise InputError(f"{name} must be an array of numbers: {error}") from None


def as_floats(name: str, data: Any) -> NDArray[np.float64]:
    """Real numbers as a float64 array; dates, durations and complex numbers are not real numbers."""
    array = as_array(name, data)
    try:
        scalars = array.flat if array.dtype.kind == "O" else ()
        kinds = {array.dtype.kind, *(np.asarray(scalar).dtype.kind for scalar in scalars)}
        if kinds & set("cmM"):
            raise TypeError(
                f"it holds {'complex numbers' if 'c' in kinds else 'dates or durations'}"
            )
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be numeric, N×d: {error}") from None


def same_rows(**matrices: NDArray[np.float64]) -> None:
    """All arguments must have the same number of rows."""
    lengths = {name: len(m) for name, m in matrices.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise InputError(f"{' and '.join(lengths)} must have the same number of rows: {listed}")


def instance(name: str, value: Any, kind: type | tuple[type, ...], example: str) -> None:
    """Raise unless the value is of a kind.

    >>> instance("space", 3, str, "a space such as Sphere(3)")
    Traceback (most recent call last):
    identica.errors.InputError: space must be a space such as Sphere(3), got 3
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {example}, got {kind_of(value)}")


def kind_of(value: Any) -> str:
    """A short description of a value for error messages.

    >>> kind_of(np.zeros((2, 3))), kind_of("a"), kind_of(None)
    ('a float64 ndarray of shape (2, 3)', "'a'", 'None')
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    name = type(value).__name__
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        name = f"{value.dtype} {name} of shape {tuple(value.shape)}"
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def as_rng(name: str, value: Any) -> np.random.Generator:
    """A NumPy generator, or a new one started at a seed."""
    if isinstance(value, np.random.Generator):
        return value
    return np.random.default_rng(count(name, value, at_least=0))


def flag(name: str, value: Any) -> bool:
    """True or False."""
    instance(name, value, (bool, np.bool_), "True or False")
    return bool(value)


def members(name: str, value: Any, what: str, number: int | None = None) -> list[Any]:
    """The items of a list, tuple, range or vector; optionally, of a required length."""
    try:
        items = [] if isinstance(value, (str, bytes, dict)) else list(value)
    except TypeError:
        raise InputError(f"{name} must be {what}, got {kind_of(value)}") from None
    if number is not None and len(items) != number:
        raise InputError(f"{name} must be {what}, got {len(items)} members")
    return items


def function(name: str, value: Any) -> None:
    """Raise unless the value can be called."""
    if not callable(value):
        raise InputError(f"{name} must be a function, got {kind_of(value)}")


def as_path(name: str, value: Any) -> Path:
    """A path, from itself or from text."""
    instance(name, value, (str, Path), "a path")
    return Path(value)
