"""SlowVAE: codes that mostly stay as they are from one frame to the next, and rarely jump."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Laplace, kl_divergence

from identica._validate import nonnegative, positive
from identica.baselines.vae import VAE, images
from identica.process import Pairs


class SlowVAE(VAE):
    """The SlowVAE objective, mean over pairs of neighbouring frames, in nats:

        L = Σ_t −log p(x_t | z_t) + β·mean_t KL(q_t ‖ N(0, I)) + γ·Σ_t (CE(q_t, Laplace(μ_s, 1/λ)) − η·H(q_t))

    with both t ≠ s of a pair, q_t = q(z | x_t) of mean μ_t, z_t ~ q_t, cross-entropies CE and entropies
    H. With η = 1 the last term is a KL divergence; the published figures are from code with η = ½, whose
    codes are twice as sharp.

    Reference: Klindt et al., "Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse
    Coding", ICLR 2021.

    Args:
        n: number of codes.
        beta, gamma, rate, entropy: β, γ, λ and η, as published.
        channels, scale, network, seed: as in `VAE`.

    >>> from identica import Pairs
    >>> x = torch.zeros(2, 64, 64)
    >>> SlowVAE()(Pairs(x, x, x, x)).shape
    torch.Size([])
    """

    def __init__(
        self,
        n: int = 10,
        *,
        gamma: float = 10.0,
        rate: float = 6.0,
        entropy: float = 0.5,
        **options: Any,
    ) -> None:
        super().__init__(n, **options)
        self.gamma, self.rate = nonnegative("gamma", gamma), positive("rate", rate)
        self.entropy = nonnegative("entropy", entropy)

    def forward(self, pairs: Pairs) -> Tensor:
        x = images(pairs)
        q = self.posterior(x)
        misfit, to_prior = self.terms(x, q)
        other = q.mean.roll(len(pairs.x), dims=0)  # μ_s of the other member of each pair
        jump = Laplace(other, torch.full_like(other, 1 / self.rate), validate_args=False)
        # CE(q, p) − η·H(q) = KL(q ‖ p) + (1 − η)·H(q)
        steps = kl_divergence(q, jump) + (1 - self.entropy) * q.entropy()
        return 2 * misfit + to_prior + 2 * self.gamma * steps.sum(1).mean()
