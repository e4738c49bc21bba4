"""Networks from observations to codes, and the contrastive model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from types import NoneType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from identica._random import as_generator
from identica._tensors import points
from identica._validate import count, instance, members, positive
from identica.errors import InputError
from identica.families import Family
from identica.heads import Head, make_head
from identica.spaces import Space


class MLP(nn.Module):
    """A multilayer perceptron with leaky ReLUs, reproducible from its seed.

    Args:
        n_in: observed dimensions m.
        n_out: code dimensions n.
        hidden: widths of the hidden layers. The published network is
            (100, 500, 500, 500, 500, 100).
        seed: determines the initial weights, U(±1/√fan-in) as in torch's own layers.

    >>> MLP(10, 3, hidden=(16,))(torch.zeros(5, 10)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self, n_in: int, n_out: int, hidden: Sequence[int] = (128, 128, 128), *, seed: int = 0
    ) -> None:
        super().__init__()
        hidden = members("hidden", hidden, "a list of widths")
        widths = [count("n_in", n_in), *(count("hidden", h) for h in hidden)]
        widths.append(count("n_out", n_out))
        self.layers = nn.ModuleList(blank(nn.Linear, *fan) for fan in pairwise(widths))
        initialise(self, seed)

    def forward(self, x: Tensor) -> Tensor:
        """Codes N×n of observations N×m."""
        first = self.layers[0]
        assert isinstance(first, nn.Linear)
        points("x", x, first.in_features)
        for layer in self.layers[:-1]:
            x = nn.functional.leaky_relu(layer(x), inplace=True)  # nothing else needs its input
        return self.layers[-1](x)


class ConvEncoder(nn.Module):
    """The convolutional network for images of 64×64 of Locatello et al. (ICML 2019), as published:
    4×4 convolutions of stride 2 with 32, 32, 64 and 64 channels, one with 256 channels over the
    remaining 4×4 pixels, ReLUs, and a linear layer.

    Images are N×64×64 (one channel) or N×C×64×64; whole numbers (uint8, 0 to 255, or 0 and 1 with
    `scale=1`) are divided by `scale`.

    Args:
        n_out: code dimensions n.
        channels: C.
        scale: what whole numbers are divided by.
        seed: determines the initial weights, N(0, 2/fan-in) as published, which preserves the scale
            under ReLUs.

    >>> ConvEncoder(10)(torch.zeros(2, 64, 64)).shape
    torch.Size([2, 10])
    """

    def __init__(self, n_out: int, *, channels: int = 1, scale: float = 1.0, seed: int = 0) -> None:
        super().__init__()
        self.channels, self.scale = count("channels", channels), positive("scale", scale)
        widths = [self.channels, 32, 32, 64, 64]
        self.layers = nn.Sequential()
        for fan_in, fan_out in pairwise(widths):
            self.layers.extend([blank(nn.Conv2d, fan_in, fan_out, 4, 2, 1), nn.ReLU(inplace=True)])
        self.layers.extend([blank(nn.Conv2d, 64, 256, 4), nn.ReLU(inplace=True), nn.Flatten()])
        self.layers.append(blank(nn.Linear, 256, count("n_out", n_out)))
        initialise(self, seed, relu=True)
        self.layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """Codes N×n of images."""
        instance("x", x, Tensor, "a tensor of images")
        if not x.is_floating_point():
            x = x.float() / self.scale
        x = x.unsqueeze(1) if x.ndim == 3 else x
        if x.shape[1:] != (self.channels, 64, 64):
            raise InputError(
                f"x must hold images of {self.channels}×64×64, got {tuple(x.shape[1:])}"
            )
        return self.layers(x.contiguous(memory_format=torch.channels_last))


def blank(kind: type[nn.Module], *sizes: int, **options: Any) -> Any:
    """A layer with uninitialised weights on the default device (`skip_init` alone uses the CPU)."""
    return skip_init(kind, *sizes, device=torch.get_default_device(), **options)


def initialise(network: nn.Module, seed: int, *, relu: bool = False) -> None:
    """Initialise all linear and convolutional layers from a seed (`blank` leaves them uninitialised).

    They are U(±1/√fan-in) as in torch's own layers, or N(0, 2/fan-in) with biases of 0 for networks
    of ReLUs (He et al., "Delving deep into rectifiers", ICCV 2015).
    """
    generator = as_generator(seed)
    for layer in network.modules():
        if not isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            continue
        fan_in = layer.weight[0].numel()
        if relu:
            nn.init.normal_(layer.weight, std=math.sqrt(2 / fan_in), generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
            continue
        bound = 1 / math.sqrt(fan_in)
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)


class ContrastiveModel(nn.Module):
    """h = head(encoder(x)): codes in `space`, whose pairs are assumed to follow `conditional`.

    Args:
        space: the model space.
        conditional: the assumed p(z̃ | z), whose similarity the loss uses.
        encoder: any module from N×m (or images) to N×n.
        head: by default `make_head(space)`, of fixed radius or bounds.
        potential: a module from codes (N×n) to additive terms of the loss (N×2), such as `Potential`,
            with which the marginal need not be uniform.

    >>> from identica import Box, Laplace
    >>> model = ContrastiveModel(Box(3), Laplace(1.0), MLP(5, 3))
    >>> bool(Box(3).contains(model(torch.randn(7, 5))).all())
    True
    """

    def __init__(
        self,
        space: Space,
        conditional: Family,
        encoder: nn.Module,
        *,
        head: Head | None = None,
        potential: nn.Module | None = None,
    ) -> None:
        super().__init__()
        instance("conditional", conditional, Family, "a family such as Laplace(1)")
        conditional.check(space)
        instance("encoder", encoder, nn.Module, "a module")
        instance("head", head, (Head, NoneType), "a head such as SphereHead")
        self.space, self.conditional = space, conditional
        self.encoder = encoder
        self.head = make_head(space) if head is None else head
        instance("potential", potential, (nn.Module, NoneType), "a module such as Potential(3)")
        self.potential = potential

    def forward(self, x: Tensor) -> Tensor:
        """Codes N×n of observations."""
        instance("x", x, Tensor, "a tensor of observations")
        codes = self.encoder(x)
        if codes.shape[-1] != self.space.dim:
            raise InputError(
                f"encoder must give {self.space.dim} columns for {self.space}, "
                f"got {codes.shape[-1]}"
            )
        return self.head(codes)
