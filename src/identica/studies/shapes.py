"""Marginals that are not uniform and have full support, on R^n, the unit box and the sphere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.special import ndtr

from identica._validate import one_of
from identica.errors import InputError
from identica.families import Family
from identica.spaces import Box, Euclidean, Space, Sphere

CLUSTERS, CLUSTER_SEED = 12, 12345


@dataclass(frozen=True)
class _Draws:
    """Matrices of random numbers, by default N×n."""

    size: int
    n: int
    generator: torch.Generator

    def normal(self, columns: int | None = None) -> Tensor:
        return torch.randn(self.size, columns or self.n, generator=self.generator)

    def uniform(self, columns: int | None = None) -> Tensor:
        return torch.rand(self.size, columns or self.n, generator=self.generator)

    def exponential(self) -> Tensor:
        return -torch.log1p(-self.uniform())

    def sign(self, columns: int | None = None) -> Tensor:
        return torch.where(self.uniform(columns) < 0.5, -1.0, 1.0)

    def laplace(self) -> Tensor:
        return self.exponential() * self.sign()

    def heavy(self, freedom: int, columns: int | None = None) -> Tensor:
        """1/√(χ²/ν): what a normal draw is multiplied with to be Student's t."""
        squares = torch.stack([self.normal(columns).square() for _ in range(freedom)])
        return squares.mean(0).rsqrt()

    def correlated(self) -> Tensor:
        place = torch.arange(self.n, dtype=torch.float64)
        root = torch.linalg.cholesky(0.7 ** (place[:, None] - place).abs())
        return self.normal() @ root.float().T

    def ring(self) -> Tensor:
        """Pairs of coordinates on circles of radius 2; ±2 for one that is left over."""
        angle = 2 * math.pi * self.uniform(self.n // 2)
        pairs = torch.stack([angle.cos(), angle.sin()], 2).flatten(1)
        return 2 * torch.cat([pairs, self.sign(self.n % 2)] if self.n % 2 else [pairs], 1)

    def cluster(self) -> Tensor:
        """One of twelve fixed points, each coordinate standard normal."""
        fixed = torch.Generator().manual_seed(CLUSTER_SEED)
        centres = torch.randn(CLUSTERS, self.n, generator=fixed)
        return centres[torch.randint(CLUSTERS, (self.size,), generator=self.generator)]

    def axis(self) -> Tensor:
        """The first axis, n."""
        return torch.eye(self.n)[0]

    def circle(self) -> Tensor:
        """Points of the unit circle in the plane of the first two axes."""
        angle = 2 * math.pi * self.uniform(1)
        return torch.cat([angle.cos(), angle.sin(), torch.zeros(self.size, self.n - 2)], 1)


# by name: on R^n, on the box before draws are folded back, and on the sphere before they are projected
_REAL: dict[str, Callable[[_Draws], Tensor]] = {
    "normal": lambda d: d.normal(),
    "laplace": lambda d: d.laplace(),
    "bimodal": lambda d: 1.5 * d.sign() + 0.6 * d.normal(),
    "correlated": lambda d: 1.2 * d.correlated(),
    "heavy": lambda d: d.normal() * d.heavy(5),
    "ring": lambda d: d.ring() + 0.5 * d.normal(),
    "skewed": lambda d: 1.5 * (d.exponential() + 0.3 * d.normal() - 1),
    "mixture": lambda d: 1.5 * d.cluster() + 0.6 * d.normal(),
}
_BOX: dict[str, Callable[[_Draws], Tensor]] = {
    "normal": lambda d: 0.5 + 0.2 * d.normal(),
    "laplace": lambda d: 0.5 + 0.15 * d.laplace(),
    "bimodal": lambda d: 0.5 + 0.22 * d.sign() + 0.13 * d.normal(),
    "correlated": lambda d: ndtr(d.correlated()),
    "heavy": lambda d: 0.5 + 0.1 * torch.tan(math.pi * (d.uniform() - 0.5)),
    "ring": lambda d: 0.5 + 0.16 * d.ring() + 0.08 * d.normal(),
    "skewed": lambda d: 0.25 * d.exponential(),
    "mixture": lambda d: 0.1 + 0.8 * ndtr(d.cluster()) + 0.15 * d.normal(),
}
_SPHERE: dict[str, Callable[[_Draws], Tensor]] = {
    "normal": lambda d: d.axis() + d.normal(),
    "laplace": lambda d: d.axis() + 0.7 * d.laplace(),
    "bimodal": lambda d: 1.5 * d.axis() * d.sign(1) + 0.7 * d.normal(),
    "correlated": lambda d: d.correlated(),
    "heavy": lambda d: 1.5 * d.axis() + 0.6 * d.normal() * d.heavy(2, 1),
    "ring": lambda d: 1.5 * d.circle() + 0.7 * d.normal(),
    "skewed": lambda d: d.exponential() - 0.6 + 0.3 * d.normal(),
    "mixture": lambda d: normalize(d.cluster(), dim=1) + 0.4 * d.normal(),
}
SHAPES = tuple(_REAL)


@dataclass(frozen=True)
class Shape(Family):
    """A marginal by its name.

    On R^n: independent standard normal or Laplace coordinates; two modes in each coordinate; a normal with
    correlations .7^|i−j|; Student's t with 5 degrees of freedom; pairs of coordinates on noisy circles;
    exponential with noise; twelve clusters. On the unit box, similar draws folded back at its walls (a
    Gaussian copula for the correlated one). On the sphere, draws around the first axis, projected.
    """

    name: str

    def __post_init__(self) -> None:
        one_of("name", self.name, SHAPES)

    @property
    def p(self) -> float | None:
        raise InputError(f"{self} cannot be a model: it is a marginal")

    @property
    def precision(self) -> float:
        return 0.0

    def supports(self, space: Space) -> bool:
        unit = isinstance(space, Box) and space == Box(space.dim)
        return unit or isinstance(space, Euclidean) or space == Sphere(space.dim)

    def independent(self, space: Space) -> int:
        """How many coordinates at a time are independent of the others: 1, 2 or all."""
        if isinstance(space, Sphere) or self.name in ("correlated", "mixture"):
            return space.dim
        return 2 if self.name == "ring" else 1

    def _sample(self, space: Space, centre: Tensor, generator: torch.Generator) -> Tensor:
        draws = _Draws(len(centre), centre.shape[1], generator)
        if isinstance(space, Sphere):
            z = normalize(_SPHERE[self.name](draws), dim=1)
        elif isinstance(space, Box):
            z = _BOX[self.name](draws).remainder(2.0)
            z = torch.where(z > 1, 2 - z, z)
        else:
            z = _REAL[self.name](draws)
        return z.to(centre)

    def _log_prob(self, space: Space, z: Tensor, centre: Tensor) -> Tensor:
        raise InputError(f"log_prob of {self} is not known")
