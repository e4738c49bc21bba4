"""When rows were observed: an index that is out of order is refused, and a gap ends a sequence."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.errors import InputError
from identica.estimator.sequences import Indices, sequences
from identica.estimator.tables import is_date

Array = NDArray[Any]

LIKE_A_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}(\D|$)")
GAP = 1.5  # a step of more than this many median steps is a gap


class Times(NamedTuple):
    """The index of some rows: numbers that grow with time, and that of a row as text.

    Attributes:
        values: numbers; of dates, seconds since 1970 unless they come from an index of pandas.
        shown: the text of a row, by its number.
        dates: whether they are dates.
    """

    values: Array
    shown: Callable[[int], str]
    dates: bool = False


class Pieces(NamedTuple):
    """Sequences without gaps: for each row its sequence, and a description of the gaps, if there are any."""

    groups: Indices
    gaps: str | None


def times_of(data: Any) -> Times | None:
    """The index of a data frame, or of the rows of a DataArray, if it is one of dates or durations.

    Text counts as dates if its first entry is a date in the ISO format; one in another format is an error.
    """
    index: Any = getattr(data, "index", None)
    if index is None and len(getattr(data, "dims", ())) == 2:
        index = getattr(data, "indexes", {}).get(data.dims[0])
    if hasattr(index, "to_timestamp"):  # of periods
        index = index.to_timestamp()
    kind = getattr(getattr(index, "dtype", None), "kind", "")
    if kind == "O" and len(index) and isinstance(first := index[0], str):
        if is_date(first) and not first.isdigit():
            return times_in("the index of X", np.asarray(index, object), _row)
        if LIKE_A_DATE.match(first):
            raise InputError(
                f"the index of X must hold dates such as 2024-02-29 12:00, but row 0 (from 0) has {first!r}: "
                "convert it with pandas.to_datetime"
            )
    if kind not in ("M", "m"):
        return None
    if (missing := np.asarray(index.isna())).any():
        row = int(missing.argmax())
        raise InputError(f"X must have an index without NaT, but row {row} (from 0) has none")
    # steps of a known frequency, such as business days, are regular by definition
    regular = index.freq is not None and index.is_monotonic_increasing
    values = np.arange(len(index)) if regular else np.asarray(index.asi8)
    return Times(values, lambda row: str(index[row]))


def times_in(name: str, cells: Array, place: Callable[[int], str]) -> Times:
    """The times in a column: numbers, or dates in the ISO format.

    Args:
        name: what to call the column in an error.
        cells: numbers, dates, text or objects.
        place: what to call a row, by its number.
    """
    values = np.empty(len(cells))
    for row, cell in enumerate(cells):
        values[row] = _seconds(cell)
        if not np.isfinite(values[row]):
            raise InputError(
                f"{name} must hold numbers, or dates such as 2024-02-29 12:00, but {place(row)} has "
                f"{str(cell)[:60]!r}"
            )
    dates = len(cells) > 0 and _is_date(cells[0])
    return Times(values, lambda row: str(cells[row]), dates)


def _row(number: int) -> str:
    return f"row {number} (from 0)"


def _is_date(cell: Any) -> bool:
    if isinstance(cell, (np.datetime64, np.timedelta64)):
        return isinstance(cell, np.datetime64)
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return True  # as it is a time
    return False


def _seconds(cell: Any) -> float:
    """A number as it is, a date in seconds; NaN for anything else."""
    if isinstance(cell, (np.datetime64, np.timedelta64)):
        return (
            np.nan
            if np.isnat(cell)
            else float(cell.astype(f"{cell.dtype.kind}8[us]").astype(int)) / 1e6
        )
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        date = cell if hasattr(cell, "tzinfo") else datetime.fromisoformat(str(cell).strip())
        # times without a zone must not depend on that of this machine
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return np.nan


def pieces(argument: str, times: Times, groups: Any = None) -> Pieces:
    """Sequences cut at gaps in time.

    Args:
        argument: what is in order of time, to name in an error.
        times: when each row was observed.
        groups: the sequence of each row, as in `sequences`.

    >>> pieces("X", Times(np.array([0, 1, 2, 7, 8]), str)).groups
    array([0, 0, 0, 1, 1])
    """
    within = sequences(len(times.values), 1, groups)
    rows = within.rows(np.arange(within.size))
    steps = np.diff(times.values[rows])
    inner = np.ones(len(steps), bool)
    inner[within.ends[:-1] - 1] = False
    if (back := inner & (steps < 0)).any():
        first, then = rows[(at := int(back.argmax())) : at + 2]
        raise InputError(
            f"{argument} must be in order of time, but row {then} (from 0), {times.shown(then)}, comes "
            f"after row {first}, {times.shown(first)}: sort it, or leave the index out"
        )
    forward = steps[inner & (steps > 0)]
    long = inner & (steps > GAP * (np.median(forward) if len(forward) else 0))
    found = np.empty(len(rows), np.int64)
    found[rows] = np.cumsum(np.r_[0, long | ~inner])[: len(rows)]
    if not long.any():
        return Pieces(found, None)
    first, then = rows[(at := int(long.argmax())) : at + 2]
    count = "a gap" if long.sum() == 1 else f"{long.sum()} gaps"
    return Pieces(
        found,
        f"{argument} has {count} in time, the first between row {first} (from 0), "
        f"{times.shown(first)}, and row {then}, {times.shown(then)}; pairs never span one",
    )
