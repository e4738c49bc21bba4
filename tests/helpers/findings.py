"""Measurements at the limits between two findings."""

import math

import numpy as np

from identica.diagnosis.codes import Score
from identica.diagnosis.conditional import GeneralizedNormalFit, Positives
from identica.diagnosis.dimension import Dimensions, Intrinsic
from identica.diagnosis.sequence import Rows


def rows(independent=1000.0, codes=1, noise=0.0):
    return Rows(independent, 1, np.full(codes, noise / 2), np.full(codes, noise))


def above(x):
    return math.nextafter(x, math.inf)


def below(x):
    return math.nextafter(x, -math.inf)


def scored(bits, error=0.0, control=-1.0, control_error=0.0):
    return Score(bits, error, control, control_error, None, 10.0)


def fitted(*shapes, misfit=0.0, concentration=None):
    """Fits whose intervals are a twentieth to each side of the shape."""
    codes = [
        None if s is None else GeneralizedNormalFit(s, 1.0, (0.95 * s, 1.05 * s), (0.9, 1.1), 100)
        for s in shapes
    ]
    return Positives(codes, concentration, misfit, 1.0, 0.0)


def filling(dimension, own, error=0.0):
    intrinsic = Intrinsic(dimension, error, 3)
    return Dimensions([True] * 3, np.ones(3), np.ones(3), intrinsic, None, None, None, own)
