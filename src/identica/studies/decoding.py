"""What a simple decoder reads off codes: one for all models, fitted to what was before the test."""

from __future__ import annotations

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
    """Codes N×n in order of time, and what they are to tell: factors N×d, positions N or angles N."""

    codes: Array
    label: Array

    def split(self, first: int) -> tuple[Labelled, Labelled]:
        """The first rows, and the others."""
        before, after = (
            Labelled(self.codes[rows], self.label[rows])
            for rows in (slice(first), slice(first, None))
        )
        return before, after

    def smoothed(self, window: int) -> Labelled:
        """The means of codes over a window in time, which is cut short at the ends.

        >>> Labelled(np.array([[0.0], [3.0], [0.0]]), np.zeros(3)).smoothed(3).codes.ravel()
        array([1.5, 1. , 1.5])
        """
        from scipy.ndimage import uniform_filter1d

        codes, inside = (
            uniform_filter1d(values, window, axis=0, mode="constant")
            for values in (self.codes, np.ones((len(self.codes), 1)))
        )
        return Labelled(np.asarray(codes / inside), self.label)


def train_rows(rows: int) -> int:
    """How many rows are to fit to; the others, the last fifth, are the test."""
    return rows * 4 // 5


def choose(known: Labelled) -> tuple[Labelled, Labelled]:
    """Of what is to fit to, the first seven eighths, and the last, by which settings are chosen."""
    return known.split(len(known.codes) * 7 // 8)


def scores(what: str, known: Labelled, test: Labelled) -> dict[str, float]:
    """The scores of a decoder that is fitted to known codes, on those of a test.

    Each comes twice: of the codes as they are, and of their means over the window in time that is best for
    the last eighth of the known ones.

    Args:
        what: see `decode`.
    """
    window = best_window(what, known)
    return {
        name + ending: value
        for width, ending in ((1, ""), (window, SMOOTHED))
        for name, value in _scores(what, known.smoothed(width), test.smoothed(width)).items()
    }


def best_window(what: str, known: Labelled) -> int:
    """The window over which codes of the last eighth, averaged, are best decoded."""
    before, after = choose(known)

    def missed(window: int) -> float:
        smooth = after.smoothed(window)
        return error(what, smooth.label, decode(what, before.smoothed(window), smooth.codes))

    return min(WINDOWS, key=missed)


def _scores(what: str, known: Labelled, test: Labelled) -> dict[str, float]:
    wrong = error(what, test.label, decode(what, known, test.codes))
    if what == "factors":
        return {"r2": 1 - wrong, "mcc": mcc(test.label, test.codes)}
    return {f"{what}_error": wrong}


def decode(what: str, known: Labelled, codes: Array) -> Array:
    """What codes say, by a decoder that is fitted to known ones.

    Args:
        what: "factors" (a linear map), "position" (the mean of the nearest codes; how many of them, the
            last eighth decides) or "angle" (the angle of two codes, after the best rotation or reflection).
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
    """How far off what was decoded is, in [0, 1].

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
    """The turn, and the sign of the angle before, by which the median error of known codes is least."""
    some = slice(None, None, -(-len(known.codes) // ENOUGH))
    angle, label = angles(known.codes[some]), known.label[some]
    tried = [(turn, sign) for sign in (1, -1) for turn in np.linspace(-np.pi, np.pi, TURNS, False)]

    def missed(way: tuple[float, int]) -> float:
        return error("angle", label, way[1] * angle + way[0])

    turn, sign = min(tried, key=missed)
    return float(turn), sign
