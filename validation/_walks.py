"""Sequences whose true factors are known, clean and noisy, and what may become of their codes.

A diagnosis takes codes, so the truth can be handed to it without a fit. See diagnosis.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from identica import Box, Euclidean, Laplace, Normal, Sphere, VonMisesFisher
from identica.estimator.pairs import ArrayPairs
from identica.estimator.sequences import sequences
from identica.families import Family
from identica.spaces import Space

Matrix = NDArray[np.float64]
Steps = NDArray[np.int64]
Groups = Steps | None
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

    def draw(self, seed: int) -> tuple[Matrix, Groups]:
        """True factors, and the session of each row."""
        rng = np.random.default_rng(seed)
        z = np.concatenate([self.factors(rng) for _ in range(self.sessions)])
        groups = np.repeat(np.arange(self.sessions), len(z) // self.sessions)
        return z, groups if self.sessions > 1 else None

    def blurred(self, codes: Matrix, seed: int) -> Matrix:
        """Codes with the noise that those of a noisy recording have."""
        rng = np.random.default_rng(seed)
        h = codes + self.noise * codes.std(0) * rng.normal(size=codes.shape)
        if isinstance(self.space, Sphere):
            h /= np.linalg.norm(h, axis=1, keepdims=True)
        return h

    def times(self, rows: int, groups: Groups, seed: int) -> tuple[Steps, Steps]:
        """Rows of held-out pairs, as `ContrastiveICA.diagnose` draws them."""
        pairs = ArrayPairs(np.arange(rows)[:, None], within=sequences(rows, self.lag, groups))
        found = pairs.split()[1].times(JUDGED, generator=torch.Generator().manual_seed(seed))
        assert found is not None
        return found


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


# --- codes that are not the factors -----------------------------------------------------------------


def functions_of_one(z: Matrix) -> Matrix:
    """Codes of the first factor alone."""
    one = (z[:, :1] - z[:, :1].mean()) / z[:, :1].std()
    return np.hstack([np.sin((k + 1) * one + k) for k in range(z.shape[1])])


def mixed_functions_of_one(z: Matrix) -> Matrix:
    """The same turned, so that no code is the factor."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(z.shape[1], z.shape[1])))[0]
    return functions_of_one(z) @ turn


def one_and_noise(z: Matrix) -> Matrix:
    """The first factor, and codes that hold nothing."""
    return np.hstack([z[:, :1], np.random.default_rng(0).normal(size=z[:, 1:].shape)])


LOST = functions_of_one, mixed_functions_of_one, one_and_noise

# --- all of them ------------------------------------------------------------------------------------

LAPLACE, NORMAL, VMF = Laplace(0.05), Normal(0.05), VonMisesFisher(10.0)


def _walks(noise: float) -> list[Walk]:
    box, line = Box(3), Euclidean(3)
    return [
        Walk("Laplace walk, 600 rows", box_walk(600, 3), box, LAPLACE, noise),
        Walk("Laplace walk, 1,500 rows", box_walk(1500, 3), box, LAPLACE, noise),
        Walk("Laplace walk, 3,000 rows", box_walk(3000, 3), box, LAPLACE, noise),
        Walk("Laplace walk, 6,000 rows", box_walk(6000, 3), box, LAPLACE, noise),
        Walk("Laplace walk, 24,000 rows", box_walk(24_000, 3), box, LAPLACE, noise),
        Walk("normal walk of 5", box_walk(6000, 5, law="normal"), Box(5), NORMAL, noise),
        Walk("slow walk", box_walk(6000, 3, 0.02, "normal"), box, NORMAL, noise),
        Walk("slow walk, lag 5", box_walk(6000, 3, 0.02, "normal"), box, NORMAL, noise, lag=5),
        Walk("smooth walk, 3,000 rows", smooth_walk(3000, 3), box, NORMAL, noise),
        Walk("smooth walk, 6,000 rows", smooth_walk(6000, 3), box, NORMAL, noise),
        Walk("smooth walk, 30,000 rows", smooth_walk(30_000, 3), box, NORMAL, noise),
        Walk("five sessions", box_walk(1200, 3), box, LAPLACE, noise, sessions=5),
        Walk("uneven steps", box_walk(10_000, 3, (0.02, 0.05, 0.1)), box, LAPLACE, noise),
        Walk("autoregressive", autoregressive(6000, 3, 0.9), line, NORMAL, noise),
        Walk("jumps that fade", autoregressive(6000, 3, 0.97, "laplace"), line, LAPLACE, noise),
        Walk("walk on the sphere", sphere_walk(6000, 3, 50.0), Sphere(3), VMF, noise),
        Walk("walk on a sphere of 5", sphere_walk(6000, 5, 50.0), Sphere(5), VMF, noise),
        Walk("walk on a circle", circle(10_000), Sphere(2), VMF, noise),
    ]


WALKS = [walk for noise in (0.0, 0.1, 0.3) for walk in _walks(noise)]
