"""Simulated recordings with known factors: place cells in a box, and head-direction cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from identica._validate import as_rng, count, flag, positive
from identica.datasets.recordings import MOST, Recording

Array = NDArray[np.float64]
Random = np.random.Generator | int

LONGEST = 10_000_000  # bins
CELLS = 19  # neurons of head direction
BUMP = 0.3  # width of a place field, in sides of the box
SPEED = 0.03  # of the walk, in sides of the box per bin
FLOOR = 0.05, 0.03  # baseline rate of place cells and head-direction cells, relative to the peak


def place_cells(rows: int = 30_000, *, rate: float = 2.5, seed: Random = 0) -> Recording:
    """100 Poisson neurons with Gaussian bumps of rate around places of a cube, along a smooth walk in it.

        x_tk ~ Poisson(rate · (0.05 + e^{−‖z_t − c_k‖² / 2w²})),   w = 0.3

    The velocity of the walk is autoregressive, and turns round at the walls. The label is z, in [0, 1].

    Args:
        rows: Number of bins.
        rate: Spikes of a neuron per bin where it fires most: the lower, the noisier.
        seed: A seed or a generator.

    >>> found = place_cells(1000, seed=0)
    >>> found.counts.shape, found.label.shape
    ((1000, 100), (1000, 3))
    """
    rows, rng = count("rows", rows, at_most=LONGEST), as_rng("seed", seed)
    z = smooth_walk(rows, 3, rng)
    centres = rng.uniform(-0.1, 1.1, (100, 3))
    squared = (z**2).sum(1)[:, None] + (centres**2).sum(1) - 2 * z @ centres.T
    mean = positive("rate", rate) * (FLOOR[0] + np.exp(-squared / (2 * BUMP**2)))
    return Recording("place cells", _spikes(mean, rng), z, 0.025)


def head_direction_cells(
    rows: int = 60_000, *, rate: float = 0.25, uneven: bool = False, seed: Random = 0
) -> Recording:
    """19 Poisson neurons with von Mises tuning to an angle that turns smoothly.

        x_tk ~ Poisson(r_k · (0.03 + e^{κ_k (cos(a_t − c_k) − 1)})),   r_k about `rate`, κ_k ~ U(1, 6)

    The label is a, in radians from −π to π.

    Args:
        rows: Number of bins.
        rate: Spikes of a typical neuron per bin where it fires most.
        uneven: The animal prefers some directions, and turns slowly, faster or very fast by turns.
        seed: A seed or a generator.
    """
    rows, rng = count("rows", rows, at_most=LONGEST), as_rng("seed", seed)
    angle = (
        _uneven_turns(rows, rng)
        if flag("uneven", uneven)
        else np.cumsum(_velocity(rows, 1, rng, 0.02, 0.98))
    )
    centres, kappa = rng.uniform(0, 2 * np.pi, CELLS), rng.uniform(1, 6, CELLS)
    peak = positive("rate", rate) * rng.lognormal(0, 0.8 if uneven else 0.6, CELLS)
    bump = np.exp(kappa * (np.cos(angle.reshape(-1, 1) - centres) - 1))
    wrapped = np.angle(np.exp(1j * angle)).ravel()
    return Recording("head-direction cells", _spikes(peak * (FLOOR[1] + bump), rng), wrapped, 0.01)


def smooth_walk(rows: int, dim: int, rng: np.random.Generator) -> Array:
    """A walk in [0, 1]^dim with autoregressive velocity, reflected at the walls, rows×dim.

    Steps are symmetric, so an unbounded walk folded back into the box is the same process.
    """
    free = rng.random(dim) + np.cumsum(_velocity(rows, dim, rng, SPEED, 0.95), axis=0)
    return np.asarray(1 - np.abs(free % 2 - 1))


def _velocity(rows: int, dim: int, rng: np.random.Generator, speed: Any, memory: float) -> Array:
    """v_t = memory · v_{t−1} + √(1 − memory²) · speed · ε_t, from v = 0; rows×dim."""
    noise = speed * math.sqrt(1 - memory**2) * rng.normal(size=(rows, dim))
    return np.asarray(lfilter([1.0], [1.0, -memory], noise, axis=0))


def _uneven_turns(rows: int, rng: np.random.Generator) -> Array:
    """Angles attracted to a preferred one, at a speed that changes from time to time."""
    changes = np.cumsum(rng.random(rows) < 0.01)
    speeds = np.concatenate([[1.0], rng.choice([0.15, 1.0, 2.5], changes[-1])])
    velocity = _velocity(rows, 1, rng, 0.025 * speeds[changes, None], 0.95).ravel().tolist()
    favourite, angle = rng.uniform(0, 2 * np.pi), 0.0
    angles = np.empty(rows)
    for t, step in enumerate(velocity):  # the drift depends on the previous angle
        angle += step - 0.002 * math.sin(angle - favourite)
        angles[t] = angle
    return angles


def _spikes(mean: Array, rng: np.random.Generator) -> NDArray[np.uint8]:
    return np.minimum(rng.poisson(np.minimum(mean, 1e6)), MOST).astype(np.uint8)
