"""Known processes, matched and violated, with the model that is fitted to each. See diagnosis.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    GenerativeProcess,
    InvertibleMLP,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica.families import Family
from identica.spaces import Space

PAIRS = 20_000


class Data(NamedTuple):
    """True factors N×d and observations N×m of pairs."""

    z: Tensor
    x: Tensor
    x_pos: Tensor


@dataclass(frozen=True)
class Case:
    """A process, and the model that is fitted to its pairs.

    `broken` names the checks of which one should speak: none where all assumptions hold.
    """

    name: str
    data: Callable[[], Data]
    model: dict[str, Any] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    held_out: bool = False
    limit: bool = False


# --- processes --------------------------------------------------------------------------------------


def process(
    space: Space,
    marginal: Family,
    conditional: Family,
    *,
    seed: int,
    pairs: int = PAIRS,
    see: Callable[[Tensor], Tensor] = lambda x: x,
) -> Callable[[], Data]:
    """Pairs of a process of the paper, of which `see` makes the observations."""

    def draw() -> Data:
        mixing = InvertibleMLP(space.dim, seed=seed, draws=1000)
        p = GenerativeProcess(space, marginal, conditional, mixing)
        z, _, x, x_pos = p.sample(pairs, generator=seed)
        return Data(z, see(x), see(x_pos))

    return draw


def own(
    latents: Callable[[int, torch.Generator], tuple[Tensor, Tensor]],
    *,
    seed: int,
    seen: Callable[[Tensor], Tensor] = lambda z: z,
    pairs: int = PAIRS,
) -> Callable[[], Data]:
    """Pairs of latents (z, z̃) of one's own, of which `seen` enters the paper's mixing."""

    def draw() -> Data:
        z, z_pos = latents(pairs, torch.Generator().manual_seed(seed))
        mixing = InvertibleMLP(seen(z).shape[1], seed=seed, draws=1000)
        with torch.no_grad():
            return Data(z, mixing(seen(z)), mixing(seen(z_pos)))

    return draw


def stretched(*scales: float, family: type[Family] = Normal) -> Callable[..., Any]:
    """Uniform in a box, with positives of another scale along every axis."""

    def latents(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        columns = [Box(1).sample(size, generator=generator) for _ in scales]
        moved = [
            family(scale).sample(Box(1), column, generator=generator)  # type: ignore[call-arg]
            for scale, column in zip(scales, columns, strict=True)
        ]
        return torch.cat(columns, 1), torch.cat(moved, 1)

    return latents


def heavy_tails(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Student's t with two degrees of freedom, and positives of a normal distribution."""
    z = torch.randn(size, 3, generator=generator)
    z = z / torch._standard_gamma(torch.ones(size, 3), generator=generator).sqrt()
    return z, z + 0.2 * torch.randn(size, 3, generator=generator)


