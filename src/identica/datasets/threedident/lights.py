"""Sun, area light and spotlight: directions and irradiance at a point."""

from __future__ import annotations

import math

import numpy as np

from identica.datasets.threedident._compiled import inlined
from identica.datasets.threedident.scene import Area, Spot, Sun
from identica.datasets.threedident.vectors import Vector, along, dot, scale, subtract, unit


@inlined
def sun_sample(sun: Sun, x: float, y: float) -> tuple[Vector, float]:
    """Direction to the point (x, y) of the sun's unit disc, and the irradiance across it."""
    a, b = sun.sine * x, sun.sine * y
    c = math.sqrt(1 - a * a - b * b)
    return (a, b, c), sun.strength / c


@inlined
def area_sample(area: Area, p: Vector, x: float, y: float) -> tuple[Vector, float, float]:
    """Direction and distance from p to (x, y) of the area light's unit square, and the irradiance."""
    offset = subtract((area.side * x, area.side * y, area.height), p)
    far = math.sqrt(dot(offset, offset))
    d = scale(1 / far, offset)
    return d, far, area.radiance * area.side * area.side * max(d[2], 0.0) / (far * far)


@inlined
def spot_sample(
    spot: Spot, place: Vector, aim: Vector, p: Vector, x: float, y: float
) -> tuple[Vector, float, float]:
    """The same for (x, y) of the spotlight's unit disc, which always faces p."""
    towards = subtract(place, p)
    facing = unit(towards)
    # Any two directions across `facing` will do (Duff et al. 2017).
    sign = math.copysign(1.0, facing[2])
    a = -1 / (sign + facing[2])
    b = facing[0] * facing[1] * a
    side = (1 + sign * facing[0] * facing[0] * a, sign * b, -sign * facing[0])
    other = (b, sign + facing[1] * facing[1] * a, -facing[1])
    offset = along(along(towards, spot.radius * x, side), spot.radius * y, other)
    far = math.sqrt(dot(offset, offset))
    d = scale(1 / far, offset)
    dim = cone(spot, -dot(d, aim))
    return d, far, spot.intensity * dim * dot(d, facing) / (far * far)


@inlined
def cone(spot: Spot, cosine: float) -> float:
    """1 inside the cone, 0 outside, a smooth step of the cosine between."""
    x = min(max((cosine - spot.cosine) / ((1 - spot.cosine) * spot.blend), 0.0), 1.0)
    return x * x * (3 - 2 * x)


# The mean of a function of x over the unit disc is a Gauss-Chebyshev sum (second kind).
_ANGLES = np.pi * np.arange(1, 9) / 9
DISC_X = np.cos(_ANGLES)
DISC_WEIGHT = 2 / 9 * np.sin(_ANGLES) ** 2


@inlined
def spot_mean(spot: Spot, place: Vector, aim: Vector, p: Vector) -> tuple[Vector, float, float]:
    """The whole spotlight as seen from p with nothing in its way: its middle and mean irradiance."""
    offset = subtract(place, p)
    far = math.sqrt(dot(offset, offset))
    d = scale(1 / far, offset)
    ratio = spot.radius / far
    cosine = -dot(d, aim)
    sway = ratio * math.sqrt(max(1 - cosine * cosine, 0.0))
    total = 0.0
    if cosine + sway > spot.cosine:
        for k in range(len(DISC_X)):
            x = DISC_X[k]
            # 1/√(1 + ρ²) for points ρ from the middle of the disc, ρ² averaged at this x.
            shrink = 1 - ratio * ratio * (1 + 2 * x * x) / 6
            total += DISC_WEIGHT[k] * cone(spot, (cosine + sway * x) * shrink)
    return d, far, spot.intensity * total / (far * far)
