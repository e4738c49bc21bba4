"""Theorem 1 as a study: L(M) − log M + log|Z| falls to the cross-entropy as M grows."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from identica._random import as_generator
from identica._validate import one_of
from identica.errors import InputError
from identica.families import Family, Laplace, Normal, Uniform, VonMisesFisher
from identica.recipes import PRESETS, Preset
from identica.runs import Tick
from identica.runs.folder import run_name
from identica.spaces import Box, Space, Sphere
from identica.studies.published import Published
from identica.studies.study import Finished, Ours, Picture, Study, Target
from identica.studies.synthetic import family_name, space_name
from identica.theory import vmf_cross_entropy


@dataclass(frozen=True)
class Estimate:
    """Settings for the estimate of the left side of the theorem.

    Attributes:
        negatives: the values of M.
        batches: number of independent estimates, for the standard error.
        anchors: latents z per batch, which share its negatives.
        positives: draws of p(z̃ | z) per anchor.
    """

    negatives: tuple[int, ...] = (10, 100, 1000, 10_000, 100_000, 1_000_000)
    batches: int = 8
    anchors: int = 64
    positives: int = 1024


@dataclass(frozen=True)
class Limit:
    """A row: uniform latents on a space, a conditional, and a perfect encoder with the same model."""

    row: int
    space: Space
    conditional: Family
    estimate: Estimate = Estimate()

    @cached_property
    def cross_entropy(self) -> float:
        """The limit E H(p(·|z), q(·|z)), in nats."""
        return cross_entropy(self.space, self.conditional)


# On the box M must be well above the effective number of alternatives, E q²/(E q)², to come near the
# limit: about 90 for a scale of 0.25, but 30 million for the tables' 0.05.
ROWS = [
    Limit(1, Sphere(10), VonMisesFisher(1.0)),
    Limit(2, Sphere(10), VonMisesFisher(10.0)),
    Limit(3, Box(10), Laplace(0.25)),
    Limit(4, Box(10), Normal(0.25)),
]


def cross_entropy(space: Space, conditional: Family) -> float:
    """E H(p(·|z), p(·|z)) for z uniform on the space: closed form on the sphere, quadrature on a box.

    On a box coordinates are independent, and each adds

        ∫ [log Z(c) + E|x − c|^β/λ^β] dc / side,  Z(c) = ∫ e^{−|x − c|^β/λ^β} dx

    >>> round(cross_entropy(Box(1), Normal(1e-3)), 2)  # hardly truncated: log σ√(2πe)
    -5.49
    """
    if isinstance(space, Sphere) and isinstance(conditional, VonMisesFisher):
        return vmf_cross_entropy(space.dim, conditional.kappa, radius=space.radius)
    if not isinstance(space, Box) or conditional.p is None:
        raise InputError(f"{conditional} on {space} has no cross-entropy to compare with")
    width = conditional.precision ** (-1 / conditional.p)
    low, high = space.bounds()
    scaled = [_entropy_of_coordinate(side / width, conditional.p) for side in (high - low).tolist()]
    return sum(scaled) + space.dim * math.log(width)


@lru_cache  # most boxes have equal sides
def _entropy_of_coordinate(side: float, beta: float) -> float:
    """Mean entropy of the density ∝ e^{−|x − c|^β} truncated to [0, side], for c uniform in it."""
    from scipy.integrate import quad
    from scipy.special import gamma, gammainc

    def entropy(c: float) -> float:
        lengths = np.array([c, side - c])
        z = float((gamma(1 + 1 / beta) * gammainc(1 / beta, lengths**beta)).sum())
        # by parts, ∫ t^β e^{−t^β} dt = (∫ e^{−t^β} dt − [t e^{−t^β}]) / β
        return math.log(z) + (1 - float((lengths * np.exp(-(lengths**beta))).sum()) / z) / beta

    # by symmetry, half of the side suffices
    edges = np.unique(np.minimum([0, 1, 8, 64, side / 2], side / 2))
    return sum(quad(entropy, a, b, epsabs=1e-12)[0] for a, b in pairwise(edges)) * 2 / side


@dataclass(frozen=True)
class Estimation:
    """The estimates of L(M) − log M + log|Z| for all M of a row, with a seed. Nothing is trained."""

    row: Limit
    seed: int

    @property
    def config(self) -> dict[str, Any]:
        return {
            "kind": "theorem1",
            "seed": self.seed,
            "space": repr(self.row.space),
            "marginal": repr(Uniform()),
            "conditional": repr(self.row.conditional),
            "estimate": vars(self.row.estimate),
        }

    @cached_property
    def name(self) -> str:
        return run_name(self.config)

    @property
    def pairs(self) -> int:
        return self.row.estimate.batches * self.row.estimate.anchors

    @torch.no_grad()
    def run(self, folder: Path, tick: Tick) -> dict[str, Any]:
        """Compute the estimates, and return the content of result.json.

        In a batch, the negatives for a small M are the first of those for a larger M, and each anchor has
        many positives. Both reduce the variance and add no bias. Batches are independent, so their spread
        gives the standard error.
        """
        began = time.perf_counter()
        source, row, estimate = as_generator(2 * self.seed), self.row, self.row.estimate
        curves = []
        for batch in range(estimate.batches):
            tick(batch, estimate.batches)
            curves.append(_curve(row, source))
        values = np.array(curves) + row.space.log_volume - np.log(estimate.negatives)
        errors = values.std(axis=0, ddof=1) / math.sqrt(estimate.batches)
        names = [score_name(m) for m in estimate.negatives]
        return {
            "scores": dict(zip(names, values.mean(axis=0).tolist(), strict=True)),
            "errors": dict(zip(names, errors.tolist(), strict=True)),
            "seconds": round(time.perf_counter() - began, 3),
            "pairs": estimate.batches * estimate.anchors * estimate.positives,
            "seed": self.seed,
        }


def _curve(row: Limit, source: torch.Generator) -> list[float]:
    """The loss for each M from one batch, in float64."""
    estimate, family = row.estimate, row.conditional

    def latents(size: int) -> Tensor:
        return row.space.sample(size, generator=source, dtype=torch.float64)

    z = latents(estimate.anchors)
    around = z.repeat_interleave(estimate.positives, dim=0)
    positive = family.similarity(around, family.sample(row.space, around, generator=source))
    positive = positive.view(estimate.anchors, estimate.positives)
    log_sum = torch.full((estimate.anchors, 1), -torch.inf, dtype=torch.float64)
    losses, drawn = [], 0
    for m in estimate.negatives:
        while drawn < m:
            keys = latents(min(50_000, m - drawn))
            part = _similarities(family, z, keys).logsumexp(1, keepdim=True)
            log_sum = torch.logaddexp(log_sum, part)
            drawn += len(keys)
        losses.append(float((torch.logaddexp(log_sum, positive) - positive).mean()))
    return losses


def _similarities(family: Family, z: Tensor, keys: Tensor) -> Tensor:
    if family.p is None:
        return family.pairwise(z, keys)
    return -family.precision * torch.cdist(z, keys, p=family.p).pow(family.p)


def score_name(negatives: int) -> str:
    """The name of the score for M negatives."""
    return f"M={negatives}"


class Theorem1(Study[Limit]):
    """The estimates for each M, and the limit, in nats."""

    unit = "nats"
    side_by_side = False
    legend = (
        "L(M) − log M + log|Z| in nats, mean ± standard error (number of seeds), and the limit: the "
        "entropy of the conditional."
    )
    within = "no further from the limit than two standard errors"

    def targets(self, row: Limit) -> list[Target]:
        limit, last = Published(row.cross_entropy, 0.0), row.estimate.negatives[-1]
        return [  # only the largest M has to be near the limit
            Target("contrastive", score_name(m), limit, ("within",) if m == last else ())
            for m in row.estimate.negatives
        ]

    def experiment(self, row: Limit, kind: str, seed: int, preset: Preset) -> Estimation:
        if isinstance(preset, str):
            one_of("preset", preset, PRESETS)  # both are the same: nothing is trained
        return Estimation(row, seed)

    def cells(self, row: Limit) -> dict[str, str]:
        return {
            "space": space_name(row.space),
            "p(z)": "uniform",
            "p(z̃|z)": family_name(row.conditional),
            "limit": self.show(row.cross_entropy),
        }

    def words(self, row: Limit) -> str:
        return (
            f"The encoder is perfect and its model is the true one, {family_name(row.conditional)} on "
            f"the {space_name(row.space)}. As the number M of negatives grows, the contrastive loss "
            f"minus log M plus log|Z| falls to the entropy of the conditional, "
            f"{row.cross_entropy:.4f} nats (Theorem 1)."
        )

    def tolerance(self, target: Target, ours: Ours) -> float:
        return 2 * ours.error

    def pictures(self, row: Limit, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        negatives = list(row.estimate.negatives)
        names = {score_name(m) for m in negatives}
        complete = [r for r in runs.get("contrastive", []) if names <= r.result["scores"].keys()]
        if not complete:
            return []
        from identica.report import plots
        from identica.studies.table import pooled

        ours = [pooled([run.result for run in complete], score_name(m)) for m in negatives]
        figure = plots.limit(
            negatives, [o.mean for o in ours], [2 * o.error for o in ours], row.cross_entropy
        )
        seeds = f"{len(complete)} seed{'s' * (len(complete) > 1)}"
        caption = f"Loss minus log M plus log|Z| against M, {seeds}; bars: 2 standard errors"
        return [Picture(caption, plots.inline(figure, dpi=90))]

    def show(self, value: float, score: str = "") -> str:
        return f"{value:.4f}"

    def spread(self, ours: Ours) -> float:
        return ours.error
