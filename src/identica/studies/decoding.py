"""What a simple decoder reads off codes: the same for all models, fitted to the bins before the test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.datasets.recordings import TRACK
from identica.metrics import mcc

Array = NDArray[np.float64]

NEIGHBOURS = (5, 15, 50)
WINDOWS = (1, 3, 5, 7, 11, 15, 21, 31)
TURNS = 360  # rotations that are tried
ENOUGH = 20_000  # codes by which a rotation is found
SMOOTHED = "_smoothed"

# The scores of what is decoded, each in [0, 1].
SCORES = {"factors": ("r2", "mcc"), "position": ("position_error",), "angle": ("angle_error",)}
SCORES = {what: (*some, *(name + SMOOTHED for name in some)) for what, some in SCORES.items()}


class Labelled(NamedTuple):
    """Codes N×n in order of time, and what is decoded from them: factors N×d, positions N or angles N."""

    codes: Array
    label: Array

    def split(self, first: int) -> Parts:
        """The first rows, and the others."""
        codes, label = self
        return Labelled(codes[:first], label[:first]), Labelled(codes[first:], label[first:])


Parts = tuple[Labelled, Labelled]  # for training, and for the test


def smoothed(values: Array, window: int) -> Array:
    """Moving averages of rows N×n over a window in time, which is truncated at the ends.

    >>> smoothed(np.array([[0.0], [3.0], [0.0]]), 3).ravel()
    array([1.5, 1. , 1.5])
    """
    from scipy.ndimage import uniform_filter1d

    sums, inside = (
        uniform_filter1d(some, window, axis=0, mode="constant")
        for some in (values, np.ones((len(values), 1)))
    )
    return np.asarray(sums / inside)


def train_rows(rows: int) -> int:
    """How many rows are for training; the others, the last fifth, are the test."""
    return rows * 4 // 5


def choose(known: Labelled) -> Parts:
    """The first seven eighths of the training data, and the last, on which settings are chosen."""
    return known.split(len(known.codes) * 7 // 8)


def scores(what: str, coded: Callable[[int], Parts]) -> tuple[dict[str, float], int]:
    """The test scores of a decoder fitted to the training data, and the best window for smoothing.

    Each score comes twice: of the codes as they are, and smoothed in time by the window that is best for
    the last eighth of the training data.

    Args:
        what: see `decode`.
        coded: training and test data, smoothed by a window.
    """
    by_window = {window: coded(window) for window in WINDOWS}
    window = min(WINDOWS, key=lambda width: _missed(what, by_window[width][0]))
    found = {
        name + ending: value
        for width, ending in ((1, ""), (window, SMOOTHED))
        for name, value in _scores(what, *by_window[width]).items()
    }
    return found, window


def _missed(what: str, known: Labelled) -> float:
    """The error for the last eighth of a decoder fitted to the others."""
    before, after = choose(known)
    return error(what, after.label, decode(what, before, after.codes))


def _scores(what: str, known: Labelled, test: Labelled) -> dict[str, float]:
    if what == "angle":
        known = test  # nothing but the frame is fitted: its zero and its sense of rotation
    wrong = error(what, test.label, decode(what, known, test.codes))
    if what == "factors":
        return {"r2": 1 - wrong, "mcc": mcc(test.label, test.codes)}
    return {f"{what}_error": wrong}


def decode(what: str, known: Labelled, codes: Array) -> Array:
    """What a decoder that is fitted to known codes reads off others.

    Args:
        what: "factors" (a linear map), "position" (the mean over the nearest codes, as many as suit the
            last eighth best) or "angle" (the angle of two codes, after the best rotation or reflection).
    """
    if what == "factors":
        from sklearn.linear_model import LinearRegression

        return np.asarray(LinearRegression().fit(*known).predict(codes))
    if what == "angle":
        turn, sign = rotation(known)
        return wrapped(sign * angles(codes) + turn)
    before, after = choose(known)

    def missed(k: int) -> float:
        return error(what, after.label, _nearest(before, after.codes, k))

    return _nearest(known, codes, min(NEIGHBOURS, key=missed))


def error(what: str, label: Array, found: Array) -> float:
    """The error of what was decoded, in [0, 1].

    1 − R² for factors; for positions and angles the median error as a share of the track, and of 180°.
    """
    if what == "factors":
        from sklearn.metrics import r2_score

        r2 = r2_score(label, found, multioutput="raw_values")
        return 1 - float(np.maximum(r2, 0.0).mean())
    if what == "angle":
        return float(np.median(np.abs(wrapped(found - label)))) / np.pi
    return min(1.0, float(np.median(np.abs(found - label))) / TRACK)


def _nearest(known: Labelled, codes: Array, k: int) -> Array:
    from sklearn.neighbors import KNeighborsRegressor

    return np.asarray(KNeighborsRegressor(min(k, len(known.codes))).fit(*known).predict(codes))


def angles(codes: Array) -> Array:
    """The angle of two codes, in radians."""
    return np.asarray(np.arctan2(codes[:, 1], codes[:, 0]))


def wrapped(angle: Any) -> Array:
    """Angles from −π to π."""
    return np.asarray((np.asarray(angle) + np.pi) % (2 * np.pi) - np.pi)


def rotation(known: Labelled) -> tuple[float, int]:
    """The turn, and the sign of the angle before it, with the least median error of known codes."""
    some = slice(None, None, -(-len(known.codes) // ENOUGH))
    angle, label = angles(known.codes[some]), known.label[some]
    tried = [(turn, sign) for sign in (1, -1) for turn in np.linspace(-np.pi, np.pi, TURNS, False)]

    def missed(way: tuple[float, int]) -> float:
        return error("angle", label, way[1] * angle + way[0])

    turn, sign = min(tried, key=missed)
    return float(turn), sign
