"""Counterexamples: maps whose loss is as low as that of the true factors but which do not recover them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from identica._random import as_generator
from identica._validate import count, positive
from identica._validate import seed as check_seed
from identica.encoders import MLP, ContrastiveModel
from identica.heads import BoxHead, EuclideanHead, SphereHead
from identica.losses import InfoNCE
from identica.metrics import linear_r2, mcc
from identica.potential import Potential
from identica.process import GenerativeProcess
from identica.spaces import Box, Sphere
from identica.theory.promise import guarantee
from identica.theory.theorems import exponent
from identica.training import Training
from identica.training.optimizers import make_optimizer

LOW_R2, LOW_MCC = 0.97, 0.9
BATCH, HELD_OUT = 512, 8  # pairs, and batches of them that are never trained on
SETTLE = 200  # steps to fit scale, temperature and potential to the true factors


@dataclass(frozen=True)
class Counterexample:
    """A map that does not recover the factors, with a loss no higher than that of the true factors.

    Attributes:
        h: the map, from factors (N×n) to codes.
        loss: loss of h on held-out pairs.
        loss_of_truth: loss of the factors at their best scale on the same pairs; None if the model cannot
            represent them.
        r2, mcc: how well h recovers the factors.
        how: how it was found.
    """

    h: Callable[[Tensor], Tensor]
    loss: float
    loss_of_truth: float | None
    r2: float
    mcc: float
    how: str

    def __str__(self) -> str:
        truth = (
            "no code of the model" if self.loss_of_truth is None else f"{self.loss_of_truth:.4f}"
        )
        return f"{self.how}: loss {self.loss:.4f} (truth: {truth}), R² {self.r2:.3f}, MCC {self.mcc:.3f}"


def counterexample(
    process: GenerativeProcess,
    model: ContrastiveModel,
    *,
    tau: float | None = 1.0,
    steps: int = 600,
    seed: int = 0,
) -> Counterexample | None:
    """Search for a map h with a low R² or MCC and a loss no higher than that of the true factors; None if
    none was found, which proves nothing.

    If only recovery up to an affine map or a rotation is guaranteed, a counterexample must have a low R².

    Without walls, a rotation of the codes leaves a loss of squared distances unchanged. Other maps are found
    by training: linear ones from a random rotation, others from the factors themselves, after their scale,
    the temperature and the potential have converged, so that any change lowers the loss. The mixing and the
    encoder do not matter, as maps are functions of the factors.

    Args:
        process, model, tau: as in `guarantee`.
        steps: number of training steps.
        seed: determines pairs and initial weights.

    >>> from identica import Box, Euclidean, InvertibleMLP, Laplace, Normal, Uniform
    >>> g = InvertibleMLP(4, seed=0, draws=10)
    >>> process = GenerativeProcess(Box(4), Uniform(), Laplace(0.2), g)
    >>> found = counterexample(process, ContrastiveModel(Euclidean(4), Normal(1.0), MLP(4, 4)))
    >>> found.how, found.mcc < 0.9, abs(found.loss - found.loss_of_truth) < 1e-4
    ('a rotation', True, True)
    """
    axes = guarantee(process, model, tau=tau).up_to in (None, "permutation")
    count("steps", steps)
    check_seed("seed", seed)
    if not isinstance(model.head, EuclideanHead | SphereHead | BoxHead):
        return None  # the representation of the factors in another space is unknown
    search = _Search(process, model, tau, seed)
    if search.from_truth:
        search.settle(SETTLE)
    truth = search.losses() if search.from_truth else None
    z = process.latents(4096, generator=seed + 2)

    def judge(h: Callable[[Tensor], Tensor], losses: Tensor, how: str) -> Counterexample | None:
        with torch.no_grad():
            codes = h(z)
        r2, by_itself = linear_r2(z, codes), mcc(z, codes)
        above = truth is not None and bool((losses - truth).mean() > 1e-5)
        if above or not (r2 < LOW_R2 or (axes and by_itself < LOW_MCC)):
            return None
        of_truth = None if truth is None else float(truth.mean())
        return Counterexample(h, float(losses.mean()), of_truth, r2, by_itself, how)

    def turn() -> Counterexample | None:
        if not (axes and search.turns):
            return None
        turned = truth_found.turned()
        if search.invariant:
            return judge(turned.h, turned.losses(), "a rotation")
        turned.settle(SETTLE, linear=True)
        return judge(turned.h, turned.losses(), "a linear map")

    def bend() -> Counterexample | None:
        search.train(steps)
        how = "trained from the truth" if search.from_truth else "trained"
        return judge(search.h, search.losses(), how)

    truth_found = copy.deepcopy(search)
    # rotations are tried first only if walls or the conditional identify the axes
    first, second = (turn, bend) if _axes_matter(process) else (bend, turn)
    return first() or second()


def _axes_matter(process: GenerativeProcess) -> bool:
    """Whether walls or the conditional identify the axes, so that single factors may be recovered."""
    walls = isinstance(process.space, Box)
    return walls or (not isinstance(process.space, Sphere) and exponent(process.conditional) != 2)


class _Map(nn.Module):
    """h(z): the truth at a learnt scale, plus a network that starts at 0."""

    def __init__(self, process: GenerativeProcess, model: ContrastiveModel, truth: bool, seed: int):
        super().__init__()
        n_in, n_out = process.space.dim, model.space.dim
        self.network = MLP(n_in, n_out, (64, 64), seed=seed)
        self.head = copy.deepcopy(model.head)
        self.log_scale = nn.Parameter(torch.tensor(0.0))
        self.linear = nn.Parameter(torch.eye(n_in))
        self.truth, self.space = truth, process.space
        if truth:
            last = self.network.layers[-1]
            assert isinstance(last, nn.Linear)
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.start(z) + self.network(z))

    def start(self, z: Tensor) -> Tensor:
        """The input from which the head makes the truth."""
        if not self.truth:
            return torch.zeros(())
        if not isinstance(self.head, BoxHead):
            return z @ self.linear * self.log_scale.exp()
        if isinstance(self.space, Sphere):  # within the sides of a box that holds it
            return torch.logit(0.5 + 0.45 * z / self.space.radius, eps=1e-5)
        assert isinstance(self.space, Box)
        low, high = self.space.bounds(torch.float32)
        return torch.logit((z - low) / (high - low), eps=1e-5)


class _Search:
    """Training of a map for a process and a model."""

    def __init__(
        self, process: GenerativeProcess, model: ContrastiveModel, tau: float | None, seed: int
    ) -> None:
        self.process, self.seed = process, seed
        space, codes = process.space, model.space
        unbounded, walls = isinstance(model.head, EuclideanHead), isinstance(model.head, BoxHead)
        holds = isinstance(space, Box | Sphere) if walls else type(space) is type(codes)
        self.from_truth = space.dim == codes.dim and (unbounded or holds)
        self.turns = self.from_truth and not walls
        self.invariant = exponent(model.conditional) == 2  # under rotations
        self.h = _Map(process, model, self.from_truth, seed)
        start = 1.0 if tau is None else positive("tau", tau)
        self.loss = InfoNCE(model.conditional, start, learn_tau=tau is None)
        self.potential = None if model.potential is None else Potential(codes.dim, seed=seed)
        self.generator = as_generator(seed)

    def settle(self, steps: int, *, linear: bool = False) -> None:
        """Fit scale, size of the codes, temperature and potential to the true factors or to a linear map."""
        fixed = ("network.",) if linear else ("network.", "linear")
        own = [p for name, p in self.h.named_parameters() if not name.startswith(fixed)]
        steps *= 1 if self.potential is None else 3
        self._minimise([*own, *self._others()], steps, lr=1e-2)

    def train(self, steps: int) -> None:
        """Train all parameters, starting from the truth."""
        self._minimise([*self.h.parameters(), *self._others()], steps, lr=3e-3)

    def _others(self) -> list[nn.Parameter]:
        potential = [] if self.potential is None else list(self.potential.parameters())
        return [*self.loss.parameters(), *potential]

    def _minimise(self, parameters: list[nn.Parameter], steps: int, *, lr: float) -> None:
        wanted = [p for p in parameters if p.requires_grad]
        training = Training(steps=steps, batch=BATCH, lr=lr, warmup=20)
        optimizer = make_optimizer(nn.ParameterList(wanted), training)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * training.lr_factor(step)
            z, z_pos = self._pairs(self.generator)
            optimizer.zero_grad()
            self.loss(self.h(z), self.h(z_pos), self.potential).backward()
            optimizer.step()

    def _pairs(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        z = self.process.latents(BATCH, generator=generator)
        return z, self.process.positives(z, generator=generator)

    @torch.no_grad()
    def losses(self) -> Tensor:
        """The loss of the current map on each of the held-out batches."""
        generator, found = as_generator(self.seed + 1), []
        for _ in range(HELD_OUT):
            z, z_pos = self._pairs(generator)
            found.append(self.loss(self.h(z), self.h(z_pos), self.potential))
        return torch.stack(found)

    def turned(self) -> _Search:
        """The same search at a random rotation of the truth, with the potential rotated accordingly."""
        other, n = copy.deepcopy(self), self.process.space.dim
        random = torch.randn(n, n, generator=as_generator(self.seed + 3), dtype=torch.float64)
        rotation = torch.linalg.qr(random)[0].float()
        other.h.linear.data = rotation
        if other.potential is not None:
            first = other.potential.network.layers[0]
            assert isinstance(first, nn.Linear)
            first.weight.data = first.weight.data @ rotation
        return other
