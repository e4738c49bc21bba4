"""The potential: a learnt term of the loss that absorbs any marginal."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from identica._tensors import points
from identica._validate import count, flag, positive
from identica.encoders import MLP
from identica.heads import Head


class Potential(nn.Module):
    """Two learnt functions b and b′ of a code, for the two directions of a symmetric loss:

        s(x, x̃) = −δ(h(x), h(x̃))/τ + b(h(x̃)),    s′(x̃, x) = −δ(h(x̃), h(x))/τ + b′(h(x))

    At the minimum of the loss −b is the log-density of the factors behind the negatives, up to a
    constant, and −b′ the log of the conditional's normaliser, which is constant on R^n and on the sphere.
    The optimal codes then do not depend on the marginal.

    Codes are detached, so no gradient reaches the encoder: the density of factors is a simple function of the
    codes, but a function of the observations as complicated as the encoder. Both functions start at 0, where
    the loss is that without a potential.

    In an unbounded space, log-densities are curved in the tails, where a network of leaky ReLUs is linear. A
    curved potential learns them in fewer steps. It is a smooth network f with a quadratic function beside it:

        b(h) = f(h) + Σ_k (v_k h_k + w_k h_k²)

    Args:
        n: code dimensions.
        hidden: widths of the hidden layers.
        seed: determines the initial weights.
        lr: its own learning rate; the optimiser's if None.
        curved: SiLUs in place of leaky ReLUs, and the quadratic function, which starts at 0.

    >>> Potential(3)(torch.randn(5, 3))[0]
    tensor([0., 0.], grad_fn=<SelectBackward0>)
    """

    def __init__(
        self,
        n: int,
        hidden: Sequence[int] = (64, 64),
        *,
        seed: int = 0,
        lr: float | None = None,
        curved: bool = False,
    ) -> None:
        super().__init__()
        self.n = count("n", n)
        self.lr = None if lr is None else positive("lr", lr)
        self.network = MLP(n, 2, hidden, seed=seed)
        last = self.network.layers[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        # v and w of b, then those of b′
        self.curve = nn.Parameter(torch.zeros(2, 2 * n)) if flag("curved", curved) else None

    def forward(self, codes: Tensor) -> Tensor:
        """b and b′ (…×2) of codes (…×n)."""
        h = points("codes", codes, self.n).detach()
        if self.curve is None:
            return self.network(h)
        x = h
        for layer in self.network.layers[:-1]:
            x = nn.functional.silu(layer(x))
        quadratic = torch.cat([h, h.square()], -1) @ self.curve.T
        return self.network.layers[-1](x) + quadratic

    @torch.no_grad()
    def follow(self, old: Head, new: Head) -> None:
        """Adapt to another head of the same space, with unchanged values for the same observations.

        Heads of a space differ in the scale of their codes, so only the first layer changes, and what is
        quadratic in them.
        """
        first, last = self.network.layers[0], self.network.layers[-1]
        assert isinstance(first, nn.Linear)
        assert isinstance(last, nn.Linear)
        ends = torch.tensor([[-1.0], [1.0]]).expand(2, self.n).to(first.weight)
        (low, high), (new_low, new_high) = old(ends), new(ends)
        factor = (high - low) / (new_high - new_low)
        shift = low - factor * new_low
        first.bias.add_(first.weight @ shift)
        first.weight.mul_(factor)
        if self.curve is not None:  # of factor·h + shift
            v, w = self.curve.chunk(2, dim=1)
            last.bias.add_(v @ shift + w @ shift.square())
            v.add_(2 * w * shift).mul_(factor)
            w.mul_(factor.square())

    @torch.no_grad()
    def centre(self, codes: Tensor) -> None:
        """Shift b and b′ to have mean 0 over codes (N×n); the loss stays the same."""
        last = self.network.layers[-1]
        assert isinstance(last, nn.Linear)
        last.bias.sub_(self(codes).mean(0))

    @torch.no_grad()
    def log_density(self, codes: Tensor, reference: Tensor | None = None) -> Tensor:
        """The log-density of the factors behind codes (N×n), plus its entropy: −(b − mean b).

        The mean is over codes that follow this density (held-out positives, if the negatives were
        positives), so that fits with different constants in b agree. It is a density of the
        factors, in the coordinates in which the codes recover them, not of the observations.

        Args:
            codes: where to evaluate it, N×n.
            reference: codes to take the mean over; by default `codes`.
        """
        b = self(codes)[..., 0]
        return (b if reference is None else self(reference)[..., 0]).mean() - b
