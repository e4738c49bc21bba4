"""What a simple decoder reads off codes: one for all models, fitted to what was before the test."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.datasets.recordings import TRACK
from identica.metrics import mcc

Array = NDArray[np.float64]

NEIGHBOURS = (5, 15, 50)
TURNS = 360  # rotations that are tried
ENOUGH = 20_000  # codes by which a rotation is found


class Split(NamedTuple):
    """Rows in order of time: to fit to, among them the last ones to choose by, and to test on.

    >>> Split.of(1000)
    Split(kept=700, fitted=800, total=1000)
    """

    kept: int
    fitted: int
    total: int

    @classmethod
    def of(cls, rows: int) -> Split:
        """The last fifth is the test; of the others, the last eighth is to choose by."""
        fitted = rows * 4 // 5
        return cls(fitted * 7 // 8, fitted, rows)


class Labelled(NamedTuple):
    """Codes N×n, and what they are to tell: factors N×d, positions N or angles N."""

    codes: Array
    label: Array


# The scores of what is decoded, each in [0, 1].
SCORES = {"factors": ("r2", "mcc"), "position": ("position_error",), "angle": ("angle_error",)}


def decode(what: str, known: Labelled, codes: Array) -> Array:
    """What codes say, by a decoder that is fitted to known ones in order of time.

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
    first = len(known.codes) * 7 // 8
    before, after = (Labelled(*(part[rows] for part in known)) for rows in _halves(first))

    def missed(k: int) -> float:
        return error(what, after.label, _nearest(before, after.codes, k))

    return _nearest(known, codes, min(NEIGHBOURS, key=missed))


def scores(what: str, known: Labelled, test: Labelled) -> dict[str, float]:
    """The scores of a decoder on codes that it was not fitted to."""
    found = decode(what, known, test.codes)
    if what == "factors":
        return {
            "r2": 1 - error(what, test.label, found),
            "mcc": mcc(test.label, test.codes),
        }
    return {SCORES[what][0]: error(what, test.label, found)}


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


def _halves(first: int) -> tuple[slice, slice]:
    return slice(first), slice(first, None)


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
