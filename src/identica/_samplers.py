"""Random draws at the speed of the random bits: tables with exact rejection, on the CPU.

A density on an interval is covered by boxes of equal area. A box is chosen by its number, a point and
a height within it are drawn, and the point is kept if the height lies below the density. Nearly all
heights lie below the lowest value of the density in the box, so that the density itself is hardly
ever computed; the draws are exact whatever the boxes
(Devroye, "Non-uniform random variate generation", 1986, chapters II and VIII).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from identica._compiled import compiler
from identica.errors import InputError
from identica.spaces import Box, Space, Sphere

Array = NDArray[Any]
BINS = 512
LEAST_SHAPE = 0.02  # the smallest β that is drawn from; the squares of its draws are finite
POWER, ANGLE = 0, 1  # kinds of density
# unsigned numbers as indices: for others, compiled code first asks whether they are negative
ZERO, ONE, TWO, THREE = (np.uint64(i) for i in range(4))


class Law(NamedTuple):
    """A density: e^{−x^β}, or that of the angle of a von Mises–Fisher draw, sin^{m−1}θ e^{κ cos θ}, divided
    by its value at the mode."""

    kind: int
    first: float  # β of a power, m of an angle
    second: float  # κ of an angle
    mode: float  # where the density is 1


class Table(NamedTuple):
    """Boxes over a density, a row each: left edge, width, height, lowest value of the density."""

    law: Law
    boxes: Array


SUMS = ("reassoc", "contract", "nsz")  # may be taken in any order
compiled = compiler(*SUMS)
inlined = compiler(*SUMS, forceinline=True)  # for the innermost functions


@compiled
def density(law: Law, x: float) -> float:
    """The density at x."""
    if law.kind == POWER:
        return math.exp(-(x**law.first))
    # cos θ − cos θ₀ = −2 sin((θ + θ₀)/2) sin((θ − θ₀)/2): small angles keep their digits
    exponent = -2 * law.second * math.sin((x + law.mode) / 2) * math.sin((x - law.mode) / 2)
    if law.first > 1:
        exponent += (law.first - 1) * math.log(math.sin(x) / math.sin(law.mode))
    return math.exp(exponent)


@lru_cache(maxsize=128)
def power_table(beta: float) -> Table:
    """The size |x| of a draw with density ∝ e^{−|x|^β}, up to its `reach`."""
    return _table(Law(POWER, beta, 0.0, 0.0), 0.0, reach(beta))


def reach(beta: float) -> float:
    """The size |x| beyond which a density ∝ e^{−|x|^β} has 2^−63 of its mass.

    >>> round(reach(1.0) / math.log(2), 6)
    63.0
    """
    from scipy.special import gammainccinv

    if beta < LEAST_SHAPE:
        raise InputError(
            f"shape must be at least {LEAST_SHAPE} to draw from: below, sizes exceed the range of floats"
        )
    return max(1.0, float(gammainccinv(1 / beta, 2.0**-63))) ** (1 / beta)


@lru_cache(maxsize=128)
def angle_table(m: int, kappa: float) -> Table:
    """The angle between a von Mises–Fisher draw on S^m and its centre."""
    # the mode of sin^{m−1}θ e^{κ cos θ}: (m−1) cos θ = κ sin²θ
    a = m - 1
    ratio = a / (2 * kappa) if kappa else math.inf
    cosine = 1 / (math.hypot(ratio, 1.0) + ratio) if a else 1.0
    mode = math.atan2(math.sqrt(2 * ratio * cosine) if kappa else 1.0, cosine) if a else 0.0
    curvature = kappa * cosine + (a / math.sin(mode) ** 2 if a else 0.0)
    # beyond 40 standard deviations nothing is left in float64
    far = 40 / math.sqrt(max(curvature, 0.1))
    law = Law(ANGLE, float(m), kappa, mode)
    return _table(law, max(0.0, mode - far), min(math.pi, mode + far))


def _table(law: Law, low: float, high: float) -> Table:
    """As many boxes of equal area as the table holds, around a density that rises up to its mode and
    falls after it."""
    edges, smallest, largest = np.empty(BINS + 1), 0.0, high - low
    for _ in range(300):  # the smallest area with which they reach the end
        area = (smallest + largest) / 2
        if _cover(law, low, high, area, edges) < high:
            smallest = area
        else:
            largest = area
    _cover(law, low, high, largest, edges)
    edges[-1] = high
    values = np.array([density(law, float(x)) for x in edges])
    width = np.diff(edges)
    # a hair lower, so that rounding never breaks the bound; above, the boxes have room already
    floor = np.minimum(values[1:], values[:-1]) * (1 - 1e-12)
    top = largest / width * (1 + 1e-12)
    return Table(law, np.stack([edges[:-1], width, top, floor], axis=1))


@compiled
def _cover(law: Law, low: float, high: float, area: float, edges: Array) -> float:
    """Edges of boxes of a given area from the left; how far they reach."""
    x = low
    for k in range(BINS):
        edges[k] = x
        if x >= law.mode:
            height = density(law, x)
            x = x + area / height if height * (high - x) > area else high
            continue
        # rising: the widest box whose height is the density at its right end, or at the mode
        near, far = x, high
        for _ in range(50):
            middle = (near + far) / 2
            height = density(law, min(middle, law.mode))
            if height * (middle - x) > area:
                far = middle
            else:
                near = middle
        x = near
    edges[BINS] = x
    return x


# --- random bits: SplitMix64 (Steele, Lea & Flood, 2014) -----------------------------------------
# A word is a hash of its place in the sequence, so that nothing but a counter is carried along.


@inlined
def _bits(place: Any) -> Any:
    """The 64 random bits at a place."""
    z = place * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def _unit(bits: Any) -> float:
    """A number in [0, 1) from 64 bits."""
    return np.float64(np.int64(bits >> np.uint64(11))) * 2.0**-53


@inlined
def _draw(table: Table, place: Any) -> Any:
    """One draw of a table's density with a random sign, and the next place.

    Of the first word, 9 bits choose the box, 1 the sign and the others the height; the second is the
    point. The sign is set by arithmetic: the processor would mispredict every second branch.
    """
    boxes = table.boxes
    while True:
        bits, point = _bits(place), _unit(_bits(place + np.uint64(1)))
        place += np.uint64(2)
        k = bits & np.uint64(BINS - 1)
        sign = np.float64(np.int64((bits >> np.uint64(8)) & np.uint64(2))) - 1.0
        x = boxes[k, ZERO] + boxes[k, ONE] * point
        height = boxes[k, TWO] * _unit(bits)
        if height <= boxes[k, THREE] or height <= density(table.law, x):
            return sign * x, place


# --- draws around centres ------------------------------------------------------------------------


@compiled
def around(centre: Array, scale: float, table: Table, out: Array, place: Any) -> None:
    """centre + scale·noise in R^n."""
    rows, n = centre.shape
    for i in range(rows):
        for d in range(n):
            noise, place = _draw(table, place)
            out[i, d] = centre[i, d] + scale * noise


@compiled
def projected(
    centre: Array, radius: float, scale: float, table: Table, out: Array, place: Any
) -> None:
    """radius·centre + scale·noise, projected on the unit sphere that the centres lie on."""
    rows, n = centre.shape
    # only their ratio matters
    radius, scale = radius / max(radius, scale), scale / max(radius, scale)
    for i in range(rows):
        square = 0.0
        for d in range(n):
            noise, place = _draw(table, place)
            x = radius * centre[i, d] + scale * noise
            square += x * x
            out[i, d] = x
        factor = 1 / math.sqrt(square)
        for d in range(n):
            out[i, d] *= factor


@compiled
def in_box(
    centre: Array, scale: float, table: Table, low: Array, high: Array, place: Any, out: Array
) -> None:
    """centre + scale·noise, truncated to a box: coordinates outside are drawn again."""
    rows, n = centre.shape
    # listed by arithmetic: the processor would mispredict too many branches
    row, column, count = np.empty(rows * n, np.int32), np.empty(rows * n, np.int32), 0
    for i in range(rows):
        for d in range(n):
            noise, place = _draw(table, place)
            x = centre[i, d] + scale * noise
            out[i, d] = x
            row[count], column[count] = i, d
            count += (x < low[d]) | (x > high[d])
    while count:
        left = 0
        for k in range(count):
            i, d = row[k], column[k]
            a, b = low[d], high[d]
            c = min(max(centre[i, d], a), b)
            if is_wide(table.law.first, max(c - a, b - c) / scale):
                x, place = _under_tangents(c, scale, table.law.first, a, b, place)
            else:
                noise, place = _draw(table, place)
                x = c + scale * noise
            out[i, d] = x
            row[left], column[left] = i, d
            left += (x < a) | (x > b)
        count = left


@compiled
def is_wide(beta: float, reach: float) -> bool:
    """Whether little of a density ∝ e^{−|x|^β} lies within the reach, so that `_under_tangents` accepts
    more than draws of all of it. Both accept at least one draw in twenty."""
    return 1 - beta * reach**beta > min(0.5, math.sqrt(beta))


@compiled
def _under_tangents(c: float, scale: float, beta: float, a: float, b: float, place: Any) -> Any:
    """A draw of the density ∝ e^{−|(x − c)/λ|^β} within [a, b].

    The logarithm of the density of log|x − c| is concave, so on each side of c it lies below its tangent
    at the wall: e^{−t^β} ≤ e^{−w} (t/u)^{−βw} for t ≤ u, with w = u^β. That is drawn, and thinned.
    """
    left, right = (c - a) / scale, (b - c) / scale
    left_slope, right_slope = 1 - beta * left**beta, 1 - beta * right**beta
    left_area = left * math.exp(-(left**beta)) / left_slope
    right_area = right * math.exp(-(right**beta)) / right_slope
    while True:
        go_left = _unit(_bits(place)) * (left_area + right_area) < left_area
        length, slope = (c - a, left_slope) if go_left else (b - c, right_slope)
        down = -math.log(1 - _unit(_bits(place + np.uint64(1)))) / slope
        lost = (1 - slope) / beta * (math.exp(-beta * down) - 1 + beta * down)
        keep = _unit(_bits(place + np.uint64(2))) < math.exp(-lost)
        place += np.uint64(3)
        if keep:
            size = length * math.exp(-down)
            return (c - size if go_left else c + size), place


@compiled
def on_sphere(centre: Array, angles: Table, side: Array, place: Any, out: Array) -> bool:
    """A von Mises–Fisher draw around each centre on the unit sphere: an angle, and a direction at right
    angles to it, from a vector `side`; False if such a vector is parallel to its centre."""
    rows, n = centre.shape
    apart = True
    for i in range(rows):
        angle, place = _draw(angles, place)
        along = 0.0
        for d in range(n):
            along += side[i, d] * centre[i, d]
        square = 0.0
        for d in range(n):
            x = side[i, d] - along * centre[i, d]
            square += x * x
        apart &= square > 1e-12 * along * along
        gap = 2 * math.sin(angle / 2) ** 2  # 1 − cos: small angles keep their digits
        sine = math.sqrt(gap * (2 - gap) / square)
        cosine = 1 - gap - sine * along
        for d in range(n):
            out[i, d] = cosine * centre[i, d] + sine * side[i, d]
    return apart


# --- the same for tensors ------------------------------------------------------------------------


def _rows(centre: Tensor) -> Array:
    """The centres as rows of float32 or float64 on the CPU."""
    dtype = centre.dtype if centre.dtype == torch.float64 else torch.float32
    return centre.detach().reshape(-1, centre.shape[-1]).to("cpu", dtype).contiguous().numpy()


def _place(generator: torch.Generator) -> Any:
    """Where in the sequence of random words to start."""
    start = torch.randint(1 << 62, (1,), generator=generator, device=generator.device)
    return np.uint64(start.item())


@lru_cache(maxsize=128)
def _walls(box: Box, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The bounds of a box, a hair inside where the data type has no such number, so that rounding
    leaves no draw outside."""
    low, high = (bound.contiguous().numpy() for bound in box.bounds())
    a, b = low.astype(dtype), high.astype(dtype)
    a = np.where(a < low, np.nextafter(a, b), a)
    b = np.where(b > high, np.nextafter(b, a), b)
    return a.astype(float), b.astype(float)


