"""Where latents and codes live: sphere, box, R^n, and products of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from identica._random import Device, as_generator
from identica._tensors import as_device, float_type, points
from identica._validate import count, finite, nonnegative, positive
from identica.errors import InputError


class Space(ABC):
    """A subset of R^n with a uniform distribution (where its volume is finite), membership and projection."""

    dim: int

    @abstractmethod
    def sample(
        self,
        size: int,
        *,
        generator: torch.Generator | int,
        dtype: torch.dtype = torch.float32,
        device: Device = "cpu",
    ) -> Tensor:
        """`size` points drawn uniformly, shape size×n."""

    @abstractmethod
    def distance(self, z: Tensor) -> Tensor:
        """How far each point z (…×n) lies outside the space, shape …; 0 inside."""

    @abstractmethod
    def project(self, z: Tensor) -> Tensor:
        """The nearest point of the space to each z (…×n)."""

    @property
    @abstractmethod
    def log_volume(self) -> float:
        """Logarithm of the volume (surface area for the sphere); infinity for R^n."""

    @property
    @abstractmethod
    def origin(self) -> Tensor:
        """The default centre of marginals, shape n, float64."""

    @abstractmethod
    def contains(self, z: Tensor, tolerance: float = 1e-4) -> Tensor:
        """Whether each z (…×n) lies in the space, up to a tolerance relative to its size; shape …."""

    def check(self, name: str, z: Tensor) -> None:
        """Raise unless z is a finite …×n tensor of points of the space."""
        points(name, z, self.dim)
        if not torch.isfinite(z).all():
            raise InputError(f"{name} must be finite, got NaN or infinity")
        outside = int((~self.contains(z)).sum())
        if outside:
            raise InputError(f"{name} must lie in {self}: {outside} of its points do not")


@dataclass(frozen=True)
class Sphere(Space):
    """The sphere S^{n−1} of a given radius in R^n.

    >>> Sphere(3, radius=2.0).sample(4, generator=0).norm(dim=1).round(decimals=4)
    tensor([2., 2., 2., 2.])
    >>> round(Sphere(3).log_volume, 4) == round(math.log(4 * math.pi), 4)
    True
    """

    dim: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        count("dim", self.dim, at_least=2)
        positive("radius", self.radius)

    def sample(
        self,
        size: int,
        *,
        generator: torch.Generator | int,
        dtype: torch.dtype = torch.float32,
        device: Device = "cpu",
    ) -> Tensor:
        limits = torch.finfo(float_type("dtype", dtype))
        if not limits.tiny <= self.radius <= limits.max:
            raise InputError(f"{self} exceeds the range of {dtype}")
        source, size = as_generator(generator, device), count("size", size, at_least=0)
        return self.project(
            torch.randn(size, self.dim, generator=source, dtype=dtype, device=device)
        )

    def distance(self, z: Tensor) -> Tensor:
        return ((points("z", z, self.dim) / self.radius).norm(dim=-1) - 1).abs() * self.radius

    def contains(self, z: Tensor, tolerance: float = 1e-4) -> Tensor:
        slack = max(
            nonnegative("tolerance", tolerance), 4 * torch.finfo(points("z", z, self.dim).dtype).eps
        )
        return ((z / self.radius).norm(dim=-1) - 1).abs() <= slack

    def project(self, z: Tensor) -> Tensor:
        # in units of a power of two near the largest entry: no square overflows or vanishes
        largest = points("z", z, self.dim).detach().abs().amax(dim=-1, keepdim=True)
        unit = torch.where(largest > 0, largest, 1.0).log2().floor().exp2()
        z = torch.where(largest > 0, z / unit, self.origin.sign().to(z))  # all are near to 0
        return torch.nn.functional.normalize(z, dim=-1) * self.radius

    @property
    def log_volume(self) -> float:
        half = self.dim / 2
        unit = math.log(2) + half * math.log(math.pi) - math.lgamma(half)
        return unit + (self.dim - 1) * math.log(self.radius)

    @property
    def origin(self) -> Tensor:
        """The pole (radius, 0, …, 0)."""
        pole = torch.zeros(self.dim, dtype=torch.float64)
        pole[0] = self.radius
        return pole


@dataclass(frozen=True)
class Box(Space):
    """The box [low, high]^n; bounds are numbers, or one number per coordinate.

    >>> box = Box(2, low=(0.0, -1.0), high=1.0)
    >>> box.contains(torch.tensor([[0.5, -0.5], [-0.5, 0.5]]))
    tensor([ True, False])
    >>> round(math.exp(box.log_volume), 6)
    2.0
    """

    dim: int
    low: float | tuple[float, ...] = 0.0
    high: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        count("dim", self.dim)
        for name in ("low", "high"):
            bound = getattr(self, name)
            if isinstance(bound, (list, tuple)):
                if len(bound) != self.dim:
                    raise InputError(
                        f"{name} must be a number or {self.dim} numbers, got {len(bound)}"
                    )
                object.__setattr__(self, name, tuple(finite(name, b) for b in bound))
            else:
                finite(name, bound)
        low, high = self.bounds()
        if not (low < high).all() or not torch.isfinite(high - low).all():
            raise InputError(
                f"low must be below high by a finite width, got low={self.low}, high={self.high}"
            )

    def bounds(
        self, dtype: torch.dtype = torch.float64, device: Device = "cpu"
    ) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds, each of shape n."""
        low = torch.as_tensor(self.low, dtype=dtype, device=device).expand(self.dim)
        high = torch.as_tensor(self.high, dtype=dtype, device=device).expand(self.dim)
        return low, high

    def sample(
        self,
        size: int,
        *,
        generator: torch.Generator | int,
        dtype: torch.dtype = torch.float32,
        device: Device = "cpu",
    ) -> Tensor:
        low, high = self.bounds(float_type("dtype", dtype), as_device("device", device))
        if not ((low < high) & torch.isfinite(high - low)).all():
            raise InputError(f"{self} exceeds the range or the digits of {dtype}")
        source, size = as_generator(generator, device), count("size", size, at_least=0)
        unit = torch.rand(size, self.dim, generator=source, dtype=dtype, device=device)
        return torch.lerp(low, high, unit)

    def distance(self, z: Tensor) -> Tensor:
        low, high = self.bounds(points("z", z, self.dim).dtype, z.device)
        return torch.maximum(low - z, z - high).clamp(min=0).amax(dim=-1)

    def contains(self, z: Tensor, tolerance: float = 1e-4) -> Tensor:
        low, high = self.bounds(device=points("z", z, self.dim).device)
        rounding = 4 * torch.finfo(z.dtype).eps * torch.maximum(low.abs(), high.abs())
        slack = nonnegative("tolerance", tolerance) * (high - low) + rounding
        return ((z >= low - slack) & (z <= high + slack)).all(dim=-1)

    def project(self, z: Tensor) -> Tensor:
        low, high = self.bounds(points("z", z, self.dim).dtype, z.device)
        return torch.minimum(torch.maximum(z, low), high)

    @property
    def log_volume(self) -> float:
        low, high = self.bounds()
        return float((high - low).log().sum())

    @property
    def origin(self) -> Tensor:
        """The middle of the box."""
        low, high = self.bounds()
        return low + (high - low) / 2


