"""Distributions around a centre, which are also similarities of two codes.

One object states an assumption once: as marginal it is drawn around a fixed centre, as conditional
around each latent z, and as the model it scores a pair of codes by the logarithm of its density,
up to a constant.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from identica import _samplers
from identica._bessel import log_mean_exp_gap, mean_cosine
from identica._random import as_generator
from identica._tensors import alike, floats, points, same_device
from identica._validate import count, instance, nonnegative, positive
from identica.errors import InputError
from identica.spaces import Box, Euclidean, Product, Space, Sphere

__all__ = [
    "Coordinatewise",
    "Family",
    "GeneralizedNormal",
    "Joint",
    "Laplace",
    "Normal",
    "Uniform",
    "VonMisesFisher",
    "mean_cosine",
]


class Family(ABC):
    """A family of distributions p(z̃ | z) on a space.

    Its similarity of two codes is log p up to a constant, in one of two forms:
    `precision`·⟨a, b⟩ where `p` is None, else −`precision`·‖a − b‖_p^p.
    """

    @property
    @abstractmethod
    def p(self) -> float | None:
        """Exponent of the distance, or None for the dot product."""

    @property
    @abstractmethod
    def precision(self) -> float:
        """Factor of the distance or dot product."""

    @abstractmethod
    def _sample(self, space: Space, centre: Tensor, generator: torch.Generator) -> Tensor: ...

    @abstractmethod
    def _log_prob(self, space: Space, z: Tensor, centre: Tensor) -> Tensor: ...

    @abstractmethod
    def supports(self, space: Space) -> bool:
        """Whether the family is defined on the space."""

    def sample(self, space: Space, centre: Tensor, *, generator: torch.Generator | int) -> Tensor:
        """One draw around each centre (N×n), with its shape, dtype and device.

        >>> z = Box(2).sample(3, generator=0)
        >>> Laplace(0.05).sample(Box(2), z, generator=1).shape
        torch.Size([3, 2])
        """
        self.check(space)
        space.check("centre", centre)
        return self._sample(space, centre, as_generator(generator, centre.device))

    def log_prob(self, space: Space, z: Tensor, centre: Tensor) -> Tensor:
        """log p(z | centre) with respect to the volume of the space, shape …, for z and centre …×n.

        >>> VonMisesFisher(0.0).log_prob(Sphere(3), Sphere(3).origin, Sphere(3).origin).exp().item()
        0.0795774715459476...
        """
        self.check(space)
        space.check("centre", centre)
        inside = space.contains(points("z", z, space.dim))
        alike("z", z, "centre", centre)
        return torch.where(inside, self._log_prob(space, z, centre), -math.inf)

    def similarity(self, a: Tensor, b: Tensor) -> Tensor:
        """log p(b | a) up to a constant, shape … for codes of shape …×n (broadcast)."""
        alike("b", floats("b", b, meta=True), "a", floats("a", a, meta=True))
        if self.p is None:
            return self._factor(a) * (a * b).sum(-1)
        return -self._factor(a) * _power(a - b, self.p).sum(-1)

    def pairwise(self, a: Tensor, b: Tensor) -> Tensor:
        """Similarity of every a (A×n) with every b (B×n), shape A×B."""
        _matrices(a, b)
        if self.p is None:
            return self._factor(a) * (a @ b.T)
        return self.similarity(a[:, None], b[None])

    def _factor(self, codes: Tensor) -> float:
        """The precision, which must be in the range of the codes' data type."""
        dtype = codes.dtype
        if (
            self.precision
            and not torch.finfo(dtype).tiny <= self.precision <= torch.finfo(dtype).max
        ):
            raise InputError(
                f"the precision of {self}, {self.precision:g}, exceeds the range of {dtype}"
            )
        return self.precision

    def check(self, space: Space) -> None:
        """Raise unless the family is defined on the space."""
        instance("space", space, Space, "a space such as Sphere(3)")
        if not self.supports(space):
            raise InputError(f"{self} is not defined on {space}")


def _matrices(a: Tensor, b: Tensor) -> None:
    """Raise unless codes are A×n and B×n."""
    flat = all(floats(name, x, meta=True).ndim == 2 for name, x in (("a", a), ("b", b)))
    if not flat or a.shape[1] != b.shape[1]:
        shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
        raise InputError(f"a and b must have shapes A×n and B×n, got {shapes}")
    same_device("b", b, "a", a)


def _power(difference: Tensor, p: float) -> Tensor:
    """|d|^p, with gradient 0 at d = 0 for every p."""
    if p == 2:
        return difference.square()
    size = difference.abs()
    if p == 1:
        return size
    if p > 1:
        return size.pow(p)
    # below 1 the slope is infinite at 0: step around it
    zero = size == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, size).pow(p))


