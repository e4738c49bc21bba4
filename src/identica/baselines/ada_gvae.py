"""Ada-GVAE: codes that hardly differ between the two members of a pair are taken to be shared."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from identica.baselines.vae import VAE, images, normal
from identica.process import Pairs


class AdaGVAE(VAE):
    """The β-VAE objective with posteriors that the members of a pair share in part:

        L = E[ −log p(x | z) + β·KL(q̃(z | x) ‖ N(0, I)) ],  z ~ q̃(z | x)

    where q̃ averages the two posteriors in the codes whose KL(q ‖ q_pos) lies below half-way between
    the smallest and the largest of the pair (see `shared`).

    Reference: Locatello et al., "Weakly-Supervised Disentanglement Without Compromises", ICML 2020.

    Args:
        n: number of codes.
        beta: β, 1 as published.
        channels, scale, network, seed: as in `VAE`.

    >>> from identica import Pairs
    >>> x = torch.zeros(2, 64, 64)
    >>> AdaGVAE()(Pairs(x, x, x, x)).shape
    torch.Size([])
    """

    def forward(self, pairs: Pairs) -> Tensor:
        x = images(pairs)
        misfit, to_prior = self.terms(x, shared(self.posterior(x)))
        return misfit + to_prior


def shared(q: Normal) -> Normal:
    """Posteriors of 2N images, of which i and N + i are a pair, where the two of a pair hardly differ
    with the mean of their means and of their variances:

        KL(q_i ‖ q_{N+i}) < (min KL + max KL)/2, over the codes of the pair

    >>> shared(normal(torch.tensor([[0.0, 0.0, 0.0], [0.5, 4.0, 1.0]]), torch.ones(2, 3))).mean
    tensor([[0.2500, 0.0000, 0.5000],
            [0.2500, 4.0000, 0.5000]])
    """
    means, variances = q.mean.chunk(2), q.variance.chunk(2)
    differ = kl_divergence(*map(normal, means, q.stddev.chunk(2)))
    low, high = differ.aminmax(dim=1, keepdim=True)
    # which codes are shared is a choice, not a quantity to learn
    alike = (differ < (low + high) / 2).detach().repeat(2, 1)
    mean, variance = (torch.stack(both).mean(0).repeat(2, 1) for both in (means, variances))
    return normal(torch.where(alike, mean, q.mean), torch.where(alike, variance.sqrt(), q.stddev))
