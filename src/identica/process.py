"""The generative process: latents, their positives, and the observations of both."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from identica._random import Device, as_generator
from identica._tensors import float_type, floats
from identica._validate import count, instance
from identica.errors import InputError
from identica.families import Family, Uniform
from identica.mixing import Mixing
from identica.spaces import Space

POOL_ROUNDS = 300  # rounds of rejection sampling before giving up


class Pairs(NamedTuple):
    """A batch of pairs: latents z, z_pos (N×n) and observations x, x_pos (N×m)."""

    z: Tensor
    z_pos: Tensor
    x: Tensor
    x_pos: Tensor

    @property
    def observed(self) -> Tensor:
        """All observations, 2N×m, to be encoded at once."""
        return torch.cat([self.x, self.x_pos])

    def split(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of the anchors and of their positives, from those of all observations."""
        h, h_pos = codes.chunk(2)
        return h, h_pos


class Labelled(NamedTuple):
    """A labelled batch: latents z (N×n) and observations x (N×m)."""

    z: Tensor
    x: Tensor


class Pool(NamedTuple):
    """A batch whose observations serve as positives of each other: latents z (N×n), observations x (N×m)
    and the indices of the positives of each (N×K)."""

    z: Tensor
    x: Tensor
    positives: Tensor

    @property
    def observed(self) -> Tensor:
        """All observations."""
        return self.x

    def split(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of the anchors (N×k) and of their positives (N×K×k)."""
        return codes, torch.nn.functional.embedding(self.positives, codes)


class Walk(NamedTuple):
    """A batch in which each observation is a positive of the previous one: latents z (N×n) and
    observations x (N×m). It holds N − 1 pairs, whereas separate pairs of N observations are N/2."""

    z: Tensor
    x: Tensor

    @property
    def observed(self) -> Tensor:
        """All observations."""
        return self.x

    def split(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of the anchors and of their positives, all but the last and all but the first."""
        return codes[:-1], codes[1:]


class GenerativeProcess:
    """z ~ p(z), z̃ ~ p(z̃ | z), x = g(z), x̃ = g(z̃).

    Args:
        space: where the latents live.
        marginal: p(z), drawn around `centre`.
        conditional: p(z̃ | z), drawn around each z.
        mixing: g, injective.
        centre: centre of the marginal, shape n; by default `space.origin`.

    >>> from identica import InvertibleMLP, Sphere, Uniform, VonMisesFisher
    >>> g = InvertibleMLP(3, seed=0, draws=100)
    >>> process = GenerativeProcess(Sphere(3), Uniform(), VonMisesFisher(10.0), g)
    >>> process.sample(5, generator=0).x.shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        space: Space,
        marginal: Family,
        conditional: Family,
        mixing: Mixing,
        *,
        centre: Tensor | None = None,
    ) -> None:
        for name, family in (("marginal", marginal), ("conditional", conditional)):
            instance(name, family, Family, "a family such as Uniform()")
            family.check(space)
        instance("mixing", mixing, Mixing, "a mixing such as InvertibleMLP(3, seed=0)")
        if mixing.dim != space.dim:
            raise InputError(f"mixing must take {space.dim} latents, got one for {mixing.dim}")
        self.space, self.marginal, self.conditional = space, marginal, conditional
        self.mixing = mixing
        self.centre = space.origin if centre is None else floats("centre", centre)
        if self.centre.ndim != 1:
            raise InputError(f"centre must have shape {space.dim}, got {tuple(self.centre.shape)}")
        space.check("centre", self.centre)

    def __repr__(self) -> str:
        return (
            f"GenerativeProcess({self.space}, {self.marginal}, {self.conditional}, {self.mixing})"
        )

    def latents(
        self,
        size: int,
        *,
        generator: torch.Generator | int,
        dtype: torch.dtype = torch.float32,
        device: Device = "cpu",
    ) -> Tensor:
        """`size` draws of p(z), N×n."""
        source = as_generator(generator, device)
        centre = self.centre.to(dtype=float_type("dtype", dtype), device=device).expand(
            count("size", size), self.space.dim
        )
        return self.marginal._sample(self.space, centre, source)

    def positives(self, z: Tensor, *, generator: torch.Generator | int) -> Tensor:
        """One draw of p(z̃ | z) for each z (N×n)."""
        return self.conditional.sample(self.space, z, generator=generator)

    @torch.no_grad()
    def sample(
        self,
        size: int,
        *,
        generator: torch.Generator | int,
        dtype: torch.dtype = torch.float32,
        device: Device = "cpu",
    ) -> Pairs:
        """`size` pairs. The mixing must be on `device`."""
        source = as_generator(generator, device)
        z = self.latents(size, generator=source, dtype=dtype, device=device)
        z_pos = self.conditional._sample(self.space, z, source)
        return Pairs(z, z_pos, self.mixing(z), self.mixing(z_pos))

    @torch.no_grad()
    def pool(self, size: int, positives: int, *, generator: torch.Generator | int) -> Pool:
        """`size` observations, each with `positives` others that are draws of its p(z̃ | z).

        With a wide conditional, one observation can be used in many pairs, so a batch holds many
        more pairs than observations. The positives of z are found by rejection: another member of
        the pool, a draw of the uniform p(z), is accepted with probability p(z̃ | z) / p(z | z). That is
        exact up to terms of order 1/size, since the pool is finite.

        >>> from identica import InvertibleMLP, Sphere, Uniform, VonMisesFisher
        >>> g = InvertibleMLP(3, seed=0, draws=100)
        >>> process = GenerativeProcess(Sphere(3), Uniform(), VonMisesFisher(1.0), g)
        >>> process.pool(100, 8, generator=0).positives.shape
        torch.Size([100, 8])
        """
        source = as_generator(generator)
        count("size", size, at_least=2)
        count("positives", positives)
        if not isinstance(self.marginal, Uniform):
            raise InputError(f"pool needs a marginal that is Uniform(), got {self.marginal}")

        def log_density(z: Tensor, centre: Tensor) -> Tensor:
            return self.conditional._log_prob(self.space, z, centre)

        z = self.latents(size, generator=source)
        own = torch.arange(size).repeat_interleave(positives)
        highest = log_density(z, z)
        partners = torch.empty_like(own)
        left = torch.arange(len(own))
        for _ in range(POOL_ROUNDS):
            anchor = own[left]
            other = torch.randint(size - 1, left.shape, generator=source)
            other += other >= anchor  # any but the anchor itself
            chance = (log_density(z[other], z[anchor]) - highest[anchor]).exp()
            kept = torch.rand(left.shape, generator=source) < chance
            partners[left[kept]] = other[kept]
            left = left[~kept]
            if not len(left):
                return Pool(z, self.mixing(z), partners.view(size, positives))
        raise InputError(
            f"conditional {self.conditional} is too narrow for a pool of {size}: draw pairs with "
            "sample instead"
        )

    @torch.no_grad()
    def labelled(self, size: int, *, generator: torch.Generator | int) -> Labelled:
        """`size` observations with their latents, for supervised training."""
        z = self.latents(size, generator=generator)
        return Labelled(z, self.mixing(z))
