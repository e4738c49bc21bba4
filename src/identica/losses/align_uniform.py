"""Alignment and uniformity, the asymptotic form of the contrastive loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from identica._tensors import floats
from identica._validate import count, finite, flag, members, positive
from identica.distributed import gather
from identica.errors import InputError
from identica.families import GeneralizedNormal
from identica.losses._negatives import full, mean_log_sum_exp, without_autocast
from identica.losses.infonce import check_codes, check_finite, window


class AlignUniform(nn.Module):
    """The convex combination of uniformity and alignment of codes h with positives h̃ and negatives h⁻:

        L_AU(α, p) = α·E log E e^{−‖h − h⁻‖_p^p} + (1 − α)·E‖h − h̃‖_p^p

    (workshop version of the paper; Wang & Isola, "Understanding contrastive representation learning
    through alignment and uniformity on the hypersphere", 2020).

    Args:
        alpha: weight α of uniformity, between 0 and 1.
        p: exponent of the distance.
        self_negative: count each code among its own negatives.
        anneal: (start, steps): in training, 1 − α moves geometrically from 1 − start to its value in
            the first `steps` calls. With α near 1, positives hardly count until all codes are far
            apart, and then only the nearest negatives have an effect; the final loss is the same.

    >>> h = torch.tensor([[0.0], [1.0]])
    >>> AlignUniform(0.5, p=1)(h, h + 0.5)  # (−1)/2 + 0.5/2
    tensor(-0.2500)
    """

    def __init__(
        self,
        alpha: float = 0.5,
        p: float = 1.0,
        self_negative: bool = False,
        *,
        anneal: tuple[float, int] | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= finite("alpha", alpha) <= 1:
            raise InputError(f"alpha must lie between 0 and 1, got {alpha!r}")
        self.anneal = anneal
        if anneal is not None:
            start, steps = members("anneal", anneal, "(start, steps)", 2)
            if not (0 <= finite("anneal", start) < 1 and alpha < 1):
                raise InputError(
                    f"anneal must start from below 1 to an alpha below 1, got {start!r}"
                )
            count("anneal", steps)
            self.register_buffer("calls", torch.tensor(0))
        self.alpha, self.p = float(alpha), positive("p", p)
        self.conditional = GeneralizedNormal(self.p)
        self.self_negative = flag("self_negative", self_negative)

    def extra_repr(self) -> str:
        return f"{self.alpha}, p={self.p}, self_negative={self.self_negative}"

    def forward(self, h: Tensor, h_pos: Tensor) -> Tensor:
        """The loss (a scalar) of anchors h and positives h_pos, both N×n, in single precision at least."""
        check_codes(floats("h", h, meta=True), floats("h_pos", h_pos, meta=True))
        with without_autocast(h):
            return self._forward(full(h), full(h_pos))

    def _forward(self, h: Tensor, h_pos: Tensor) -> Tensor:
        if not self.training:
            check_finite(h, h_pos)
        alpha = self._alpha()
        keys, offset = gather(h) if self.training else (h, 0)
        first, number = window(len(keys), self.self_negative, None)
        tensors = h, keys, None, h.new_ones(()), None
        log_sum = mean_log_sum_exp(self.conditional, tensors, first=offset + first, count=number)
        uniformity = log_sum - torch.log(h.new_tensor(number))
        alignment = -self.conditional.similarity(h, h_pos).mean()
        return alpha * uniformity + (1 - alpha) * alignment

    def _alpha(self) -> float:
        """The current α; each call in training moves it towards its final value."""
        if self.anneal is None:
            return self.alpha
        start, steps = self.anneal
        calls = self.get_buffer("calls")
        left = max(0.0, 1 - int(calls) / steps)
        calls += self.training
        return 1 - (1 - self.alpha) * ((1 - start) / (1 - self.alpha)) ** left
