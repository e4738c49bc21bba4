"""InfoNCE, the contrastive loss of the paper, for every family."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

from identica._tensors import Convert, floats, same_device, takes_doubles
from identica._validate import count, flag, function, instance, members, one_of, positive
from identica.distributed import gather, mean
from identica.errors import InputError
from identica.families import Family
from identica.losses._negatives import full, mean_log_sum_exp, traced, without_autocast

SOURCES = ("anchors", "positives")
Potential = Callable[[Tensor], Tensor]


class InfoNCE(nn.Module):
    """The contrastive loss with the similarity s of a family, in nats:

        L = −E log[ e^{s(h, h̃)/τ} / (e^{s(h, h̃)/τ} + Σ_j e^{s(h, h_j)/τ}) ]

    for pairs of codes (h, h̃) and negatives h_j, the other anchors of the batch or their positives.

    Args:
        conditional: the assumed p(z̃ | z), whose log-density up to a constant is s.
        tau: temperature τ.
        self_negative: count each anchor among its own negatives, at distance 0, as the published
            code does. Off the sphere this fixes the scale of the solution.
        negatives: number of negatives per anchor, the next ones in the batch (in cyclic order, with
            the anchor itself first under `self_negative`); all by default.
        effective_negatives: weight the negatives other than the anchor itself as if there were this
            many of them in total. A small batch then has the optimum of a large one, at the cost of
            noise; if `self_negative` fixes the scale of the solution, that scale depends on it.
        positive_in_denominator: keep the positive pair in the denominator.
        negatives_from: "anchors", as published, or "positives": the positives of the other anchors.
            These have the distribution of the positive they are compared with, which differs from that of
            the anchors unless the marginal is uniform or stationary.
        symmetric: take both members of the pair as anchors in turn and average. Exact on the
            sphere with von Mises–Fisher; on a truncated box the reversed conditional has another form.
        apart: leave out negatives fewer than this many places from the anchor in the batch (in cyclic
            order): in a `Walk`, they depend on it.
        learn_tau: learn the temperature, starting from `tau`, as a logarithm.
        anneal: (start, steps): in training, the temperature moves geometrically from `start` to `tau`
            in the first `steps` calls. If positives are close together, the loss resolves their
            distances at a low temperature long before it does at `tau`; the final loss is the same.
        pull: (gain, start, stop), for codes on a sphere whose positives are so close together that a
            loss of this temperature hardly resolves them. In training, positives attract each other
            with at least gain·κ̂, where κ̂ = (n − 1)/E‖h − h̃‖² is the concentration of the pairs of
            the batch; negatives repel as before. It sets in at call `start` and is complete at call
            `stop`: codes that have not spread by then collapse, as they do with a gain near 1.
        learn_precision: the number n of dimensions, to learn a precision λ_k for each of them:
            −Σ_k λ_k |h_k − h̃_k|^p takes the place of the isotropic distance (AnInfoNCE; Rusak et
            al., "InfoNCE: identifying the gap between theory and practice", 2024).

    >>> from identica import VonMisesFisher
    >>> h = torch.nn.functional.normalize(torch.ones(4, 3), dim=1)
    >>> InfoNCE(VonMisesFisher(1.0))(h, h)  # all codes alike: log of 1 positive and 3 negatives
    tensor(1.3863)
    """

    def __init__(
        self,
        conditional: Family,
        tau: float = 1.0,
        self_negative: bool = False,
        negatives: int | None = None,
        *,
        effective_negatives: int | None = None,
        positive_in_denominator: bool = True,
        negatives_from: str = "anchors",
        symmetric: bool = False,
        apart: int = 1,
        learn_tau: bool = False,
        learn_precision: int | None = None,
        anneal: tuple[float, int] | None = None,
        pull: tuple[float, int, int] | None = None,
    ) -> None:
        super().__init__()
        instance("conditional", conditional, Family, "a family such as Laplace(1)")
        self.conditional, self.self_negative = conditional, flag("self_negative", self_negative)
        self.negatives = None if negatives is None else count("negatives", negatives)
        self.effective_negatives = effective_negatives
        if effective_negatives is not None:
            self.effective_negatives = count("effective_negatives", effective_negatives, at_least=2)
        self.positive_in_denominator = flag("positive_in_denominator", positive_in_denominator)
        self.negatives_from = one_of("negatives_from", negatives_from, SOURCES)
        if self.negatives_from == "positives" and self.self_negative:
            raise InputError(
                'negatives_from="positives" has no anchor among the negatives, so self_negative must '
                "be False"
            )
        self.symmetric = flag("symmetric", symmetric)
        self.apart = count("apart", apart)
        if self.effective_negatives and self.self_negative and self.negatives == 1:
            raise InputError(
                "negatives must be at least 2 with self_negative and effective_negatives, which weighs "
                "those other than the anchor itself"
            )
        if self.apart > 1 and self.self_negative:
            raise InputError("apart leaves the anchor itself out, so self_negative must be False")
        log_tau = torch.tensor(math.log(positive("tau", tau)), dtype=torch.float64)
        self.log_tau = nn.Parameter(log_tau, requires_grad=flag("learn_tau", learn_tau))
        self.anneal = anneal
        if anneal is not None:
            if learn_tau:
                raise InputError("anneal sets the temperature, so learn_tau must be False")
            start, steps = members("anneal", anneal, "(start, steps)", 2)
            self.log_rise = float(log_tau) - math.log(positive("anneal", start))
            self.log_end, self.rise_steps = float(log_tau), count("anneal", steps)
            self.log_tau.data -= self.log_rise
        self.pull = None if pull is None else self._check_pull(pull)
        if anneal is not None or pull is not None:
            self.register_buffer("calls", torch.tensor(0))
        if learn_precision is not None:
            if conditional.p is None:
                raise InputError(
                    f"learn_precision needs a distance, and {conditional} has a dot product: take "
                    "Normal(1), which is von Mises–Fisher on a sphere where all precisions agree"
                )
            zeros = torch.zeros(count("learn_precision", learn_precision))
            self.log_precision = nn.Parameter(zeros)
        self.learn_precision = learn_precision

    @property
    def tau(self) -> float:
        """The current temperature."""
        return float(self.log_tau.detach().exp())

    @property
    def precision(self) -> Tensor:
        """The current λ_k, including the family's own precision and the temperature, shape n."""
        if self.learn_precision is None:
            raise InputError("precision is only learnt with learn_precision")
        return self.log_precision.detach().exp() * (self.conditional.precision / self.tau)

    def scaled(self, codes: Tensor) -> Tensor:
        """Codes (…×n) whose isotropic similarity is the learnt one: h_k·λ_k^{1/p}."""
        if self.learn_precision is None:
            return codes
        if codes.shape[-1] != self.learn_precision:
            raise InputError(
                f"learn_precision must be the number of columns of the codes, "
                f"{codes.shape[-1]}, got {self.learn_precision}"
            )
        assert self.conditional.p is not None
        return codes * (self.log_precision / self.conditional.p).exp().to(codes.dtype)

    def _apply(self, fn: Convert, recurse: bool = True) -> Self:
        if not takes_doubles(fn):
            self.log_tau.data = self.log_tau.data.float()
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def extra_repr(self) -> str:
        return f"{self.conditional}, tau={self.tau:g}, self_negative={self.self_negative}"

    def forward(self, h: Tensor, h_pos: Tensor, potential: Potential | None = None) -> Tensor:
        """The loss (a scalar) of anchors h and positives h_pos, both N×n.

        With K positives for each anchor (h_pos of shape N×K×n) it is the mean over them; the
        positive must then stay out of the denominator, and the negatives are anchors.

        Codes of half precision are taken in single precision, also under autocast, and so is the loss.
        The transforms of `torch.func` see plain torch in place of the fused kernel, with all similarities
        in memory.

        Args:
            h, h_pos: the codes.
            potential: from codes (…×n) to two numbers each (…×2), such as `Potential`: b and b′. In
                the formula, b(h̃) is added to s(h, h̃)/τ and b(h_j) to s(h, h_j)/τ, and b′ takes its
                place where `symmetric` swaps the members of a pair.
        """
        floats("h", h, meta=True)
        if floats("h_pos", h_pos, meta=True).ndim not in (2, 3):
            raise InputError(f"h_pos must have shape N×n or N×K×n, got {tuple(h_pos.shape)}")
        with without_autocast(h):
            return self._forward(full(h), full(h_pos), potential)

    def _forward(self, h: Tensor, h_pos: Tensor, potential: Potential | None) -> Tensor:
        calls = 0
        if self.training and (self.anneal is not None or self.pull is not None):
            calls = self._count()
        if h_pos.ndim == 3 and (self.positive_in_denominator or self.symmetric):
            raise InputError(
                "several positives per anchor need positive_in_denominator=False and symmetric=False"
            )
        if h_pos.ndim == 3 and (self.negatives_from == "positives" or self.pull is not None):
            raise InputError('several positives per anchor need negatives_from="anchors", no pull')
        check_codes(h, h_pos if h_pos.ndim == 2 else h_pos[:, 0])
        if not self.training:
            check_finite(h, h_pos)
        b = b_pos = back = back_pos = None
        if potential is not None:
            b_pos, back_pos = terms(potential, h_pos)
            if self.symmetric or self.negatives_from == "anchors":
                b, back = terms(potential, h)
        h, h_pos = self.scaled(h), self.scaled(h_pos)
        loss = self._one_way(h, h_pos, b, b_pos)
        if self.symmetric:
            loss = (loss + self._one_way(h_pos, h, back_pos, back)) / 2
        if self.pull is not None and self.training:
            loss = loss + self._pulled(h, h_pos, calls, *self.pull)
        return loss

    @torch.no_grad()
    def _count(self) -> int:
        """The number of this call in training, from 0; the temperature of it is set."""
        counter = self.get_buffer("calls")
        calls = int(counter)
        if self.anneal is not None:
            left = max(0.0, 1 - calls / self.rise_steps)
            self.log_tau.fill_(self.log_end - left * self.log_rise)
        counter += 1
        return calls

    def _check_pull(self, pull: Any) -> tuple[float, int, int]:
        gain, start, stop = members("pull", pull, "(gain, start, stop)", 3)
        if self.conditional.p is not None:
            raise InputError(f"pull needs a dot product, and {self.conditional} has a distance")
        start = count("pull", start, at_least=0)
        return positive("pull", gain), start, count("pull", stop, at_least=start + 1)

    def _pulled(
        self, h: Tensor, h_pos: Tensor, calls: int, gain: float, start: int, stop: int
    ) -> Tensor:
        """What is missing from the attraction of positives, as a term of the loss."""
        apart = (h - h_pos).square().sum(-1).mean() / 2
        strength = gain * min(1.0, max(0.0, (calls - start) / (stop - start)))
        wanted = strength * (h.shape[-1] - 1) / (2 * mean(float(apart.detach())))
        return max(0.0, wanted - self.conditional.precision / self.tau) * apart

    def _one_way(
        self,
        anchors: Tensor,
        positives: Tensor,
        b: Tensor | None = None,
        b_pos: Tensor | None = None,
    ) -> Tensor:
        inverse_tau = (-self.log_tau).exp().to(anchors.dtype)
        alike = anchors if positives.ndim == 2 else anchors[:, None]
        similarity = self.conditional.similarity(alike, positives) * inverse_tau
        if b_pos is not None:
            similarity = similarity + b_pos
        others, biases = (anchors, b) if self.negatives_from == "anchors" else (positives, b_pos)
        keys, offset = others, 0
        if self.training:  # those of all processes
            keys, offset = gather(others)
            biases = None if biases is None else gather(biases)[0]
        first, number = window(len(keys), self.self_negative, self.negatives, self.apart)
        beside = similarity if self.positive_in_denominator else None
        log_weight = 0.0
        if self.effective_negatives is not None:
            if self.self_negative:  # of weight 1, beside the positive
                own = self.conditional.similarity(anchors, anchors) * inverse_tau
                own = own if b is None else own + b
                beside = own if beside is None else torch.logaddexp(beside, own)
                first, number = first + 1, number - 1
            weighed = self.effective_negatives - self.self_negative
            log_weight = math.log(weighed / number)
            beside = None if beside is None else beside - log_weight
        tensors = anchors, keys, beside, inverse_tau, biases
        log_sum = mean_log_sum_exp(self.conditional, tensors, first=offset + first, count=number)
        return log_sum + log_weight - similarity.mean()


