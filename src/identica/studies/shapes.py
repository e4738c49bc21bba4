"""Marginals that are not uniform and have full support, on R^n, the unit box and the sphere."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.special import ndtr

from identica._validate import one_of
from identica.errors import InputError
from identica.families import Family
from identica.spaces import Box, Euclidean, Space, Sphere

SHAPES = ("normal", "laplace", "bimodal", "correlated", "heavy", "ring", "skewed", "mixture")
CLUSTERS, CLUSTER_SEED = 12, 12345


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
        size, n = centre.shape
        draws = _Draws(size, n, generator)
        of_space = {Euclidean: _real, Box: _box, Sphere: _sphere}[type(space)]
        return of_space(self.name, draws).to(centre)

    def _log_prob(self, space: Space, z: Tensor, centre: Tensor) -> Tensor:
        raise InputError(f"log_prob of {self} is not known")


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


def _real(name: str, d: _Draws) -> Tensor:
    match name:
        case "normal":
            return d.normal()
        case "laplace":
            return d.laplace()
        case "bimodal":
            return 1.5 * d.sign() + 0.6 * d.normal()
        case "correlated":
            return 1.2 * d.correlated()
        case "heavy":
            return d.normal() * d.heavy(5)
        case "ring":
            return d.ring() + 0.5 * d.normal()
        case "skewed":
            return 1.5 * (d.exponential() + 0.3 * d.normal() - 1)
    return 1.5 * d.cluster() + 0.6 * d.normal()


def _box(name: str, d: _Draws) -> Tensor:
    match name:
        case "normal":
            z = 0.5 + 0.2 * d.normal()
        case "laplace":
            z = 0.5 + 0.15 * d.laplace()
        case "bimodal":
            z = 0.5 + 0.22 * d.sign() + 0.13 * d.normal()
        case "correlated":
            z = ndtr(d.correlated())
        case "heavy":
            z = 0.5 + 0.1 * torch.tan(math.pi * (d.uniform() - 0.5))
        case "ring":
            z = 0.5 + 0.16 * d.ring() + 0.08 * d.normal()
        case "skewed":
            z = 0.25 * d.exponential()
        case _:
            z = 0.1 + 0.8 * ndtr(d.cluster()) + 0.15 * d.normal()
    z = z.remainder(2.0)
    return torch.where(z > 1, 2 - z, z)


def _sphere(name: str, d: _Draws) -> Tensor:
    axis = torch.zeros(d.n)
    axis[0] = 1.0
    match name:
        case "normal":
            z = axis + d.normal()
        case "laplace":
            z = axis + 0.7 * d.laplace()
        case "bimodal":
            z = 1.5 * axis * d.sign(1) + 0.7 * d.normal()
        case "correlated":
            z = d.correlated()
        case "heavy":
            z = 1.5 * axis + 0.6 * d.normal() * d.heavy(2, 1)
        case "ring":
            angle = 2 * math.pi * d.uniform(1)
            circle = torch.cat([angle.cos(), angle.sin(), torch.zeros(d.size, d.n - 2)], 1)
            z = 1.5 * circle + 0.7 * d.normal()
        case "skewed":
            z = d.exponential() - 0.6 + 0.3 * d.normal()
        case _:
            z = torch.nn.functional.normalize(d.cluster(), dim=1) + 0.4 * d.normal()
    return torch.nn.functional.normalize(z, dim=1)
