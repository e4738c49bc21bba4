"""Random draws on the CPU at the speed of the random bits: tables with exact rejection.

A density on a bounded interval is cut into bins; a bin is chosen by Walker's alias method with the
area of its box, a point and a height within the box are drawn, and the point is kept if the height
lies below the density. Nearly all heights lie below the lowest value in the bin, so the density
itself is hardly ever computed, and the draws are exact whatever the bins
(Devroye, "Non-uniform random variate generation", 1986, chapters II and III).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from identica.spaces import Box, Space, Sphere

F = TypeVar("F", bound=Callable[..., Any])
Array = NDArray[Any]
BINS = 512
POWER, ANGLE = 0, 1  # kinds of density
MASK = np.uint64((1 << 27) - 1)


class Table(NamedTuple):
    """Bins of a density: edges, highest and lowest value, and the alias method's chances."""

    kind: int
    first: float  # β of a power, m of an angle
    second: float  # κ of an angle
    edges: Array
    width: Array
    top: Array
    floor: Array
    chance: Array
    alias: Array


def compiled(function: F) -> F:
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


@compiled
def density(kind: int, first: float, second: float, x: float) -> float:
    """e^{−x^β}, or the density of the angle of a von Mises–Fisher draw, sin^{m−1}θ e^{κ(cos θ−1)}."""
    if kind == POWER:
        return math.exp(-(x**first))
    half = math.sin(x / 2)
    return math.sin(x) ** (first - 1) * math.exp(-2 * second * half * half)


@lru_cache(maxsize=128)
def power_table(beta: float) -> Table:
    """The size |x| of a draw with density ∝ e^{−|x|^β}."""
    from scipy.special import gammainccinv, gammaincinv

    # bins of equal chance, and beyond the last of them bins that halve it until nothing is left
    order, halvings = 1 / beta, 53
    equal = BINS - halvings
    inner = gammaincinv(order, np.arange(equal) / equal)
    outer = gammainccinv(order, 0.5 ** np.arange(halvings + 1) / equal)
    edges = np.concatenate([inner, outer]) ** (1 / beta)
    return _table(POWER, beta, 0.0, edges, mode=0.0)


@lru_cache(maxsize=128)
def angle_table(m: int, kappa: float) -> Table:
    """The angle between a von Mises–Fisher draw on S^m and its centre."""
    # the mode of sin^{m−1}θ e^{κ cos θ}: cos θ = (√((m−1)² + 4κ²) − (m−1)) / 2κ
    a = m - 1
    cosine = 2 * kappa / (math.sqrt(a * a + 4 * kappa * kappa) + a) if kappa or a else 1.0
    mode = math.acos(min(1.0, cosine))
    width = 1 / math.sqrt(max(kappa * cosine + (a / math.sin(mode) ** 2 if a else 0.0), 0.1))
    low, high = max(0.0, mode - 40 * width), min(math.pi, mode + 40 * width)
    # edges at equal chances of the density on a fine grid
    grid = np.linspace(low, high, 40 * BINS + 1)
    values = np.array([density(ANGLE, float(m), kappa, float(x)) for x in grid])
    total = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2)])
    # a share of even spacing keeps the outermost bins from being too wide for their box
    total = total / total[-1] + 0.05 * np.linspace(0, 1, len(grid))
    edges = np.interp(np.linspace(0, total[-1], BINS + 1), total, grid)
    edges[0], edges[-1] = low, high
    return _table(ANGLE, float(m), kappa, edges, mode)


def _table(kind: int, first: float, second: float, edges: Array, mode: float) -> Table:
    """Boxes around a density that rises up to its mode and falls after it."""
    values = np.array([density(kind, first, second, float(x)) for x in edges])
    top = np.maximum(values[1:], values[:-1])
    inside = (edges[:-1] <= mode) & (mode <= edges[1:])
    top[inside] = np.maximum(top[inside], density(kind, first, second, mode))
    floor = np.minimum(values[1:], values[:-1])
    width = np.diff(edges)
    chance, alias = _alias(top * width / (top * width).sum())
    # a hair above and below, so that rounding never breaks the bounds
    top, floor = top * (1 + 1e-12), floor * (1 - 1e-12)
    return Table(kind, first, second, edges, width, top, floor, chance, alias)


def _alias(weights: Array) -> tuple[Array, Array]:
    """Walker's alias method: keep bin k with chance[k], else take alias[k]."""
    n = len(weights)
    scaled = weights * n
    chance, alias = np.ones(n), np.arange(n)
    small = [i for i in range(n) if scaled[i] < 1]
    large = [i for i in range(n) if scaled[i] >= 1]
    while small and large:
        less, more = small.pop(), large[-1]
        chance[less], alias[less] = scaled[less], more
        scaled[more] -= 1 - scaled[less]
        if scaled[more] < 1:
            small.append(large.pop())
    return chance, alias


# --- random bits: SplitMix64 (Steele, Lea & Flood, 2014) -----------------------------------------
# A word is a hash of its place in the sequence, so that nothing but a counter is carried along.


@compiled
def _bits(place: Any) -> Any:
    """The 64 random bits at a place."""
    z = place * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _unit(bits: Any) -> float:
    """A number in [0, 1) from 64 bits."""
    return np.float64(np.int64(bits >> np.uint64(11))) * 2.0**-53


