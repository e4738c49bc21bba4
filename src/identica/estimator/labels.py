"""Positives by labels: rows of the same class, or near each other in continuous labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_array
from identica.errors import InputError
from identica.estimator.sequences import Indices, is_missing

NEIGHBOURS = (
    16,
    256,
)  # rows near in label that a positive is drawn from: a hundredth, within these


@dataclass(frozen=True)
class Labels:
    """Labels of rows, by position in time.

    Attributes:
        classes: class of each row, from 0.
        places: continuous labels N×m, each of unit variance; m may be 0.
        apart: rows closer in time than this are never paired, as their windows overlap.
    """

    classes: Indices
    places: NDArray[np.float64]
    apart: int = 1


class Partners:
    """Draws positives of rows among a subset of the rows."""

    def __init__(self, labels: Labels, among: Indices) -> None:
        from scipy.spatial import cKDTree

        self.labels = labels
        classes = labels.classes[among]
        order = np.argsort(classes, kind="stable")
        self.parts = np.split(among[order], np.flatnonzero(np.diff(classes[order])) + 1)
        self.part_of = {int(labels.classes[part[0]]): k for k, part in enumerate(self.parts)}
        continuous = labels.places.shape[1] > 0
        self.trees = [cKDTree(labels.places[part]) if continuous else None for part in self.parts]

    def paired(self) -> Indices:
        """The rows that have a partner."""
        return np.sort(np.concatenate([part for part in self.parts if len(part) > 1]))

    def __call__(self, rows: Indices, chance: NDArray[np.float64]) -> Indices:
        """A partner of each row, by a number from 0 to 1 for each."""
        found = np.empty_like(rows)
        classes = self.labels.classes[rows]
        for kind in np.unique(classes):
            mine = classes == kind
            near, share = self._near(self.part_of[int(kind)], rows[mine], chance[mine])
            # rows too near in time come last, so that they are drawn only where there are no others
            close = np.abs(near - rows[mine, None]) < self.labels.apart
            order = np.argsort(close, axis=1, kind="stable")
            drawn = (share * np.maximum((~close).sum(1), 1)).astype(int)
            every = np.arange(len(near))
            found[mine] = near[every, order[every, drawn]]
        return found

    def _near(
        self, k: int, rows: Indices, chance: NDArray[np.float64]
    ) -> tuple[Indices, NDArray[np.float64]]:
        """Candidates for each row, N×K, and a number from 0 to 1 by which one of them is drawn."""
        part, tree, apart = self.parts[k], self.trees[k], self.labels.apart
        if tree is None:  # any of the class, and the next ones in case it is too near in time
            start = (chance * len(part)).astype(int)
            near = part[(start[:, None] + np.arange(min(2 * apart, len(part)))) % len(part)]
            return near, np.zeros(len(rows))
        least, most = NEIGHBOURS
        count = min(len(part), max(least, min(most, len(part) // 100)) + 2 * apart)
        places = self.labels.places[rows]
        return part[tree.query(places, k=count)[1].reshape(len(rows), count)], chance


def as_labels(labels: Any, rows: int) -> Labels:
    """Parse labels: numbers with a fraction are continuous, all others are classes.

    Args:
        labels: N, or N×m for several at once (a data frame may hold both kinds).

    >>> as_labels(["a", "b", "a"], 3).classes.tolist()
    [0, 1, 0]
    """
    if hasattr(labels, "columns"):
        columns = [np.asarray(labels[name]) for name in labels.columns]
    else:
        array = as_array("labels", labels)
        if array.ndim not in (1, 2):
            raise InputError(
                f"labels must have shape N or N×m for {rows} rows of X, got {array.shape}"
            )
        columns = [array] if array.ndim == 1 else list(array.T)
    discrete, continuous = [], []
    for column in columns:
        if column.shape != (rows,):
            raise InputError(
                f"labels must have one row for each of {rows} rows of X, got {len(column)}"
            )
        if column.dtype.kind != "f":
            missing = [is_missing(entry) for entry in column] if column.dtype.kind == "O" else []
            if any(missing):
                row = missing.index(True)
                raise InputError(f"labels must label every row, but row {row} (from 0) has none")
            discrete.append(np.unique(column.astype(str), return_inverse=True)[1])
            continue
        if not np.isfinite(column).all():
            row = int((~np.isfinite(column)).argmax())
            raise InputError(f"labels must be finite, but row {row} (from 0) is not")
        with np.errstate(over="ignore", invalid="ignore"):
            spread = column.std()
        if not 0 < spread < np.inf:
            raise InputError(
                "labels must vary, by less than 1e150, but a column of them is constant or varies more"
            )
        continuous.append((column - column.mean()) / spread)
    classes = np.zeros(rows, np.int64)
    if discrete:
        classes = np.unique(np.stack(discrete, 1), axis=0, return_inverse=True)[1].reshape(rows)
    if np.bincount(classes).max() < 2:
        raise InputError("labels must hold a class at least twice, or be numbers with a fraction")
    places = np.stack(continuous, 1).astype(np.float64) if continuous else np.empty((rows, 0))
    return Labels(classes, places)