def terms(potential: Potential, codes: Tensor) -> tuple[Tensor, Tensor]:
    """b and b′ of codes (…×n), each of shape (…)."""
    function("potential", potential)
    values = potential(codes)
    if not isinstance(values, Tensor) or values.shape != (*codes.shape[:-1], 2):
        raise InputError("potential must give two numbers for each code, as Potential does")
    b, reverse = values.unbind(-1)
    return b, reverse


def window(
    batch: int, self_negative: bool, negatives: int | None, apart: int = 1
) -> tuple[int, int]:
    """First offset and number of the negatives of each anchor in a batch."""
    first = 0 if self_negative else apart
    available = batch - first - (apart - 1)
    if available < 1:
        raise InputError(f"apart must leave negatives in a batch of {batch}, got {apart}")
    if negatives is not None and negatives > available:
        raise InputError(
            f"negatives must be at most {available} for a batch of {batch}, got {negatives}"
        )
    return first, available if negatives is None else negatives


def check_codes(h: Tensor, h_pos: Tensor) -> None:
    """Raise unless the codes of a batch are two N×n tensors with at least two rows."""
    if h.ndim != 2 or h.shape != h_pos.shape or h.shape[1] == 0:
        raise InputError(
            f"h and h_pos must both have shape N×n, got {tuple(h.shape)} and {tuple(h_pos.shape)}"
        )
    same_device("h_pos", h_pos, "h", h)
    if len(h) < 2:
        raise InputError(f"h must hold at least 2 codes: a batch of {len(h)} has no negatives")


def check_finite(h: Tensor, h_pos: Tensor) -> None:
    """Raise unless all codes are finite. In training the loss shows it, since it is not finite either."""
    if traced():  # there is nothing to look at yet
        return
    for name, codes in (("h", h), ("h_pos", h_pos)):
        if not codes.isfinite().all():
            raise InputError(f"{name} must be finite, but some codes are NaN or infinite")