def coordinatewise(
    beta: float, scale: float, space: Space, centre: Tensor, generator: torch.Generator
) -> Tensor:
    """Draws with density ∝ e^{−|x/λ|^β} per coordinate around each centre (…×n), in the space."""
    rows, table, place = _rows(centre), power_table(float(beta)), _place(generator)
    out = np.empty_like(rows)
    if isinstance(space, Box):
        low, high = _walls(space, rows.dtype)
        in_box(rows, float(scale), table, low, high, place, out)
    elif isinstance(space, Sphere):
        projected(rows / space.radius, float(space.radius), float(scale), table, out, place)
        out *= space.radius
    else:
        around(rows, float(scale), table, out, place)
    draws = torch.from_numpy(out).reshape(centre.shape).to(centre)
    # half precision may have no number between the draw and the wall
    return draws if centre.dtype in (torch.float32, torch.float64) else space.project(draws)


def von_mises_fisher(
    kappa: float, space: Sphere, centre: Tensor, generator: torch.Generator
) -> Tensor:
    """Von Mises–Fisher draws around each centre (…×n) on the sphere."""
    rows, table = _rows(centre), angle_table(space.dim - 1, float(kappa))
    out, apart = np.empty_like(rows), False
    dtype, device = torch.from_numpy(rows).dtype, generator.device
    while not apart:  # all are parallel if the centres were drawn by a generator of the same seed
        side = torch.randn(rows.shape, generator=generator, dtype=dtype, device=device)
        apart = on_sphere(rows / space.radius, table, side.cpu().numpy(), _place(generator), out)
    out *= space.radius
    return torch.from_numpy(out).reshape(centre.shape).to(centre)