@dataclass(frozen=True)
class Uniform(Family):
    """The uniform distribution on a sphere, a box or a product of them, whatever the centre."""

    @property
    def p(self) -> float | None:
        raise InputError("Uniform() cannot be a model: it gives every pair the same similarity")

    @property
    def precision(self) -> float:
        return 0.0

    def supports(self, space: Space) -> bool:
        return math.isfinite(space.log_volume)

    def _sample(self, space: Space, centre: Tensor, generator: torch.Generator) -> Tensor:
        if isinstance(space, Sphere):  # normal draws, projected
            around = torch.zeros_like(centre)
            return _samplers.coordinatewise(2.0, space.radius, space, around, generator)
        size = math.prod(centre.shape[:-1])
        draw = space.sample(size, generator=generator, dtype=centre.dtype, device=centre.device)
        return draw.reshape(centre.shape)

    def _log_prob(self, space: Space, z: Tensor, centre: Tensor) -> Tensor:
        return z.new_full(z.shape[:-1], -space.log_volume)


@dataclass(frozen=True)
class VonMisesFisher(Family):
    """The von Mises–Fisher distribution on a sphere, p(z | μ) = C_n(κ) e^{κ cos∠(z, μ)}.

    κ is the concentration of the direction, whatever the radius of the sphere. As a model it scores
    codes by κ⟨a, b⟩, so codes on a sphere of radius r with temperature τ imply the concentration
    κ r²/τ.
    """

    kappa: float

    def __post_init__(self) -> None:
        nonnegative("kappa", self.kappa)

    @property
    def p(self) -> float | None:
        return None

    @property
    def precision(self) -> float:
        return self.kappa

    def supports(self, space: Space) -> bool:
        return isinstance(space, Sphere)

    def _sample(self, space: Space, centre: Tensor, generator: torch.Generator) -> Tensor:
        assert isinstance(space, Sphere)
        return _samplers.von_mises_fisher(self.kappa, space, centre, generator)

    def _log_prob(self, space: Space, z: Tensor, centre: Tensor) -> Tensor:
        assert isinstance(space, Sphere)
        gap = ((z - centre) / space.radius).square().sum(-1) / 2  # 1 − cos, with all its digits
        return -space.log_volume - log_mean_exp_gap(space.dim, self.kappa) - self.kappa * gap


class Coordinatewise(Family):
    """Independent coordinates with density ∝ e^{−|x/λ|^β}: plain on R^n, truncated on a box, and
    drawn in R^n and projected on a sphere. `p` is β and `width` is λ."""

    @property
    @abstractmethod
    def p(self) -> float: ...

    @property
    @abstractmethod
    def width(self) -> float:
        """λ, at which the density has fallen to 1/e of its peak."""

    @property
    def precision(self) -> float:
        try:
            return float(self.width**-self.p)
        except OverflowError:
            return math.inf

    def supports(self, space: Space) -> bool:
        return isinstance(space, (Sphere, Box, Euclidean))

    def _sample(self, space: Space, centre: Tensor, generator: torch.Generator) -> Tensor:
        widest = _samplers.reach(self.p) * (self.width if isinstance(space, Euclidean) else 1.0)
        if not isinstance(space, Box) and widest > torch.finfo(centre.dtype).max:
            raise InputError(f"draws of {self} exceed the range of {centre.dtype}")
        return _samplers.coordinatewise(self.p, self.width, space, centre, generator)

    def _log_prob(self, space: Space, z: Tensor, centre: Tensor) -> Tensor:
        if isinstance(space, Sphere):
            raise InputError(f"log_prob of {self} projected on {space} has no closed form")
        beta, width = self.p, self.width
        z, centre, dtype = z.double(), centre.double(), z.dtype
        log_density = -_power((z - centre) / width, beta)
        if isinstance(space, Box):
            low, high = space.bounds(device=centre.device)
            sides = torch.stack([centre - low, high - centre]).clamp(min=0)
            log_density = log_density - self._mass(sides).sum(0).log()
        else:
            log_density = log_density - math.log(2) - math.log(width) - math.lgamma(1 + 1 / beta)
        return log_density.sum(-1).to(dtype)

    def _mass(self, sides: Tensor) -> Tensor:
        """∫₀ˢ e^{−(t/λ)^β} dt for each s, by the incomplete gamma function, or by its series
        s·e^{−w} Σ_k w^k/(a + 1)_k, w = (s/λ)^β, a = 1/β, where that is small."""
        a = 1 / self.p
        weight = (sides / self.width) ** self.p
        share = torch.special.gammainc(torch.full_like(weight, a), weight)
        small = (weight < 1) | (share < 1e-200)
        log_all = math.log(self.width) + math.lgamma(1 + a)
        x = torch.where(small, weight, 0.0)
        term, total, k = torch.ones_like(x), torch.ones_like(x), 0
        while bool((term > 1e-17 * total).any()):
            k += 1
            term = term * x / (a + k)
            total = total + term
        return torch.where(small, sides * (-x).exp() * total, (log_all + share.log()).exp())