def restless(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Uniform in a box; positives are ten times as wide at one end of every axis as at the other."""
    z = Box(3).sample(size, generator=generator)
    step = 0.02 * 10**z * torch.randn(z.shape, generator=generator)
    return z, 1 - (1 - (z + step).abs()).abs()  # walls reflect


def autoregressive(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Neighbours in a stationary sequence, correlated by 0.9."""
    z = torch.randn(size, 3, generator=generator)
    return z, 0.9 * z + (1 - 0.81) ** 0.5 * torch.randn(z.shape, generator=generator)


def shuffled(draw: Callable[[], Data], share: float = 1.0) -> Callable[[], Data]:
    """The same with a share of the positives of other observations."""

    def disorder() -> Data:
        z, x, x_pos = draw()
        n = int(share * len(x))
        return Data(z, x, torch.cat([x_pos[:n].roll(n // 2, 0), x_pos[n:]]))

    return disorder


def wider(x: Tensor) -> Tensor:
    return torch.cat([x, (3 * x).tanh()], 1)


def constant_column(x: Tensor) -> Tensor:
    return torch.cat([x, torch.full_like(x[:, :1], 3.0)], 1)


def noisy(x: Tensor) -> Tensor:
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(int(1e6 * x[0, 0].abs())))
    return x + 0.1 * x.std(0) * noise


def folded(z: Tensor) -> Tensor:
    return torch.cat([(z[:, :1] - 0.5).abs(), z[:, 1:]], 1)


def model(n: int, space: str, conditional: str, **more: Any) -> dict[str, Any]:
    return {"n_components": n, "space": space, "conditional": conditional, **more}


LAPLACE, NORMAL, GENNORM3, VMF = Laplace(0.05), Normal(0.05), GeneralizedNormal(3.0, 0.05), 10.0
BOX_LAPLACE = process(Box(4), Uniform(), LAPLACE, seed=1)

CASES = [
    Case("box Laplace, matched", BOX_LAPLACE, model(4, "box", "laplace")),
    Case(
        "box Normal, matched",
        process(Box(5), Uniform(), NORMAL, seed=2),
        model(5, "box", "normal"),
    ),
    Case(
        "sphere vMF(10), matched",
        process(Sphere(4), Uniform(), VonMisesFisher(VMF), seed=3),
        model(4, "sphere", "vmf"),
    ),
    Case(
        "sphere vMF(1): hardly any information",
        process(Sphere(5), Uniform(), VonMisesFisher(1.0), seed=4),
        model(5, "sphere", "vmf"),
    ),
    Case(
        "unbounded normal: axes free",
        process(Euclidean(4), Normal(1.0), Normal(0.3), seed=5),
        model(4, "unbounded", "normal"),
        broken=("marginal",),
    ),
    Case(
        "wrong family: Laplace taken for normal",
        process(Box(4), Uniform(), LAPLACE, seed=6),
        model(4, "box", "normal"),
        broken=("conditional",),
    ),
    Case(
        "wrong family and space: box Normal, unbounded GenNorm(3)",
        process(Box(3), Uniform(), NORMAL, seed=7),
        model(3, "unbounded", "gennorm3"),
        broken=("conditional",),
    ),
    Case(
        "wrong space: box taken for a sphere",
        process(Box(3), Uniform(), NORMAL, seed=8),
        model(3, "sphere", "vmf"),
        broken=("missed", "marginal"),
    ),
    Case(
        "marginal not uniform: Normal(0.15) in a box",
        process(Box(3), Normal(0.15), Normal(0.03), seed=9),
        model(3, "box", "normal"),
        broken=("marginal",),
    ),
    Case(
        "marginal not uniform, seen through six columns",
        process(Box(3), Normal(0.15), Normal(0.03), seed=9, see=wider),
        model(3, "box", "normal"),
        broken=("marginal",),
    ),
    Case(
        "anisotropic conditional, isotropic model",
        own(stretched(0.02, 0.05, 0.15, 0.5), seed=10),
        model(4, "box", "normal"),
        broken=("anisotropy", "dimension"),
    ),
    Case("shuffled pairs", shuffled(BOX_LAPLACE), model(4, "box", "laplace"), broken=("score",)),
    Case(
        "not injective: four factors seen through three columns",
        process(Box(4), Uniform(), NORMAL, seed=11, see=lambda x: x[:, :3]),
        model(3, "box", "normal"),
        broken=("marginal", "missed"),
    ),
    Case(
        "not injective: a factor without a trace, a code too many",
        own(stretched(*[0.05] * 4), seed=12, seen=lambda z: z[:, :3]),
        model(4, "box", "normal"),
        broken=("dimension", "codes"),
    ),
    Case(
        "too few pairs: 200",
        process(Box(4), Uniform(), LAPLACE, seed=13, pairs=200),
        model(4, "box", "laplace"),
        broken=("memory", "score"),
    ),
    Case(
        "too few codes: 2 for 4 factors",
        process(Box(4), Uniform(), NORMAL, seed=14),
        model(2, "box", "normal"),
        broken=("missed",),
    ),
    Case(
        "too many codes: 6 for 3 factors",
        process(Box(3), Uniform(), LAPLACE, seed=15),
        model(6, "box", "laplace"),
        broken=("dimension", "codes"),
    ),
    Case(
        "a constant column",
        process(Box(3), Uniform(), GENNORM3, seed=16, see=constant_column),
        model(3, "box", "gennorm3"),
    ),
    Case(
        "heavy-tailed marginal in a box",
        own(heavy_tails, seed=17),
        model(3, "box", "normal"),
        broken=("marginal",),
    ),
    Case(
        "sphere vMF(10), unbounded normal",
        process(Sphere(3), Uniform(), VonMisesFisher(VMF), seed=18),
        model(3, "unbounded", "normal"),
        broken=("space",),
    ),
    # --- unseen while thresholds were chosen
    Case(
        "box GenNorm(3), matched",
        process(Box(4), Uniform(), GENNORM3, seed=21),
        model(4, "box", "gennorm3"),
        held_out=True,
    ),
    Case(
        "sphere vMF(5), matched",
        process(Sphere(3), Uniform(), VonMisesFisher(5.0), seed=22),
        model(3, "sphere", "vmf"),
        held_out=True,
    ),
    Case(
        "box Laplace, unbounded Laplace",
        process(Box(4), Uniform(), LAPLACE, seed=23),
        model(4, "unbounded", "laplace"),
        held_out=True,
    ),
    Case(
        "box Normal, unbounded normal: axes free",
        process(Box(3), Uniform(), NORMAL, seed=24),
        model(3, "unbounded", "normal"),
        held_out=True,
    ),
    Case(
        "sphere taken for a box",
        process(Sphere(3), Uniform(), VonMisesFisher(VMF), seed=25),
        model(3, "box", "normal"),
        broken=("space", "dimension"),
        held_out=True,
    ),
    Case(
        "anisotropic conditional, precisions learnt",
        own(stretched(0.02, 0.05, 0.15), seed=26),
        model(3, "box", "normal", learn_precision=True),
        held_out=True,
    ),
    Case(
        "conditional that depends on the place",
        own(restless, seed=27),
        model(3, "box", "normal"),
        broken=("bend", "marginal"),
        held_out=True,
    ),
    Case(
        "autoregressive sequence, unbounded normal",
        own(autoregressive, seed=28),
        model(3, "unbounded", "normal"),
        broken=("marginal",),
        held_out=True,
    ),
    Case(
        "half of the pairs shuffled",
        shuffled(process(Box(4), Uniform(), LAPLACE, seed=29), 0.5),
        model(4, "box", "laplace"),
        broken=("conditional",),
        held_out=True,
    ),
    Case(
        "too few codes: 3 for 4 factors",
        process(Box(4), Uniform(), LAPLACE, seed=30),
        model(3, "box", "laplace"),
        broken=("missed",),
        held_out=True,
    ),
    Case(
        "too few pairs: 300 on the sphere",
        process(Sphere(4), Uniform(), VonMisesFisher(VMF), seed=31, pairs=300),
        model(4, "sphere", "vmf"),
        broken=("memory", "score"),
        held_out=True,
    ),
    Case(
        "hardly trained: 20 steps",
        process(Box(4), Uniform(), NORMAL, seed=32),
        model(4, "box", "normal", steps=20),
        broken=("score", "restarts", "marginal", "bend", "missed"),
        held_out=True,
    ),
    Case(
        "noise on the observations",
        process(Box(3), Uniform(), NORMAL, seed=33, see=noisy),
        model(3, "box", "normal"),
        broken=("conditional", "marginal", "bend"),
        held_out=True,
    ),
    Case(
        "sphere, marginal not uniform",
        process(Sphere(4), Normal(1.0), NORMAL, seed=34),
        model(4, "sphere", "vmf"),
        broken=("marginal",),
        held_out=True,
    ),
    Case(
        "not injective: a factor folded in the middle",
        own(stretched(*[0.05] * 3), seed=35, seen=folded),
        model(3, "box", "normal"),
        broken=("marginal", "missed"),
        limit=True,
    ),
]
