"""A contrastive model fitted to pairs: the function behind the estimator, and how it is judged."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from identica._check import InputError, function
from identica._random import Device, as_generator
from identica.encoders import MLP, BoxHead, ContrastiveModel, ConvEncoder, Head, make_head
from identica.families import Family, Joint
from identica.losses import InfoNCE
from identica.pairing import Batch, PairSampler
from identica.spaces import Box, Space, Sphere
from identica.training import Contrastive, Training, train

Shape = tuple[int, ...]
Network = nn.Module | Callable[[Shape, int], nn.Module] | None

MEASURED = 8192  # rows from which means and variances are taken
JUDGED = 2048  # pairs by which the temperature is set
WIDE = 1000  # columns beyond which rows are scaled but no longer decorrelated


# --- encoders that take data as they come -----------------------------------------------------------


class Whiten(nn.Module):
    """(x − mean)/scale·W: rows with unit variances and no correlations, as measured on a sample.

    Directions whose standard deviation is below a hundredth of the strongest one's (once every
    column has unit variance) are not blown up further. Columns that vary by no more than rounding
    become 0. Wide rows are scaled column by column.
    """

    mean: Tensor
    scale: Tensor
    matrix: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        # in double precision: the digits that vary may be the last ones, and units may be any
        self.register_buffer("mean", torch.zeros(columns, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(columns, dtype=torch.float64))
        self.register_buffer("matrix", torch.eye(columns) if columns <= WIDE else torch.empty(0))

    def measure(self, x: Tensor) -> None:
        """Take mean, scale and matrix from a sample N×d."""
        given, x = x.dtype, x.to(self.mean)
        moved = x - x[0]  # exact where rows are alike: no large offset comes into the sums
        span = moved.abs().amax(0)
        if not span.isfinite().all():
            raise InputError("X must span less than 1e308, got columns with a wider range")
        unit = moved / torch.where(span > 0, span, 1.0)  # whose squares neither vanish nor overflow
        std, centre = torch.std_mean(unit, 0, correction=0)
        varies = std * span > 4 * torch.finfo(x.dtype).eps * x.abs().amax(0)  # more than rounding
        if not varies.any():
            raise InputError(
                f"X must vary, but every column is constant to the precision of its type ({given}): "
                "subtract a large offset before converting to that type"
            )
        self.mean.copy_(x[0] + centre * span)
        self.scale.copy_(torch.where(varies, std * span, torch.inf))
        if not self.matrix.numel():
            return
        normal = torch.where(varies, (unit - centre) / std, 0.0)
        values, vectors = torch.linalg.eigh(normal.T @ normal / len(x))
        # the sign of an eigenvector is anyone's choice: make it the same whatever units and machine
        weights = 1 / torch.arange(1, len(vectors) + 1).to(vectors)
        vectors = torch.where(weights @ vectors < 0, -vectors, vectors)
        self.matrix.copy_(vectors / values.clamp(min=1e-4 * values[-1]).sqrt())

    def forward(self, x: Tensor) -> Tensor:
        normal = ((x - self.mean) / self.scale).to(self.matrix.dtype)
        return normal @ self.matrix if self.matrix.numel() else normal


class Pixels(nn.Module):
    """Images or other arrays as floats; bytes from 0 to 255 become numbers from 0 to 1."""

    scale: Tensor

    def __init__(self, channels_last: bool = False) -> None:
        super().__init__()
        self.channels_last = channels_last
        self.register_buffer("scale", torch.ones(()))

    def measure(self, x: Tensor) -> None:
        """Tell bytes up to 255 from masks of 0 and 1 by a sample; check that float32 can hold it."""
        self.scale.fill_(255.0 if x.dtype == torch.uint8 and x.max() > 1 else 1.0)
        values = x.to(self.scale.dtype)
        if not values.isfinite().all() or (values.max() == values.min()) != (x.max() == x.min()):
            raise InputError(
                "X must hold images that float32 can tell apart, with values up to 3e38: bring them "
                f"to about 0 to 1, got {float(x.min()):g} to {float(x.max()):g}"
            )

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.scale.dtype) / self.scale
        return x.movedim(-1, 1) if self.channels_last else x


class Encoder(nn.Module):
    """A network behind what prepares its input; `measure` sets that by a sample."""

    def __init__(self, enter: Whiten | Pixels, network: nn.Module) -> None:
        super().__init__()
        self.enter, self.network = enter, network

    def measure(self, x: Tensor) -> None:
        self.enter.measure(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.network(self.enter(x))

    @torch.no_grad()
    def width(self, shape: Shape) -> int:
        """The number n of codes for observations of a shape."""
        codes = self(torch.zeros(2, *shape))
        if codes.ndim != 2:
            raise InputError(f"network must give codes N×n, got {tuple(codes.shape)}")
        return int(codes.shape[1])


def make_encoder(shape: Shape, n: int | None, network: Network = None, *, seed: int) -> Encoder:
    """An encoder of observations of a shape: rows (d,), images (64, 64), or what `network` takes.

    >>> make_encoder((64, 64, 3), 10, seed=0)(torch.zeros(2, 64, 64, 3)).shape
    torch.Size([2, 10])
    """
    rows = len(shape) == 1
    last = len(shape) == 3 and shape[:2] == (64, 64) and network is None
    enter = Whiten(shape[0]) if rows else Pixels(channels_last=last)
    if isinstance(network, nn.Module):
        return Encoder(enter, copy.deepcopy(network))  # an estimator's parameters stay untouched
    if n is None:
        if not rows:
            raise InputError("n_components must be given for images")
        n = shape[0]
    if network is not None:
        function("network", network)
        with torch.random.fork_rng(devices=[]):  # torch's own layers draw from the global state
            torch.default_generator.manual_seed(seed)
            made = network(shape, n)
        if not isinstance(made, nn.Module):
            raise InputError(f"network must return a module, got {type(made).__name__}")
        return Encoder(enter, made)
    if rows:
        return Encoder(enter, MLP(shape[0], n, seed=seed))
    if shape[-2:] == (64, 64) or last:
        channels = 1 if len(shape) == 2 else shape[-1] if last else shape[0]
        return Encoder(enter, ConvEncoder(n, channels=channels, seed=seed))
    raise InputError(
        f"network must be given for observations of shape {shape}: there are networks for rows and "
        "for images of 64×64"
    )


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
