"""Evidence that the members of a pair belong together, by the similarity of their codes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from identica.families import Family
from identica.losses import InfoNCE


def log_likelihood(
    family: Family, h: Tensor, h_pos: Tensor, temperature: float, bias: Tensor | None = None
) -> Tensor:
    """Log-likelihood ratio of the true positive, among all positives of the batch, to chance, in nats:

        log[ e^{s(h_i, h̃_i)/τ + b_i} / mean_j e^{s(h_i, h̃_j)/τ + b_j} ]

    for each pair i of codes N×n; shape N. Its mean is at most log N and, in expectation, at most the
    mutual information of the members of a pair. Any two models can be compared by it.

    Args:
        bias: b of each positive, shape N, where the model has a potential; 0 by default.
    """
    b = h_pos.new_zeros(len(h_pos)) if bias is None else bias
    values = []
    for start in range(0, len(h), 256):
        rows = slice(start, start + 256)
        own = family.similarity(h[rows], h_pos[rows])
        every = family.pairwise(h[rows], h_pos)
        chance = (every / temperature + b).logsumexp(1) - math.log(len(h))
        values.append(own / temperature + b[rows] - chance)
    return torch.cat(values)


def bits(
    family: Family,
    h: Tensor,
    h_pos: Tensor,
    temperatures: Sequence[float],
    bias: Tensor | None = None,
) -> float:
    """The mean log-likelihood of pairs of codes N×n in bits, at the best of some temperatures."""
    potential = None if bias is None else lambda _: torch.stack([bias, bias], dim=1)
    losses = (InfoNCE(family, t, negatives_from="positives").eval() for t in temperatures)
    least = min(float(loss(h, h_pos, potential)) for loss in losses)
    return (math.log(len(h)) - least) / math.log(2)


def calibrate(family: Family, h: Tensor, h_pos: Tensor, bias: Tensor | None = None) -> float:
    """The temperature at which the mean log-likelihood of pairs of codes is highest."""
    from scipy.optimize import minimize_scalar

    b = h_pos.new_zeros(len(h_pos)) if bias is None else bias
    anchors = h[:512]
    every = torch.cat([family.pairwise(rows, h_pos) for rows in anchors.split(128)])
    own = every.diagonal()
    spread = float((every - own[:, None]).abs().mean())
    if not spread > 0:  # all codes alike
        return 1.0

    def loss(log_tau: float) -> float:
        tau = math.exp(log_tau)
        return float(((every / tau + b).logsumexp(1) - own / tau).mean())

    middle = math.log(spread)
    optimum = minimize_scalar(loss, bounds=(middle - 15, middle + 5), method="bounded")
    return math.exp(optimum.x)