@dataclass(frozen=True)
class Euclidean(Space):
    """R^n itself: no uniform distribution, no bounds."""

    dim: int

    def __post_init__(self) -> None:
        count("dim", self.dim)

    def sample(
        self,
        size: int,
        *,
        generator: torch.Generator | int,
        dtype: torch.dtype = torch.float32,
        device: Device = "cpu",
    ) -> Tensor:
        raise InputError(f"{self} has no uniform distribution: choose a Box, or another marginal")

    def distance(self, z: Tensor) -> Tensor:
        return points("z", z, self.dim).new_zeros(z.shape[:-1])

    def contains(self, z: Tensor, tolerance: float = 1e-4) -> Tensor:
        return torch.isfinite(points("z", z, self.dim)).all(dim=-1)

    def project(self, z: Tensor) -> Tensor:
        return points("z", z, self.dim)

    @property
    def log_volume(self) -> float:
        return math.inf

    @property
    def origin(self) -> Tensor:
        return torch.zeros(self.dim, dtype=torch.float64)


@dataclass(frozen=True, init=False)
class Product(Space):
    """The product of spaces; a point is the concatenation of its parts.

    >>> space = Product(Sphere(3), Box(2))
    >>> space.dim, [part.shape[-1] for part in space.split(torch.zeros(7, 5))]
    (5, [3, 2])
    """

    spaces: tuple[Space, ...]

    def __init__(self, *spaces: Space) -> None:
        if not spaces or not all(isinstance(space, Space) for space in spaces):
            raise InputError(f"spaces must be one or more spaces, got {spaces!r}")
        object.__setattr__(self, "spaces", spaces)

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.spaces))})"

    @property
    def dim(self) -> int:  # type: ignore[override]  # the parts decide
        return sum(space.dim for space in self.spaces)

    def split(self, z: Tensor) -> tuple[Tensor, ...]:
        """The parts of each point z (…×n)."""
        return points("z", z, self.dim).split([space.dim for space in self.spaces], dim=-1)

    def sample(
        self,
        size: int,
        *,
        generator: torch.Generator | int,
        dtype: torch.dtype = torch.float32,
        device: Device = "cpu",
    ) -> Tensor:
        source = as_generator(generator, device)
        draws = [
            space.sample(size, generator=source, dtype=dtype, device=device)
            for space in self.spaces
        ]
        return torch.cat(draws, dim=-1)

    def distance(self, z: Tensor) -> Tensor:
        parts = zip(self.spaces, self.split(z), strict=True)
        return torch.stack([space.distance(part) for space, part in parts]).amax(dim=0)

    def contains(self, z: Tensor, tolerance: float = 1e-4) -> Tensor:
        parts = zip(self.spaces, self.split(z), strict=True)
        return torch.stack([space.contains(part, tolerance) for space, part in parts]).all(dim=0)

    def project(self, z: Tensor) -> Tensor:
        parts = zip(self.spaces, self.split(z), strict=True)
        return torch.cat([space.project(part) for space, part in parts], dim=-1)

    @property
    def log_volume(self) -> float:
        return sum(space.log_volume for space in self.spaces)

    @property
    def origin(self) -> Tensor:
        return torch.cat([space.origin for space in self.spaces])
