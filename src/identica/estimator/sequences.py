"""Rows of sequences: which of them form pairs, and which are neighbours in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_array, count
from identica.errors import InputError

Indices = NDArray[np.int64]
Lag = int | tuple[int, int]


@dataclass(frozen=True)
class Sequences:
    """Rows of sequences, paired `low` to `high` steps apart and never across the end of one.

    Memory grows with the number of sequences, not of rows, as long as each is in one piece. A position
    is the place of a row in order of sequence and time.

    Attributes:
        low, high: least and greatest lag; a lag is uniform between them, cut at the sequence's end.
        ends: position just past the end of each sequence, ascending.
        order: the row at each position; None if rows are in that order already. Rows that are
            not in it belong to no sequence.
    """

    low: int
    high: int
    ends: Indices
    order: Indices | None = None

    @cached_property
    def _until(self) -> Indices:
        """Pairs in all sequences up to each."""
        return np.cumsum(np.maximum(np.diff(self.ends, prepend=0) - self.low, 0))

    @property
    def size(self) -> int:
        """How many rows the sequences have in all."""
        return int(self.ends[-1])

    @property
    def pairs(self) -> int:
        """How many rows have another one `low` steps later."""
        return int(self._until[-1])

    def at(self, chosen: Indices, steps: Indices) -> tuple[Indices, Indices]:
        """Positions (i, j) of the chosen pairs, with `steps` from `low` to `high` between them."""
        sequence = np.searchsorted(self._until, chosen, side="right")
        # counted from the end of the sequence, whose last `low` rows begin no pair
        first = self.ends[sequence] - self.low - (self._until[sequence] - chosen)
        return first, np.minimum(first + steps, self.ends[sequence] - 1)

    def rows(self, positions: Indices) -> Indices:
        """The rows at some positions."""
        return positions if self.order is None else self.order[positions]

    def around(self, positions: Indices, width: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Positions N×width of the neighbours in time, and which of them lie within the sequence.

        >>> where, inside = sequences(5).around(np.array([0, 2]), 3)
        >>> where[inside].tolist()
        [0, 1, 1, 2, 3]
        """
        where = positions[:, None] + np.arange(width) - (width - 1) // 2
        sequence = np.searchsorted(self.ends, positions, side="right")
        first, end = np.r_[0, self.ends[:-1]][sequence, None], self.ends[sequence, None]
        inside = (where >= first) & (where < end)
        return np.clip(where, first, end - 1), inside

    def apart(self, more: int) -> Sequences:
        """The same sequences, with pairs that are some steps further apart."""
        return replace(self, low=self.low + more, high=self.high + more)

    def without(self, missing: NDArray[np.bool_]) -> Sequences:
        """The same sequences without some rows, and cut there: no pair or window spans a missing row.

        >>> sequences(6).without(np.array([False, False, True, False, False, False])).ends.tolist()
        [2, 5]
        """
        rows = self.rows(np.arange(self.size))
        kept = ~missing[rows]
        before = np.cumsum(kept)
        ends = np.unique(np.r_[before[self.ends - 1], before[~kept]])
        return replace(self, ends=ends[ends > 0] if kept.any() else ends, order=rows[kept])


def sequences(rows: int, lag: Lag = 1, groups: Any = None) -> Sequences:
    """Sequences of `rows` rows in all.

    Args:
        rows: number of rows.
        lag: steps between the members of a pair: a number, or (low, high) for a range.
        groups: for each row the sequence it belongs to, of any type; rows of one sequence are in
            order of time. By default all rows are one sequence.

    >>> s = sequences(6, groups=["a", "a", "a", "b", "b", "a"])
    >>> [s.rows(at).tolist() for at in s.at(np.arange(s.pairs), np.ones(s.pairs, int))]
    [[0, 1, 2, 3], [1, 2, 5, 4]]
    """
    low, high = _lags(lag)
    if groups is None:
        return Sequences(low, high, np.array([rows]))
    return _grouped(rows, low, high, groups)


def _lags(lag: Lag) -> tuple[int, int]:
    if isinstance(lag, (tuple, list)):
        if len(lag) != 2 or count("lag", lag[0]) > count("lag", lag[1]):
            raise InputError(f"lag must be a whole number or (low, high), got {lag!r}")
        return int(lag[0]), int(lag[1])
    return count("lag", lag), int(lag)


def _grouped(rows: int, low: int, high: int, groups: Any) -> Sequences:
    labels = as_array("groups", groups)
    if labels.shape != (rows,):
        raise InputError(f"groups must have one entry for each of {rows} rows, got {labels.shape}")
    if labels.dtype.kind == "O":
        missing = np.array([is_missing(label) for label in labels])
        texts = [str(label) for label in labels]
        numbers = {text: number for number, text in enumerate(sorted(set(texts)))}
        labels = np.array([numbers[text] for text in texts])
    else:
        missing = labels != labels  # NaN and NaT
    if missing.any():
        row = int(missing.argmax())
        raise InputError(f"groups must label every row, but row {row} (from 0) has none")
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    heads = labels[np.r_[0, changes]]
    if len(np.unique(heads)) == len(heads):  # each in one piece
        return Sequences(low, high, np.r_[changes, rows])
    order = np.argsort(labels, kind="stable")
    changes = np.flatnonzero(np.diff(np.unique(labels, return_inverse=True)[1][order])) + 1
    return Sequences(low, high, np.r_[changes, rows], order)


def is_missing(label: Any) -> bool:
    """Whether an object is None, NaN, NaT or pandas' NA."""
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def check_pairs(within: Sequences, lag: Lag) -> None:
    """Raise unless there are at least two pairs."""
    rows = within.size
    if within.high >= max(rows, 2):
        raise InputError(f"lag must be smaller than the number of rows, {rows}, got {lag}")
    if within.pairs < 2:
        raise InputError(
            f"X must hold at least 2 pairs of rows {within.low} apart within a sequence, got "
            f"{within.pairs} (n_samples={rows} in {len(within.ends)} sequences)"
        )
