"""Sequences whose true factors are known, clean and noisy, and what may become of their codes.

A diagnosis takes codes, so the truth can be handed to it without a fit. See walks.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from identica import Sphere
from identica.estimator.pairs import ArrayPairs, sequences
from identica.families import Family
from identica.spaces import Space

Matrix = NDArray[np.float64]
Groups = NDArray[np.int64] | None
JUDGED = 4096  # pairs that the estimator hands to the diagnosis


@dataclass(frozen=True)
class Walk:
    """A sequence of true factors z (N×n), with the space and the family that suit it.

    `noise` is that of the observations, in standard deviations of the factors; codes inherit it.
    """

    name: str
    factors: Callable[[np.random.Generator], Matrix]
    space: Space
    conditional: Family
    noise: float = 0.0
    sessions: int = 1
    lag: int = 1

    def draw(self, seed: int) -> tuple[Matrix, Matrix, Groups]:
        """True factors, codes as a perfect encoder gives them, and the session of each row."""
        rng = np.random.default_rng(seed)
        parts = [self.factors(rng) for _ in range(self.sessions)]
        z = np.concatenate(parts)
        h = z + self.noise * z.std(0) * rng.normal(size=z.shape)
        if isinstance(self.space, Sphere):
            h /= np.linalg.norm(h, axis=1, keepdims=True)
        groups = np.repeat(np.arange(self.sessions), len(parts[0]))
        return z, h, groups if self.sessions > 1 else None

    def rows(self, count: int, groups: Groups, seed: int) -> tuple[NDArray[np.int64], ...]:
        """Rows of held-out pairs, as `ContrastiveICA.diagnose` draws them."""
        index = np.arange(count)[:, None]
        held = ArrayPairs(index, within=sequences(count, self.lag, groups)).split()[1]
        pairs = held(JUDGED, generator=torch.Generator().manual_seed(seed))
        return tuple(part.numpy().ravel().astype(np.int64) for part in pairs)


# --- factors ----------------------------------------------------------------------------------------


def reflected(z: Matrix) -> Matrix:
    """Paths that walls at 0 and 1 reflect."""
    return np.abs((z + 1) % 2 - 1)


def box_walk(
    rows: int, n: int, scale: float | tuple[float, ...] = 0.05, law: str = "laplace"
) -> Callable[[np.random.Generator], Matrix]:
    """Independent steps within a box."""

    def draw(rng: np.random.Generator) -> Matrix:
        steps = getattr(rng, law)(0, scale, (rows, n))
        return reflected(rng.uniform(size=n) + np.cumsum(steps, axis=0))

    return draw


def smooth_walk(
    rows: int, n: int, speed: float = 0.03, memory: float = 0.95
) -> Callable[[np.random.Generator], Matrix]:
    """Velocities that change slowly, within a box."""

    def draw(rng: np.random.Generator) -> Matrix:
        path = np.cumsum(autoregressive(rows, n, memory)(rng), axis=0)
        return reflected(rng.uniform(size=n) + speed * path)

    return draw


def autoregressive(
    rows: int, n: int, memory: float, law: str = "normal"
) -> Callable[[np.random.Generator], Matrix]:
    """A stationary sequence of unit variance, neighbours correlated by `memory`."""

    def draw(rng: np.random.Generator) -> Matrix:
        from scipy.signal import lfilter

        steps = getattr(rng, law)(0, 1, (rows, n)) * np.sqrt(1 - memory**2)
        steps[0] /= np.sqrt(1 - memory**2)
        return np.asarray(lfilter([1], [1, -memory], steps, axis=0))

    return draw


def sphere_walk(rows: int, n: int, kappa: float) -> Callable[[np.random.Generator], Matrix]:
    """Directions that turn by about 1/√κ at each step."""

    def draw(rng: np.random.Generator) -> Matrix:
        z = rng.normal(size=(rows, n))
        for t in range(rows):
            z[t] = z[t - 1] + z[t] / np.sqrt(kappa) if t else z[t]
            z[t] /= np.linalg.norm(z[t])
        return z

    return draw


def circle(rows: int, speed: float = 0.05) -> Callable[[np.random.Generator], Matrix]:
    """An angle that turns smoothly."""

    def draw(rng: np.random.Generator) -> Matrix:
        angle = speed * np.cumsum(autoregressive(rows, 1, 0.95)(rng), axis=0)
        return np.hstack([np.cos(angle), np.sin(angle)])

    return draw


# --- what is lost -----------------------------------------------------------------------------------


def functions_of_one(z: Matrix) -> Matrix:
    """Three codes of a single factor."""
    return np.c_[z[:, 0], z[:, 0] ** 2, np.sin(4 * z[:, 0])]
