"""Ada-GVAE: codes that hardly differ between the two members of a pair are taken to be shared."""

from __future__ import annotations

import torch
from torch import Tensor

from identica._validate import nonnegative
from identica.baselines.vae import VAE, Gaussian, images, kl_to_standard
from identica.process import Pairs


class AdaGVAE(VAE):
    """The β-VAE objective with posteriors that the members of a pair share in part:

        L = E[ −log p(x | z) + β·KL(q̃(z | x) ‖ N(0, I)) ],  z ~ q̃(z | x)

    where q̃ averages the two posteriors in the codes whose KL(q ‖ q_pos) lies below half-way between
    the smallest and the largest of the pair (see `share`).

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

    def __init__(
        self,
        n: int = 10,
        *,
        beta: float = 1.0,
        channels: int = 1,
        scale: float = 1.0,
        network: str = "conv",
        seed: int = 0,
    ) -> None:
        super().__init__(n, channels=channels, scale=scale, network=network, seed=seed)
        self.beta = nonnegative("beta", beta)

    def forward(self, pairs: Pairs) -> Tensor:
        x = images(pairs)
        halves = share(*self.posterior(x).halves())
        q = Gaussian(*(torch.cat(members) for members in zip(*halves, strict=True)))
        return self.misfit(x, q.draw(self.noise)) + self.beta * kl_to_standard(q).sum(1).mean()


def share(first: Gaussian, second: Gaussian) -> tuple[Gaussian, Gaussian]:
    """Both posteriors with the mean of their means and of their variances where they hardly differ:

        KL(first_i ‖ second_i) < (min_j KL_j + max_j KL_j)/2

    >>> zeros = torch.zeros(1, 3)
    >>> a, b = share(Gaussian(zeros, zeros), Gaussian(torch.tensor([[0.5, 4.0, 1.0]]), zeros))
    >>> a.mean, b.mean
    (tensor([[0.2500, 0.0000, 0.5000]]), tensor([[0.2500, 4.0000, 0.5000]]))
    """
    differ = kl(first, second)
    low, high = differ.aminmax(dim=1, keepdim=True)
    # which codes are shared is a choice, not a quantity to learn
    alike = (differ < (low + high) / 2).detach()
    mean = (first.mean + second.mean) / 2
    log_var = ((first.log_var.exp() + second.log_var.exp()) / 2).log()
    one, two = (
        Gaussian(torch.where(alike, mean, q.mean), torch.where(alike, log_var, q.log_var))
        for q in (first, second)
    )
    return one, two


def kl(p: Gaussian, q: Gaussian) -> Tensor:
    """KL(p ‖ q) of each code, N×n, in nats."""
    ratio = p.log_var - q.log_var
    return (ratio.exp() + (p.mean - q.mean) ** 2 * (-q.log_var).exp() - 1 - ratio) / 2
