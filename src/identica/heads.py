"""Output heads: the last step of a model, onto its space."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from identica._tensors import floats, points, same_device
from identica._validate import count, flag, instance, positive
from identica.errors import InputError
from identica.spaces import Box, Euclidean, Product, Space, Sphere


class Head(nn.Module):
    """The last step of a model: maps R^n onto its space.

    A learnable size is kept as a logarithm, so that a step changes it by a fraction; `lr` is the
    learning rate of that logarithm, the optimiser's own if None.
    """

    lr: float | None = None
    learnable: bool = False


class EuclideanHead(Head):
    """The identity, for R^n."""

    def forward(self, codes: Tensor) -> Tensor:
        return codes


class SphereHead(Head):
    """x/‖x‖·r with the radius r fixed or learnt.

    With `soften`, x/‖x‖^a·r in training, where a rises from 0 to 1 over the first `soften` calls. A map onto
    the sphere that is folded cannot unfold continuously, whereas in R^n it can, through the origin. So
    the encoder starts in R^n, and its codes are normalised gradually.

    >>> SphereHead(Sphere(2, radius=3.0))(torch.tensor([[3.0, 4.0]]))
    tensor([[1.8000, 2.4000]])
    """

    def __init__(
        self,
        space: Sphere,
        *,
        learnable: bool = False,
        soften: int | None = None,
        lr: float | None = None,
    ) -> None:
        super().__init__()
        instance("space", space, Sphere, "a Sphere")
        self.lr = None if lr is None else positive("lr", lr)
        self.learnable = flag("learnable", learnable)
        log = torch.tensor(math.log(space.radius))
        self.log_radius = nn.Parameter(log, requires_grad=learnable)
        self.soften = None if soften is None else count("soften", soften)
        if soften is not None:
            self.register_buffer("calls", torch.tensor(0))

    def forward(self, codes: Tensor) -> Tensor:
        floats("codes", codes, meta=True)
        hardness = 1.0
        if self.soften is not None:
            calls = self.get_buffer("calls")
            hardness = min(1.0, int(calls) / self.soften)
            calls += self.training
        if hardness == 1.0:
            return nn.functional.normalize(codes, dim=-1) * self.log_radius.exp()
        norm = codes.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        return codes * norm**-hardness * self.log_radius.exp()


class BoxHead(Head):
    """low + sigmoid(x)·b with the side lengths b fixed or learnt (one for all coordinates).

    Args:
        space: the box; its sides are the initial value of b.
        start: another initial value for all sides.
    """

    low: Tensor

    def __init__(
        self,
        space: Box,
        *,
        learnable: bool = False,
        start: float | None = None,
        lr: float | None = None,
    ) -> None:
        super().__init__()
        instance("space", space, Box, "a Box")
        self.lr = None if lr is None else positive("lr", lr)
        self.learnable = flag("learnable", learnable)
        low, high = space.bounds(torch.float32)
        sides = high - low if start is None else torch.full_like(low, positive("start", start))
        self.register_buffer("low", low.clone())
        self.register_buffer("sides", sides.clone())
        self.log_growth = nn.Parameter(torch.tensor(0.0), requires_grad=learnable)

    def forward(self, codes: Tensor) -> Tensor:
        sides = self.get_buffer("sides") * self.log_growth.exp()
        points("codes", codes, len(self.low), meta=True)
        same_device("codes", codes, "the head", self.low)
        return self.low + torch.sigmoid(codes) * sides


class ProductHead(Head):
    """The heads of the parts, side by side."""

    def __init__(self, space: Product, heads: Sequence[Head]) -> None:
        super().__init__()
        if len(heads) != len(space.spaces):
            raise InputError(f"heads must be {len(space.spaces)}, one for each part of {space}")
        self.space, self.heads = space, nn.ModuleList(heads)
        self.learnable = all(head.learnable for head in heads)

    def forward(self, codes: Tensor) -> Tensor:
        parts = zip(self.heads, self.space.split(codes), strict=True)
        return torch.cat([head(part) for head, part in parts], dim=-1)


def make_head(space: Space) -> Head:
    """The head of a space, of fixed radius or sides.

    >>> make_head(Product(Sphere(3), Euclidean(2)))(torch.ones(1, 5))
    tensor([[0.5774, 0.5774, 0.5774, 1.0000, 1.0000]])
    """
    match space:
        case Sphere():
            return SphereHead(space)
        case Box():
            return BoxHead(space)
        case Euclidean():
            return EuclideanHead()
        case Product():
            return ProductHead(space, [make_head(part) for part in space.spaces])
    raise InputError(f"space must be a Sphere, Box, Euclidean or Product, got {space!r}")
