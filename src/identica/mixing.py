"""Injective maps from latents to observations, reproducible from a seed, with their exact inverses."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor, nn

from identica._tensors import points
from identica._validate import count, positive
from identica.errors import InputError


class Mixing(nn.Module, ABC):
    """An injective map x = g(z) from R^n to R^m, m ≥ n, with fixed weights."""

    dim: int
    observed: int

    @abstractmethod
    def inverse(self, x: Tensor) -> Tensor:
        """The z (N×n) with g(z) = x (N×m), or an approximation for x outside the image of g."""


class InvertibleMLP(Mixing):
    """The paper's mixing: bias-free linear layers with leaky ReLUs between them.

    Every layer is the best-conditioned of `draws` matrices with entries U(−1, 1) and columns of unit
    length (25,000 as published: a condition number of about 3.5 at n = 10). With `observed` above
    `dim` the last layer is tall, so g is injective but not onto.

    Args:
        dim: number of latents n.
        seed: determines the weights.
        layers: number of linear layers.
        slope: slope of the leaky ReLU for negative values.
        observed: number of observed dimensions m ≥ n; n by default.
        draws: matrices drawn per layer.

    >>> g = InvertibleMLP(4, seed=0, draws=100)
    >>> z = torch.linspace(-1, 1, 8).reshape(2, 4)
    >>> torch.allclose(g.inverse(g(z)), z, atol=1e-5)
    True
    """

    def __init__(
        self,
        dim: int,
        *,
        seed: int,
        layers: int = 3,
        slope: float = 0.2,
        observed: int | None = None,
        draws: int = 25_000,
    ) -> None:
        super().__init__()
        self.dim, self.seed = count("dim", dim), count("seed", seed, at_least=0)
        self.observed = count("observed", dim if observed is None else observed)
        if self.observed < dim:
            raise InputError(f"observed must be at least dim={dim} for an injective map")
        self.slope = positive("slope", slope)
        self.layers, self.draws = count("layers", layers), count("draws", draws)
        rng = np.random.default_rng(seed)
        for layer in range(layers):
            rows = self.observed if layer == layers - 1 else dim
            weight = _well_conditioned(rows, dim, self.draws, rng)
            self.register_buffer(f"weight{layer}", torch.from_numpy(weight))
            self.register_buffer(f"inverse{layer}", torch.from_numpy(np.linalg.pinv(weight)))

    def extra_repr(self) -> str:
        return f"{self.dim}, seed={self.seed}, layers={self.layers}, observed={self.observed}"

    def forward(self, z: Tensor) -> Tensor:
        """x = g(z), N×m, for z of shape N×n."""
        points("z", z, self.dim)
        for layer in range(self.layers):
            if layer:
                z = nn.functional.leaky_relu(z, self.slope)
            z = z @ self.get_buffer(f"weight{layer}").to(z.dtype).T
        return z

    def inverse(self, x: Tensor) -> Tensor:
        points("x", x, self.observed)
        for layer in reversed(range(self.layers)):
            x = x @ self.get_buffer(f"inverse{layer}").to(x.dtype).T
            if layer:
                x = torch.where(x < 0, x / self.slope, x)
        return x


def _well_conditioned(
    rows: int, columns: int, draws: int, rng: np.random.Generator
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The best-conditioned of `draws` random matrices with unit columns."""
    best, lowest = None, np.inf
    for start in range(0, draws, 5000):
        weight = rng.uniform(-1, 1, (min(5000, draws - start), rows, columns))
        weight /= np.linalg.norm(weight, axis=1, keepdims=True)
        # condition numbers from the Gram matrices take half as long as from singular values
        spectrum = np.linalg.eigvalsh(weight.transpose(0, 2, 1) @ weight)
        condition = spectrum[:, -1] / np.maximum(spectrum[:, 0], 1e-300)
        i = int(condition.argmin())
        if condition[i] < lowest:
            best, lowest = weight[i], condition[i]
    assert best is not None
    return best


class CouplingFlow(Mixing):
    """A smooth mixing made of affine coupling layers between random rotations.

    Each layer rotates z and then scales and shifts one half of the coordinates by a random
    two-layer network of the other half, x₂ = z₂·e^{s(z₁)} + t(z₁) with |s| ≤ `strength`
    (Dinh et al., "Density estimation using Real NVP", 2017). With `observed` above `dim`, a last
    matrix with orthonormal columns maps to R^m.

    >>> g = CouplingFlow(4, seed=0, observed=6)
    >>> z = torch.linspace(-1, 1, 8).reshape(2, 4)
    >>> g(z).shape, torch.allclose(g.inverse(g(z)), z, atol=1e-5)
    (torch.Size([2, 6]), True)
    """

    def __init__(
        self,
        dim: int,
        *,
        seed: int,
        layers: int = 4,
        hidden: int = 32,
        strength: float = 0.5,
        observed: int | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.seed = count("dim", dim, at_least=2), count("seed", seed, at_least=0)
        self.observed = count("observed", dim if observed is None else observed)
        if self.observed < dim:
            raise InputError(f"observed must be at least dim={dim} for an injective map")
        self.layers, self.strength = count("layers", layers), positive("strength", strength)
        rng = np.random.default_rng(seed)
        count("hidden", hidden)
        keep, change = dim - dim // 2, dim // 2
        for layer in range(layers):
            weights = {
                "rotation": np.linalg.qr(rng.standard_normal((dim, dim)))[0],
                "inner": rng.standard_normal((hidden, keep)) * 2 / np.sqrt(keep),
                "bias": rng.uniform(-1, 1, hidden),
                "outer": rng.standard_normal((2 * change, hidden)) / np.sqrt(hidden),
            }
            for name, weight in weights.items():
                self.register_buffer(f"{name}{layer}", torch.from_numpy(weight))
        lift = np.linalg.qr(rng.standard_normal((self.observed, dim)))[0]
        self.register_buffer("lift", torch.from_numpy(lift))

    def extra_repr(self) -> str:
        return f"{self.dim}, seed={self.seed}, layers={self.layers}, observed={self.observed}"

    def _weight(self, name: str, like: Tensor) -> Tensor:
        return self.get_buffer(name).to(like.dtype)

    def _scale_and_shift(self, layer: int, kept: Tensor) -> tuple[Tensor, Tensor]:
        inner = kept @ self._weight(f"inner{layer}", kept).T + self._weight(f"bias{layer}", kept)
        outer = torch.tanh(inner) @ self._weight(f"outer{layer}", kept).T
        scale, shift = outer.chunk(2, dim=-1)
        return (self.strength * torch.tanh(scale)).exp(), shift

    def forward(self, z: Tensor) -> Tensor:
        """x = g(z), N×m, for z of shape N×n."""
        points("z", z, self.dim)
        change = self.dim // 2
        for layer in range(self.layers):
            z = z @ self._weight(f"rotation{layer}", z).T
            kept, changed = z[..., change:], z[..., :change]
            scale, shift = self._scale_and_shift(layer, kept)
            z = torch.cat([changed * scale + shift, kept], dim=-1)
        return z @ self._weight("lift", z).T

    def inverse(self, x: Tensor) -> Tensor:
        points("x", x, self.observed)
        z = x @ self._weight("lift", x)
        change = self.dim // 2
        for layer in reversed(range(self.layers)):
            kept, changed = z[..., change:], z[..., :change]
            scale, shift = self._scale_and_shift(layer, kept)
            z = torch.cat([(changed - shift) / scale, kept], dim=-1)
            z = z @ self._weight(f"rotation{layer}", z)
        return z
