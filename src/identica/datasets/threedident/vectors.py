"""Three-vectors as plain tuples, which compile to registers."""

from __future__ import annotations

import math

import numpy as np

from identica.datasets.threedident._compiled import inlined

Vector = tuple[float, float, float]


@inlined
def add(a: Vector, b: Vector) -> Vector:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inlined
def subtract(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inlined
def scale(s: float, a: Vector) -> Vector:
    return s * a[0], s * a[1], s * a[2]


@inlined
def along(o: Vector, t: float, d: Vector) -> Vector:
    """The point o + t·d."""
    return o[0] + t * d[0], o[1] + t * d[1], o[2] + t * d[2]


@inlined
def dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined
def unit(a: Vector) -> Vector:
    return scale(1 / math.sqrt(dot(a, a)), a)


@inlined
def single(a: Vector) -> Vector:
    """The vector in single precision: twice as many numbers fit a vector instruction."""
    return np.float32(a[0]), np.float32(a[1]), np.float32(a[2])  # type: ignore[return-value]
