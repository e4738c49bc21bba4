"""SlowVAE: codes that mostly stay as they are from one frame to the next, and rarely jump."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from identica._validate import nonnegative, positive
from identica.baselines.vae import VAE, Gaussian, images, kl_to_standard
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
        beta: float = 1.0,
        gamma: float = 10.0,
        rate: float = 6.0,
        entropy: float = 0.5,
        channels: int = 1,
        scale: float = 1.0,
        network: str = "conv",
        seed: int = 0,
    ) -> None:
        super().__init__(n, channels=channels, scale=scale, network=network, seed=seed)
        self.beta, self.gamma = nonnegative("beta", beta), nonnegative("gamma", gamma)
        self.rate, self.entropy = positive("rate", rate), nonnegative("entropy", entropy)

    def forward(self, pairs: Pairs) -> Tensor:
        x = images(pairs)
        q = self.posterior(x)
        first, second = q.halves()
        steps = cross_entropy_to_laplace(first, second.mean, self.rate)
        steps = steps + cross_entropy_to_laplace(second, first.mean, self.rate)
        steps = steps - self.entropy * (entropy(first) + entropy(second))
        return (
            2 * self.misfit(x, q.draw(self.noise))
            + self.beta * kl_to_standard(q).sum(1).mean()
            + self.gamma * steps.sum(1).mean()
        )


def cross_entropy_to_laplace(q: Gaussian, centre: Tensor, rate: float) -> Tensor:
    """−E_q log Laplace(z; centre, 1/λ) of each code, N×n, in nats.

    For q = N(μ, σ²) and d = μ − centre it is

        λ·E|z − centre| − log(λ/2),   E|z − centre| = σ·√(2/π)·e^{−d²/2σ²} + d·erf(d/σ√2)

    >>> q = Gaussian(torch.tensor([3.0]), torch.tensor([-60.0]))  # all but a point
    >>> cross_entropy_to_laplace(q, torch.tensor([1.0]), 2.0)
    tensor([4.])
    """
    d, std = q.mean - centre, (q.log_var / 2).exp()
    u = d / (math.sqrt(2) * std)
    distance = std * math.sqrt(2 / math.pi) * torch.exp(-(u**2)) + d * torch.erf(u)
    return rate * distance - math.log(rate / 2)


def entropy(q: Gaussian) -> Tensor:
    """Of each code, N×n, in nats."""
    return (q.log_var + math.log(2 * math.pi * math.e)) / 2
