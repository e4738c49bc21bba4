"""A ring of codes, straightened: noise bends it, and cancels in the difference of two lags."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from identica.estimator.sequences import Sequences

Array = NDArray[np.float64]

BINS = 36  # of the angle, in which changes are averaged
BLOCKS = 8  # of time; each is held out once
MOST = 4  # harmonics at most
FARTHER = 1.5  # the longer lag, in units of that of the pairs
GREATEST = 1.5  # radians that a change counts at most
LEAST = 0.1  # of the mean to which the estimated change is limited from below
CLEARLY = 1.0  # standard errors by which held-out blocks must be described better


def bend(angles: Array, within: Sequences) -> Array:
    """Squared change without noise at each angle of the codes, as Fourier coefficients.

    Codes of a fitted model measure distances in units of the typical difference within pairs, which is
    noise plus change:

        E[(φ_{t+l} − φ_t)² | φ] = noise(φ) + change_l(φ)

    Where noise is large, for example where few neurons fire, the ring is squeezed. Noise does not depend on
    the lag l, so it cancels in the difference of two lags. The rest would be the same at all angles if the
    ring were straight, provided that changes do not depend on the true angle. Harmonics are added as long as
    they improve the description of held-out blocks of time. There is a single coefficient if no bend can be
    shown.

    Args:
        angles: of the codes at each position of the sequences, in radians, N.
        within: the sequences, with the lag of the pairs.

    Returns:
        The coefficients (mean, cos φ, sin φ, cos 2φ, …), odd in number.
    """
    farther = max(within.low + 1, round(FARTHER * within.low))
    near, far = (_sums(angles, replace(within, low=lag)) for lag in (within.low, farther))
    missed = np.empty((BLOCKS, MOST + 1))
    for block in range(BLOCKS):
        others = np.arange(BLOCKS) != block
        weights, change = _difference(near[:, others].sum(1), far[:, others].sum(1))
        held_weights, held = _difference(near[:, block], far[:, block])
        for number in range(MOST + 1):
            described = _waves(_CENTRES, number) @ _fitted(weights, change, number)
            missed[block, number] = held_weights @ (held - described) ** 2
    best = int(missed.sum(0).argmin())
    gain = missed[:, 0] - missed[:, best]
    clear = gain.mean() > CLEARLY * gain.std(ddof=1) / np.sqrt(BLOCKS)
    fitted = _fitted(*_difference(near.sum(1), far.sum(1)), best if clear else 0)
    return fitted if fitted[0] > 0 else fitted[:1]


def straightened(codes: Tensor, coefficients: Array) -> Tensor:
    """Codes N×2 on a circle, moved along it so that changes are the same at all angles.

        θ(φ) ∝ ∫ change(φ)^{−1/2} dφ

    Args:
        codes: of any length, which they keep.
        coefficients: as from `bend`.
    """
    if len(coefficients) == 1:
        return codes
    grid = np.linspace(-np.pi, np.pi, 721)
    change = _waves(grid, len(coefficients) // 2) @ coefficients
    speed = np.maximum(change, LEAST * coefficients[0]) ** -0.5
    turned = np.r_[0, np.cumsum(speed[1:] + speed[:-1])]
    angles = np.interp(codes[:, 1].atan2(codes[:, 0]).double().numpy(), grid, turned)
    angles = 2 * np.pi * angles / turned[-1] - np.pi
    unit = np.stack([np.cos(angles), np.sin(angles)], 1)
    return codes.norm(dim=1, keepdim=True) * codes.new_tensor(unit)


_CENTRES = (np.arange(BINS) + 0.5) / BINS * 2 * np.pi - np.pi


def _sums(angles: Array, within: Sequences) -> Array:
    """The number of pairs at `within.low`, and the sum of their squared changes: 2×BLOCKS×BINS.

    A pair belongs to the angle half-way between its members.
    """
    first, second = within.at(np.arange(within.pairs), np.full(within.pairs, within.low))
    change = _wrapped(angles[second] - angles[first])
    middle = _wrapped(angles[first] + change / 2)
    cell = np.minimum((middle + np.pi) / (2 * np.pi) * BINS, BINS - 1).astype(int)
    cell += BINS * (first * BLOCKS // within.size)
    squares = np.minimum(np.abs(change), GREATEST) ** 2
    sums = [np.bincount(cell, weights, BINS * BLOCKS) for weights in (None, squares)]
    return np.stack(sums).astype(float).reshape(2, BLOCKS, BINS)


def _difference(near: Array, far: Array) -> tuple[Array, Array]:
    """How much more angles change over the longer lag, and its weight, for each bin."""
    means = [squares / np.maximum(number, 1) for number, squares in (near, far)]
    return np.minimum(near[0], far[0]), means[1] - means[0]


def _fitted(weights: Array, change: Array, number: int) -> Array:
    """Fourier coefficients of a function of the angle by weighted least squares."""
    root = np.sqrt(weights)
    waves = _waves(_CENTRES, number) * root[:, None]
    return np.asarray(np.linalg.lstsq(waves, change * root, rcond=None)[0])


def _waves(angles: Array, number: int) -> Array:
    """1, cos φ, sin φ, cos 2φ, … of angles N up to a number of harmonics, N×(2·number + 1)."""
    waves = [f(k * angles) for k in range(1, number + 1) for f in (np.cos, np.sin)]
    return np.stack([np.ones_like(angles), *waves], 1)


def _wrapped(angles: Array) -> Array:
    return (angles + np.pi) % (2 * np.pi) - np.pi
