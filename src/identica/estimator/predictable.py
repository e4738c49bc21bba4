"""Directions of the observations that are linearly predictable within pairs, found without training.

Noise differs between the members of a pair, but the effect of the factors is shared. So directions that
correlate within pairs reflect factors, and the others noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

LEAST = 0.02  # weight of a direction that is kept


class Predictable(NamedTuple):
    """Directions of observations in which the members of a pair correlate beyond chance.

    Attributes:
        matrix: d×k; each column is a direction in which observations have unit variance, times its
            weight: (ρ − e)/(1 − e), where e is the correlation that noise alone reaches. Without noise
            all weights are near 1, and this is whitening.
        correlations: ρ within pairs, ascending, shape k.
    """

    matrix: Tensor
    correlations: Tensor

    def bits(self, x: Tensor, x_pos: Tensor) -> float:
        """Mutual information of pairs N×d by these directions, as if they were normal and independent."""
        u, v = (side.double() @ self.matrix.double() for side in (x, x_pos))
        u, v = u - u.mean(0), v - v.mean(0)
        norms = (u.square().sum(0) * v.square().sum(0)).sqrt().clamp(min=1e-300)
        rho = ((u * v).sum(0) / norms).clamp(0, 0.999)
        return float(-0.5 * torch.log2(1 - rho.square()).sum())


def predictable(x: Tensor, x_pos: Tensor) -> Predictable:
    """The predictable directions of pairs of observations, N×d each, of mean about 0.

    They are the eigenvectors of the symmetrised covariance within pairs, of whitened observations. Noise
    makes eigenvalues up to about √(2d/N) from N pairs of d columns; it makes negative ones as well, so the
    lowest says how far noise reaches in these very data.

    >>> z = torch.randn(1000, 1, generator=torch.Generator().manual_seed(0))
    >>> noise = torch.randn(2, 1000, 5, generator=torch.Generator().manual_seed(1))
    >>> found = predictable(*(z * torch.ones(5) + noise))
    >>> found.matrix.shape, round(float(found.correlations[0]), 1)
    (torch.Size([5, 1]), 0.8)
    """
    a, b = x.double(), x_pos.double()
    pairs, columns = a.shape
    values, vectors = torch.linalg.eigh((a.T @ a + b.T @ b) / (2 * pairs))
    keep = values > 1e-6 * values[-1]
    white = vectors[:, keep] / values[keep].sqrt()
    u, v = a @ white, b @ white
    rho, turn = torch.linalg.eigh((u.T @ v + v.T @ u) / (2 * pairs))
    edge = min(max(math.sqrt(2 * columns / pairs), -float(rho[0])), 0.999)
    good = rho > edge
    if not good.any():  # nothing that differs from noise
        good = rho >= rho[-1]
    weights = ((rho[good] - edge) / (1 - edge)).clamp(LEAST, 1)
    matrix = white @ turn[:, good] * weights
    # the sign of an eigenvector is arbitrary: make it the same on every machine
    places = 1 / torch.arange(1, columns + 1).to(matrix)
    matrix = torch.where(places @ matrix < 0, -matrix, matrix)
    return Predictable(matrix.float(), rho[good].clamp(0, 1).float())


def independent_pairs(pairs: float, lag: float, correlations: Tensor, n: int) -> float:
    """The effective number of independent pairs in a sequence.

    The slowest of the n codes counts, with an autocorrelation that decays exponentially:
    pairs/lag·(1 − ρ)/(1 + ρ).
    """
    rho = float(correlations[-n:].min().clamp(0, 0.9999))
    return pairs / lag * (1 - rho) / (1 + rho)
