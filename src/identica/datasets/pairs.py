"""Distributions of positives on grids of factors.

UNI is from Locatello et al., "Weakly-Supervised Disentanglement Without Compromises", ICML 2020;
LAP from Klindt et al., "Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse
Coding", ICLR 2021.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from identica.datasets._arguments import whole_numbers
from identica.errors import InputError

Classes = NDArray[np.int64]
Random = np.random.Generator | int


def uni(classes: Classes, sizes: Sequence[int], rng: Random) -> Classes:
    """UNI: k ~ U{1, …, D−1} factors, chosen at random, each redrawn among its other values.

    Args:
        classes: N×D, the anchors.
        sizes: Values of each of the D ≥ 2 factors, at least 2 each.
        rng: A generator or a seed.

    >>> anchors = np.zeros((100, 2), int)
    >>> set((uni(anchors, (3, 4), rng=0) > 0).sum(axis=1).tolist())
    {1}
    """
    classes = _check(classes, sizes)
    rng = np.random.default_rng(rng)
    n, d = classes.shape
    # The k smallest of d random numbers are at k places chosen without replacement.
    rank = rng.random((n, d)).argsort(axis=1).argsort(axis=1)
    changes = rank < rng.integers(1, d, size=(n, 1))
    step = rng.integers(1, np.asarray(sizes), size=(n, d))
    return np.where(changes, (classes + step) % np.asarray(sizes), classes)


def lap(classes: Classes, sizes: Sequence[int], rng: Random) -> Classes:
    """LAP: every factor but the first moves by a Laplace-distributed step along its values.

    A factor of K values at i moves to j with p ∝ exp(−|i − j| / ln K). If no factor changed,
    a random one is drawn again, from the same distribution without its current value. The first
    factor (of dSprites, the shape) stays.

    Args:
        classes: N×D, the anchors.
        sizes: Values of each factor, at least 2 each.
        rng: A generator or a seed.

    >>> anchors = np.zeros((100, 2), int)
    >>> moved = lap(anchors, (3, 4), rng=0)
    >>> set(moved[:, 0].tolist()), int(moved[:, 1].min())
    ({0}, 1)
    """
    classes = _check(classes, sizes)
    rng = np.random.default_rng(rng)
    moved = classes.copy()
    free = range(1, len(sizes))
    for k in free:
        moved[:, k] = _move(classes[:, k], sizes[k], rng, stay=True)
    same = np.flatnonzero((moved == classes).all(axis=1))
    chosen = rng.choice(free, size=len(same))
    for k in free:
        rows = same[chosen == k]
        moved[rows, k] = _move(classes[rows, k], sizes[k], rng, stay=False)
    return moved


def _check(classes: Classes, sizes: Sequence[int]) -> Classes:
    if len(sizes) < 2 or min(sizes) < 2:
        raise InputError(f"sizes must be at least 2 factors of at least 2 values, got {sizes}")
    return whole_numbers("classes", classes, sizes)


def _move(start: Classes, size: int, rng: np.random.Generator, stay: bool) -> Classes:
    distance = np.abs(np.arange(size) - start[:, None])
    weight = np.exp(-distance / np.log(size))
    if not stay:
        weight[distance == 0] = 0
    below = np.cumsum(weight, axis=1)
    threshold = rng.random((len(start), 1)) * below[:, -1:]
    # Rounding may put the threshold on the very end.
    return np.minimum((below <= threshold).sum(axis=1), size - 1)
