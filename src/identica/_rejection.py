"""Random draws by rejection in torch, for the devices and data types that `_samplers` does not serve."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from identica.spaces import Box, Space, Sphere


def coordinatewise(
    beta: float, scale: float, space: Space, centre: Tensor, generator: torch.Generator
) -> Tensor:
    """Draws with density ∝ e^{−|x/λ|^β} per coordinate around each centre (…×n), in the space."""
    if isinstance(space, Box):
        return _truncated(beta, scale, space, centre, generator)
    return space.project(centre + _noise(beta, scale, centre, generator))


def von_mises_fisher(
    kappa: float, space: Sphere, centre: Tensor, generator: torch.Generator
) -> Tensor:
    """Von Mises–Fisher draws around each centre (…×n) on the sphere, by rejection of the cosine (Wood,
    "Simulation of the von Mises Fisher distribution", 1994)."""
    gap = _one_minus_cosine(kappa, centre, generator)
    side = torch.randn(centre.shape, generator=generator, dtype=centre.dtype, device=centre.device)
    pole = centre / space.radius
    tangent = side - (side * pole).sum(-1, keepdim=True) * pole
    tangent = torch.nn.functional.normalize(tangent, dim=-1)
    sine = (gap * (2 - gap)).sqrt().to(centre.dtype)
    return centre * (1 - gap).to(centre.dtype) + space.radius * sine * tangent


def _one_minus_cosine(kappa: float, centre: Tensor, generator: torch.Generator) -> Tensor:
    """1 − cos∠(z, μ) in float64, shape …×1: small angles keep their digits."""
    m = centre.shape[-1] - 1
    b = m / (2 * kappa + math.hypot(2 * kappa, m))
    gap = torch.empty((*centre.shape[:-1], 1), dtype=torch.float64, device=centre.device)
    flat = gap.view(-1)
    todo = torch.arange(len(flat), device=centre.device)
    while len(todo):
        shape = torch.full((2, len(todo)), m / 2, dtype=torch.float64, device=centre.device)
        first, second = torch._standard_gamma(shape, generator=generator)
        beta = first / (first + second)
        rest = 1 - (1 - b) * beta
        proposal = 2 * b * beta / rest
        # Wood's κ(cos − x₀) + m log((1 − x₀ cos)/(1 − x₀²)) with x₀ = (1 − b)/(1 + b)
        chance = kappa * (2 * b / (1 + b) - proposal) + m * ((1 + b) / 2 / rest).log()
        u = torch.rand(len(todo), generator=generator, dtype=torch.float64, device=gap.device)
        accept = u.log() <= chance
        flat[todo[accept]] = proposal[accept]
        todo = todo[~accept]
    return gap


def _truncated(
    beta: float, scale: float, box: Box, centre: Tensor, generator: torch.Generator
) -> Tensor:
    """Exact draws within the box: coordinates that fall outside are drawn again."""
    low, high = (
        bound.expand_as(centre).reshape(-1) for bound in box.bounds(centre.dtype, centre.device)
    )
    middle = box.project(centre).reshape(-1)
    draw, todo = torch.empty_like(middle), torch.arange(len(middle), device=centre.device)
    while len(todo):
        a, b, c = low[todo], high[todo], middle[todo]
        proposal = c + _noise(beta, scale, c, generator)
        accept = (proposal >= a) & (proposal <= b)
        reach = torch.maximum(c - a, b - c) / scale
        wide = 1 - beta * reach**beta > min(0.5, math.sqrt(beta))
        if wide.any():
            other, accepted = _under_tangents(beta, scale, a, b, c, generator)
            proposal = torch.where(wide, other, proposal)
            accept = torch.where(wide, accepted, accept)
        draw[todo[accept]] = proposal[accept]
        todo = todo[~accept]
    return draw.reshape(centre.shape)


def _under_tangents(
    beta: float, scale: float, a: Tensor, b: Tensor, c: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Proposals where little of the density lies within [a, b], and which of them to accept; see
    `identica._samplers`."""
    sides = torch.stack([c - a, b - c])
    weight = (sides / scale) ** beta
    slope = 1 - beta * weight
    area = sides * (-weight).exp() / slope
    u = torch.rand((3, len(c)), generator=generator, dtype=c.dtype, device=c.device)
    left = u[0] * area.sum(0) < area[0]
    length, slope = torch.where(left, sides[0], sides[1]), torch.where(left, slope[0], slope[1])
    down = -torch.log1p(-u[1]) / slope
    lost = (1 - slope) / beta * (torch.expm1(-beta * down) + beta * down)
    size = length * (-down).exp()
    return torch.where(left, c - size, c + size), u[2] < (-lost).exp()


def _noise(beta: float, scale: float, like: Tensor, generator: torch.Generator) -> Tensor:
    """One draw around 0 for each entry of `like`."""
    device, dtype = like.device, like.dtype
    if beta == 2:
        draw = torch.randn(like.shape, generator=generator, dtype=dtype, device=device)
        return draw * (scale / math.sqrt(2))
    if beta == 1:
        size = torch.empty_like(like).exponential_(generator=generator)
    else:
        # Γ(1 + a)^a·U is distributed as Γ(a)^a, without the draws of Γ(a) that vanish for small a = 1/β
        order = torch.full_like(like, 1 + 1 / beta)
        size = torch._standard_gamma(order, generator=generator).pow(1 / beta)
        size *= torch.rand(like.shape, generator=generator, dtype=dtype, device=device)
    bits = torch.randint(0, 2, like.shape, generator=generator, device=device)
    return scale * size * (bits.to(dtype) * 2 - 1)