@compiled
def _draw(table: Table, place: Any) -> Any:
    """One draw of a table's density with a random sign, and the next place.

    Of the first word, 9 bits choose the bin, 1 the sign, 27 the height and 27 between bin and alias;
    the second is the point.
    """
    while True:
        bits, point = _bits(place), _unit(_bits(place + np.uint64(1)))
        place += np.uint64(2)
        k = np.int64(bits & np.uint64(BINS - 1))
        k = k if np.int64(bits >> np.uint64(37)) * 2.0**-27 < table.chance[k] else table.alias[k]
        x = table.edges[k] + table.width[k] * point
        height = table.top[k] * (np.int64((bits >> np.uint64(10)) & MASK) + 0.5) * 2.0**-27
        if height <= table.floor[k] or height <= density(table.kind, table.first, table.second, x):
            return (x if bits & np.uint64(BINS) else -x), place


# --- draws around centres ------------------------------------------------------------------------


@compiled
def around(
    centre: Array, scale: float, table: Table, radius: float, place: Any, out: Array
) -> None:
    """centre + scale·noise in R^n; with a radius, projected on that sphere."""
    rows, n = centre.shape
    for i in range(rows):
        square = 0.0
        for d in range(n):
            noise, place = _draw(table, place)
            x = centre[i, d] + scale * noise
            square += x * x
            out[i, d] = x
        if radius > 0:
            factor = radius / math.sqrt(square)
            for d in range(n):
                out[i, d] *= factor


@compiled
def in_box(
    centre: Array, scale: float, table: Table, low: Array, high: Array, place: Any, out: Array
) -> None:
    """centre + scale·noise, truncated to a box: coordinates outside are drawn again."""
    rows, n = centre.shape
    for i in range(rows):
        for d in range(n):
            c, a, b = centre[i, d], low[d], high[d]
            wide = scale > (b - a) / 2
            while True:
                if wide:  # hardly any draw falls inside: thin a uniform one instead
                    x = a + (b - a) * _unit(_bits(place))
                    chance = density(table.kind, table.first, table.second, abs(x - c) / scale)
                    accept = _unit(_bits(place + np.uint64(1))) <= chance
                    place += np.uint64(2)
                else:
                    noise, place = _draw(table, place)
                    x = c + scale * noise
                    accept = a <= x <= b
                if accept:
                    out[i, d] = x
                    break


@compiled
def on_sphere(
    centre: Array, radius: float, angles: Table, side: Array, place: Any, out: Array
) -> None:
    """A von Mises–Fisher draw around each centre: an angle, and a direction at right angles to it."""
    rows, n = centre.shape
    for i in range(rows):
        angle, place = _draw(angles, place)
        along = 0.0
        for d in range(n):
            along += side[i, d] * centre[i, d]
        along /= radius * radius
        square = 0.0
        for d in range(n):
            x = side[i, d] - along * centre[i, d]
            square += x * x
        gap = 2 * math.sin(angle / 2) ** 2  # 1 − cos: small angles keep their digits
        sine = radius * math.sqrt(gap * (2 - gap) / square)
        cosine = 1 - gap - sine * along
        for d in range(n):
            out[i, d] = cosine * centre[i, d] + sine * side[i, d]


# --- the same for tensors ------------------------------------------------------------------------


def can_draw(centre: Tensor) -> bool:
    """Whether these draws serve tensors like this one."""
    return centre.device.type == "cpu" and centre.dtype in (torch.float32, torch.float64)


def _rows(centre: Tensor) -> Array:
    rows: Array = centre.detach().reshape(-1, centre.shape[-1]).contiguous().numpy()
    return rows


def _place(generator: torch.Generator) -> Any:
    """Where in the sequence of random words to start."""
    return np.uint64(torch.randint(1 << 62, (1,), generator=generator).item())


def coordinatewise(
    beta: float, scale: float, space: Space, centre: Tensor, generator: torch.Generator
) -> Tensor:
    """Draws with density ∝ e^{−|x/λ|^β} per coordinate around each centre (…×n), in the space."""
    rows, table, place = _rows(centre), power_table(float(beta)), _place(generator)
    out = np.empty_like(rows)
    if isinstance(space, Box):
        low, high = (bound.numpy() for bound in space.bounds())
        in_box(rows, scale, table, low, high, place, out)
    else:
        radius = space.radius if isinstance(space, Sphere) else 0.0
        around(rows, scale, table, float(radius), place, out)
    return torch.from_numpy(out).reshape(centre.shape)


def von_mises_fisher(
    kappa: float, space: Sphere, centre: Tensor, generator: torch.Generator
) -> Tensor:
    """Von Mises–Fisher draws around each centre (…×n) on the sphere."""
    rows, table = _rows(centre), angle_table(space.dim - 1, float(kappa))
    side = torch.randn(rows.shape, generator=generator, dtype=centre.dtype).numpy()
    out = np.empty_like(rows)
    on_sphere(rows, float(space.radius), table, side, _place(generator), out)
    return torch.from_numpy(out).reshape(centre.shape)
