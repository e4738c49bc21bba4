"""β-VAE: single images, with a larger weight on the information in the codes."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from identica.baselines.vae import VAE, images
from identica.process import Pairs


class BetaVAE(VAE):
    """The β-VAE objective, mean over all images of the pairs, taken singly, in nats:

        L = E[ −log p(x | z) + β·KL(q(z | x) ‖ N(0, I)) ],  z ~ q(z | x)

    Reference: Higgins et al., "β-VAE: Learning Basic Visual Concepts with a Constrained Variational
    Framework", ICLR 2017.

    Args:
        n: number of codes.
        beta: β, 8 as published for the comparison on KITTI Masks.
        channels, scale, network, seed: as in `VAE`.

    >>> import torch
    >>> from identica import Pairs
    >>> x = torch.zeros(2, 64, 64)
    >>> BetaVAE()(Pairs(x, x, x, x)).shape
    torch.Size([])
    """

    def __init__(self, n: int = 10, *, beta: float = 8.0, **options: Any) -> None:
        super().__init__(n, beta=beta, **options)

    def forward(self, pairs: Pairs) -> Tensor:
        x = images(pairs)
        misfit, to_prior = self.terms(x, self.posterior(x))
        return misfit + to_prior
