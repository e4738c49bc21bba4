"""A contrastive model fitted to pairs: the function behind the estimator, and how it is judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from identica._random import Device, as_generator
from identica.encoders import ContrastiveModel
from identica.estimator.inputs import Shape
from identica.estimator.pairs import Batch, PairSampler
from identica.families import Family, Joint
from identica.heads import BoxHead, Head, make_head
from identica.losses import InfoNCE
from identica.spaces import Box, Space, Sphere
from identica.training import Contrastive, Training, train

MEASURED = 8192  # rows from which means and variances are taken
JUDGED = 2048  # pairs by which the temperature is set


# --- encoders that take data as they come -----------------------------------------------------------


# --- fitting ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """What `fit` found.

    Attributes:
        model: from observations to codes in the space.
        loss: its similarity, with the precisions where they were learnt.
        temperature: what similarities are divided by to be log-likelihoods, up to a constant.
        history: records of the training.
    """

    model: ContrastiveModel
    loss: InfoNCE
    temperature: float
    history: list[dict[str, float]]

    @property
    def precision(self) -> Tensor:
        """λ_k of the fitted similarity −Σ_k λ_k |a_k − b_k|^p, shape n."""
        return self.loss.precision * self.loss.tau / self.temperature

    @torch.no_grad()
    def log_likelihood(self, pairs: Batch) -> Tensor:
        """Evidence for each pair that it belongs together, see `log_likelihood`; shape N."""
        h, h_pos = (self.loss.scaled(encode(self.model, x)) for x in pairs)
        return log_likelihood(self.loss.conditional, h, h_pos, self.temperature)


def fit(
    sample: PairSampler,
    encoder: nn.Module,
    space: Space,
    conditional: Family,
    training: Training,
    *,
    learn_precision: bool = False,
    device: Device = "cpu",
    seed: int = 0,
    out: Path | None = None,
    progress: str | None = None,
    tensorboard: bool = False,
) -> Fit:
    """Train an encoder on pairs, so that the codes in `space` follow `conditional` in pairs.

    The scale of the conditional is learnt: of a family only the form matters.

    Args:
        sample: draws pairs, `sample(size, generator=…)`.
        encoder: as from `make_encoder`, with its statistics measured.
        learn_precision: learn a scale for each dimension.
        out: folder for checkpoints, from which a killed fit goes on.
        tensorboard: write the history for TensorBoard as well, to out/tensorboard.
    """
    head, loss = recipe(space, conditional, training, learn_precision=learn_precision)
    model = ContrastiveModel(space, conditional, encoder, head=head)
    objective = Contrastive(model, loss).to(device)

    def draw(size: int, *, generator: torch.Generator) -> Batch:
        x, x_pos = sample(size, generator=generator)
        return Batch(x.to(device), x_pos.to(device))

    history = train(
        objective,
        draw,
        training,
        seed=seed,
        out=out,
        progress=progress,
        tensorboard=tensorboard,
    )
    # the size of the codes was a means to an end: the space says what it is
    model.head = make_head(space).to(device)
    pairs = draw(JUDGED, generator=as_generator(seed, device))
    with torch.no_grad():
        h, h_pos = (loss.scaled(encode(model, x)) for x in pairs)
    return Fit(model, loss, calibrate(conditional, h, h_pos), history.records)


def usual_training(shape: Shape, space: Space) -> Training:
    """How long and with what, unless told otherwise."""
    if len(shape) > 1:
        return Training(steps=600, batch=32, lr=2e-3, warmup=20, decay=0.4)
    return Training(steps=4000 if isinstance(space, Box) else 3000)


def recipe(
    space: Space, conditional: Family, training: Training, *, learn_precision: bool = False
) -> tuple[Head, InfoNCE]:
    """Head and loss that train well; docs/speed.md says why.

    All start from unit precision, whatever the scale of the family.
    """
    n = space.dim if learn_precision else None
    if isinstance(conditional, Joint):
        return make_head(space), InfoNCE(
            conditional, self_negative=True, learn_tau=True, learn_precision=n
        )
    tau, p = conditional.precision, conditional.p
    if isinstance(space, Sphere):
        # positives close together hardly move a loss of unit precision, so begin at ten; but with a
        # high precision of its own for each dimension the codes can do with a corner of the sphere
        tau *= (0.1 if n is None else 1.0) * space.radius ** (2 if p is None else p)
        symmetric = p is None or p == 2
        return make_head(space), InfoNCE(
            conditional, tau, symmetric=symmetric, learn_tau=n is None, learn_precision=n
        )
    weighed = {1.0: 20_000, 2.0: 6144} if isinstance(space, Box) else {1.0: 1_000_000}
    # a small batch (of images) says too little of its neighbourhood to be weighed as a large one
    effective = weighed.get(p or 0) if training.batch >= 512 else None
    loss = InfoNCE(
        conditional, tau, self_negative=True, effective_negatives=effective, learn_precision=n
    )
    if not isinstance(space, Box):
        return make_head(space), loss
    # walls single out the axes: start where they are felt and grow slowly, at most e⁴-fold
    start, lr = {1.0: 1.0, 2.0: 2.0}.get(p or 0, 5.0), 8 / training.steps
    return BoxHead(space, learnable=True, start=start, lr=lr), loss


# --- judging ----------------------------------------------------------------------------------------


@torch.no_grad()
def encode(model: nn.Module, x: Tensor, size: int = 4096) -> Tensor:
    """Codes of observations, some at a time."""
    return torch.cat([model(part) for part in x.split(size)])


def log_likelihood(family: Family, h: Tensor, h_pos: Tensor, temperature: float) -> Tensor:
    """How much likelier the true positive is than by chance, in nats, among those of the batch:

        log[ e^{s(h_i, h̃_i)/τ} / mean_j e^{s(h_i, h̃_j)/τ} ]

    for each pair i of codes N×n; shape N. Its mean is at most log N and, in expectation, at most the
    mutual information of the members of a pair. Any two models can be compared by it.
    """
    values = []
    for start in range(0, len(h), 256):
        rows = slice(start, start + 256)
        own = family.similarity(h[rows], h_pos[rows])
        every = family.pairwise(h[rows], h_pos)
        values.append(own / temperature - (every / temperature).logsumexp(1) + math.log(len(h)))
    return torch.cat(values)


def calibrate(family: Family, h: Tensor, h_pos: Tensor) -> float:
    """The temperature at which the mean log-likelihood of pairs of codes is highest."""
    from scipy.optimize import minimize_scalar

    anchors = h[:512]
    every = torch.cat([family.pairwise(rows, h_pos) for rows in anchors.split(128)])
    own = every.diagonal()
    spread = float((every - own[:, None]).abs().mean())
    if not spread > 0:  # all codes alike
        return 1.0

    def loss(log_tau: float) -> float:
        tau = math.exp(log_tau)
        return float(((every / tau).logsumexp(1) - own / tau).mean())

    middle = math.log(spread)
    found = minimize_scalar(loss, bounds=(middle - 15, middle + 5), method="bounded")
    return math.exp(found.x)
