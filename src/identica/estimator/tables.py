"""Columns of tables and data frames as numbers: an error names the column, the row and the cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import InputTypeError, kind_of
from identica.errors import InputError
from identica.estimator.sequences import is_missing

Array = NDArray[Any]

BLANK = {"", "na", "n/a", "nan", "nat", "null", "none", "<na>"}
CATEGORICAL = ("category", "Categorical", "Enum", "dictionary")


# what to do about a column of such cells
ADVICE = {
    "date": "make the column the index, or leave it out",
    "text": "encode the column as numbers, leave it out, or pass it as groups=",
}


class Cell(ValueError):
    """What is wrong with a cell, and the kind of its column among `ADVICE`."""

    def __init__(self, what: str, kind: str | None = None) -> None:
        super().__init__(what)
        self.kind = kind


def numbers(
    name: str,
    values: Array,
    place: Callable[[int], str],
    *,
    blank: bool = False,
    advice: Mapping[str, str] = ADVICE,
) -> Array:
    """A column of numbers.

    Args:
        name: what to call the column in an error.
        values: its cells: numbers, text or objects.
        place: what to call a row, by its number.
        blank: missing cells become NaN instead of an error.
        advice: what an error says to do about a column of dates or text.
    """
    if values.dtype.kind in "bui":
        return values
    if values.dtype.kind == "f":
        found, gaps = values, np.isnan(values)
    else:
        if values.dtype.kind == "V":
            raise InputError(f"{name} must hold numbers, got {values.dtype}")
        found = np.empty(len(values))
        for row, value in enumerate(values):
            try:
                found[row] = number(value)
            except Cell as wrong:
                kind = InputError if wrong.__cause__ is None else InputTypeError
                then = f": {advice[wrong.kind]}" if wrong.kind else ""
                raise kind(
                    f"{name} must hold numbers, but {place(row)} has {wrong}{then}"
                ) from None
        gaps = np.isnan(found)
    if gaps.any() and not blank:
        row = int(gaps.argmax())
        what = (
            "an empty cell" if isinstance(values[row], str) and not values[row].strip() else "NaN"
        )
        raise InputError(
            f'{name} must hold finite numbers, but {place(row)} has {what}; missing="drop" leaves '
            "such rows out"
        )
    return found


def number(value: Any) -> float:
    """The number in a cell, NaN if it is empty; otherwise raises `Cell` with what it holds and what to do."""
    if isinstance(value, str):
        value = str(value)  # of NumPy, which would be shown as such
        text = value.strip()
        if text.lower() in BLANK:
            return np.nan
        try:
            return float(text)
        except ValueError:
            pass
        if re.fullmatch(r"[-+]?[\d. ]*,\d+", text):
            raise Cell(f"{value!r}, with a decimal comma: write a point instead")
        if is_date(text):
            raise Cell(f"the date {value!r}", "date")
        raise Cell(f"{value[:60]!r}", "text")
    if isinstance(value, (np.datetime64, np.timedelta64)) or hasattr(value, "isoformat"):
        raise Cell(f"the date or duration {value}", "date")
    if is_missing(value):
        return np.nan
    try:
        return float(b"" if isinstance(value, bytes) else value)
    except TypeError as error:
        raise Cell(f"{kind_of(value)}: {error}") from error
    except (ValueError, OverflowError):
        raise Cell(f"{kind_of(value)}: leave the column out") from None


def is_date(text: str) -> bool:
    """Whether text is a date or a time in the ISO format.

    >>> is_date("2024-02-29 12:00"), is_date("29.2.2024")
    (True, False)
    """
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


# --- data frames ------------------------------------------------------------------------------------


def is_frame(data: Any) -> bool:
    """Whether an object is a data frame of pandas, polars or the like."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy") and hasattr(data, "shape")


def names_of(frame: Any) -> list[str]:
    """The names of the columns of a data frame."""
    return [str(name) for name in frame.columns]


def from_cells(argument: str, cells: Array) -> Array:
    """The numbers in an array N×d of text or objects, with NaN in missing cells."""
    columns = (f"{argument}: column {k}" for k in range(cells.shape[1]))
    found = [numbers(name, c, _row, blank=True) for name, c in zip(columns, cells.T, strict=True)]
    return np.stack(found, axis=1)


def from_frame(argument: str, frame: Any) -> Array:
    """The numbers in a data frame, N×d, with NaN in missing cells."""
    columns = []
    for k, name in enumerate(frame.columns):
        column = frame.iloc[:, k] if hasattr(frame, "iloc") else frame[name]
        told = f"{argument}: column {str(name)!r}"
        if str(column.dtype).startswith(CATEGORICAL):
            raise InputError(f"{told} must hold numbers, but it is categorical: {ADVICE['text']}")
        columns.append(numbers(told, np.asarray(column), _row, blank=True))
    if 0 in frame.shape:
        raise InputError(f"{argument} must have shape N×d, got {tuple(frame.shape)}")
    return np.stack(columns, axis=1)


def _row(number: int) -> str:
    return f"row {number} (from 0)"