@dataclass(frozen=True)
class Normal(Coordinatewise):
    """The normal distribution with a standard deviation per coordinate, p ∝ e^{−‖z − μ‖²/2σ²}.

    As a model it scores codes by −‖a − b‖²/2σ².

    >>> Normal(1.0).similarity(torch.zeros(3), torch.ones(3))
    tensor(-1.5000)
    """

    std: float

    def __post_init__(self) -> None:
        positive("std", self.std)

    @property
    def p(self) -> float:
        return 2.0

    @property
    def width(self) -> float:
        return self.std * math.sqrt(2)


@dataclass(frozen=True)
class Laplace(Coordinatewise):
    """The Laplace distribution with a scale per coordinate, p ∝ e^{−‖z − μ‖₁/λ}."""

    scale: float

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    @property
    def p(self) -> float:
        return 1.0

    @property
    def width(self) -> float:
        return self.scale


@dataclass(frozen=True)
class GeneralizedNormal(Coordinatewise):
    """The generalized normal distribution of any shape β > 0, p ∝ e^{−‖(z − μ)/λ‖_β^β}.

    β = 1 is `Laplace(λ)`, β = 2 is `Normal(λ/√2)`.
    """

    shape: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        positive("shape", self.shape)
        positive("scale", self.scale)

    @property
    def p(self) -> float:
        return self.shape

    @property
    def width(self) -> float:
        return self.scale


@dataclass(frozen=True, init=False)
class Joint(Family):
    """Independent families on the parts of a `Product` space; similarities add up.

    Each part is a family with its number of coordinates.

    >>> space = Product(Sphere(3), Box(2))
    >>> joint = Joint((VonMisesFisher(10.0), 3), (Laplace(0.05), 2))
    >>> joint.sample(space, space.sample(4, generator=0), generator=1).shape
    torch.Size([4, 5])
    """

    parts: tuple[tuple[Family, int], ...]

    def __init__(self, *parts: tuple[Family, int]) -> None:
        for part in parts:
            if not (isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], Family)):
                raise InputError(f"parts must be pairs (family, coordinates), got {part!r}")
            count("coordinates", part[1])
        if not parts:
            raise InputError("parts must hold at least one pair (family, coordinates)")
        object.__setattr__(self, "parts", parts)

    def __repr__(self) -> str:
        return f"Joint({', '.join(map(repr, self.parts))})"

    @property
    def p(self) -> float | None:
        raise InputError(f"{self} has a similarity for each part, not one exponent")

    @property
    def precision(self) -> float:
        raise InputError(f"{self} has a similarity for each part, not one precision")

    def supports(self, space: Space) -> bool:
        return (
            isinstance(space, Product)
            and [part.dim for part in space.spaces] == [n for _, n in self.parts]
            and all(f.supports(s) for (f, _), s in zip(self.parts, space.spaces, strict=True))
        )

    def split(self, codes: Tensor) -> tuple[Tensor, ...]:
        """The codes (…×n) of each part."""
        sizes = [n for _, n in self.parts]
        return points("codes", codes, sum(sizes)).split(sizes, dim=-1)

    def _sample(self, space: Space, centre: Tensor, generator: torch.Generator) -> Tensor:
        assert isinstance(space, Product)
        parts = zip(self.parts, space.spaces, space.split(centre), strict=True)
        return torch.cat([f._sample(s, c, generator) for (f, _), s, c in parts], dim=-1)

    def _log_prob(self, space: Space, z: Tensor, centre: Tensor) -> Tensor:
        assert isinstance(space, Product)
        split = zip(self.parts, space.spaces, space.split(z), space.split(centre), strict=True)
        return torch.stack([f._log_prob(s, x, c) for (f, _), s, x, c in split]).sum(0)

    def similarity(self, a: Tensor, b: Tensor) -> Tensor:
        split = zip(self.parts, self.split(a), self.split(b), strict=True)
        return torch.stack([f.similarity(x, y) for (f, _), x, y in split]).sum(0)

    def pairwise(self, a: Tensor, b: Tensor) -> Tensor:
        _matrices(a, b)
        split = zip(self.parts, self.split(a), self.split(b), strict=True)
        return torch.stack([f.pairwise(x, y) for (f, _), x, y in split]).sum(0)
