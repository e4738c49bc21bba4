"""A contrastive model fitted to pairs, and how far it can be trusted: the functions behind the estimator."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from identica._random import Device, as_generator
from identica._tensors import moved
from identica._validate import count
from identica.encoders import ContrastiveModel
from identica.errors import InputError
from identica.estimator.networks import Encoder
from identica.estimator.pairs import ArrayPairs, Batch, PairSampler
from identica.families import Family
from identica.heads import make_head
from identica.losses import InfoNCE
from identica.metrics.evidence import bits, calibrate, log_likelihood
from identica.potential import Potential
from identica.process import Labelled
from identica.recipes import Recipe
from identica.spaces import Space
from identica.training import Contrastive, Stopping, Training, train
from identica.training.devices import device_of

if TYPE_CHECKING:
    from identica.diagnosis import Codes, Diagnosis

AT_ONCE = 4096  # observations that are encoded at once
JUDGED = 4096  # pairs by which models are judged
RUNG = 150  # steps after which starts are compared
# of the learning rate, for the potential: held-out evidence falls early if it follows every batch
SLOWLY = 0.3
EVERY = 50  # steps between scores
SATURATED = (
    0.95  # share of the largest possible evidence beyond which it no longer tells models apart
)
NEAR = 0.93  # of the best evidence: a run that may yet overtake it
PATIENCE = 400  # steps without more evidence after which training ends
# temperatures of held-out evidence: the average of the weights lags, an overfitted model is too sure
HEAT = (0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)


@dataclass(frozen=True)
class Fit:
    """What `fit` found.

    Attributes:
        model: from observations to codes in the space.
        loss: its similarity, with the precisions where they were learnt.
        temperature: what similarities are divided by to be log-likelihoods, up to a constant.
        history: records of the training that was chosen.
        bits: its evidence on held-out pairs; as these chose it, a little optimistic (by about 0.01).
        starts: a record for each start: its settings, steps and held-out bits.
        training: the settings of the training that was chosen.
    """

    model: ContrastiveModel
    loss: InfoNCE
    temperature: float
    history: list[dict[str, float]]
    bits: float
    starts: Sequence[dict[str, Any]]
    training: Training

    @property
    def precision(self) -> Tensor:
        """λ_k of the fitted similarity −Σ_k λ_k |a_k − b_k|^p, shape n."""
        return self.loss.precision * self.loss.tau / self.temperature

    @torch.no_grad()
    def log_likelihood(self, pairs: Batch) -> Tensor:
        """Evidence for each pair that it belongs together, see `identica.metrics.evidence`; shape N."""
        h, h_pos, bias = compared(self.model, self.loss, pairs)
        return log_likelihood(self.loss.conditional, h, h_pos, self.temperature, bias)


@torch.no_grad()
def encode(model: nn.Module, x: Tensor) -> Tensor:
    """Codes of observations, some at a time, on the device of the model."""
    device = device_of(model)
    return torch.cat([model(moved(part, device)) for part in x.split(AT_ONCE)])


@torch.no_grad()
def compared(
    model: ContrastiveModel, loss: InfoNCE, pairs: Batch
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Codes of pairs as the similarity takes them, and what a potential adds for each positive."""
    h, h_pos = (encode(model, x) for x in pairs)
    bias = None if model.potential is None else model.potential(h_pos)[..., 0]
    return loss.scaled(h), loss.scaled(h_pos), bias


def minus_b(potential: nn.Module, codes: NDArray[Any]) -> NDArray[Any]:
    """The log-density of factors by a potential, at codes (…×n), in their precision."""
    points = torch.from_numpy(codes)
    found: NDArray[Any] = (
        -encode(copy.deepcopy(potential).cpu().to(points.dtype), points)[..., 0].cpu().numpy()
    )
    return found


class Start(NamedTuple):
    """A network before training, and what it is trained on.

    Attributes:
        recipe: how it is trained.
        encoder: what prepares observations, and the network behind it.
        sample: draws pairs of observations that are prepared.
        held: held-out pairs, prepared as well.
    """

    recipe: Recipe
    encoder: Encoder
    sample: PairSampler
    held: Batch


class Run:
    """A start as it is trained, up to one step and then further; it always has its best weights so far."""

    def __init__(
        self,
        start: Callable[[], Start],
        space: Space,
        conditional: Family,
        folder: Path,
        *,
        learn_precision: bool,
        device: Device,
        seed: int,
    ) -> None:
        self.start, self.space, self.conditional, self.folder = start, space, conditional, folder
        self.learn_precision, self.device, self.seed = learn_precision, device, seed
        self.history: list[dict[str, float]] = []
        self.stops = True
        self._build()

    def _build(self) -> None:
        """The model as it is before training, from where `train` resumes by its checkpoint."""
        self.recipe, self.encoder, self.sample, held = self.start()
        n = self.space.dim if self.learn_precision else None
        self.loss = self.recipe.loss(self.conditional, learn_precision=n)
        head = self.recipe.head(self.space)
        network = self.encoder.network
        potential = None
        if self.recipe.potential:
            lr = SLOWLY * self.recipe.training.lr
            potential = Potential(self.space.dim, seed=self.seed, lr=lr)
        self.model = ContrastiveModel(
            self.space, self.conditional, network, head=head, potential=potential
        )
        self.objective = Contrastive(self.model, self.loss).to(self.device)
        self.held = held.to(self.device)

    @property
    def bits(self) -> float:
        """The evidence for the weights that are kept: the best so far, or the last."""
        found = [record["bits"] for record in self.history[0 if self.stops else -1 :]]
        return max(found, default=-math.inf)

    @torch.no_grad()
    def score(self) -> dict[str, float]:
        """Evidence on held-out pairs."""
        h, h_pos, bias = compared(self.model, self.loss, self.held)
        heat = [self.loss.tau * factor for factor in HEAT]
        return {"bits": bits(self.loss.conditional, h, h_pos, heat, bias)}

    def draw(self, size: int, *, generator: torch.Generator) -> Batch:
        """A batch of prepared observations, some of whose entries are dropped."""
        batch, dropout = self.sample(size, generator=generator), self.recipe.dropout
        batch = batch.to(self.device)
        if not dropout:
            return batch

        def dropped(x: Tensor) -> Tensor:
            noise = torch.rand(x.shape, generator=generator, device=x.device)
            return x * (noise >= dropout) / (1 - dropout)

        return Batch(dropped(batch.x), dropped(batch.x_pos))

    def go(
        self,
        until: int | None = None,
        *,
        patience: int | None = PATIENCE,
        progress: str | None = None,
        tensorboard: bool = False,
    ) -> None:
        """Train up to a step, or until there is no more evidence to be had (never, if None)."""
        training, self.stops = self.recipe.training, patience is not None
        if self.history:
            if self.history[-1]["step"] >= min(until or training.steps, training.steps):
                return
            self._build()
        self.history = train(
            self.objective,
            self.draw,
            replace(training, score_every=min(EVERY, training.steps)),
            seed=self.seed,
            until=until,
            stopping=None if patience is None else Stopping("bits", patience),
            score=self.score,
            out=self.folder,
            progress=progress,
            tensorboard=tensorboard,
        ).records

    def fit(self, starts: Sequence[dict[str, Any]]) -> Fit:
        """The fitted model, from raw observations to codes."""
        # the size of the codes was a means to an end: the space says what it is
        trained, self.model.head = self.model.head, make_head(self.model.space).to(self.device)
        if isinstance(self.model.potential, Potential):
            self.model.potential.follow(trained, self.model.head)
            self.model.potential.centre(encode(self.model, self.held.x_pos))
        h, h_pos, bias = compared(self.model, self.loss, self.held)
        temperature = calibrate(self.loss.conditional, h, h_pos, bias)
        self.model.encoder = self.encoder.to(self.device)
        self.model.eval()
        training = self.recipe.training
        return Fit(self.model, self.loss, temperature, self.history, self.bits, starts, training)

    def record(self) -> dict[str, Any]:
        """What is told of a start."""
        how = self.recipe
        return {
            "network": list(how.network) if isinstance(how.network, tuple) else how.network,
            "optimizer": how.training.optimizer,
            "dropout": how.dropout,
            "raw": how.raw,
            "seed": self.seed,
            "steps": int(self.history[-1]["step"]),
            "bits": self.bits,
            "possible_bits": math.log2(len(self.held.x)),
        }


def fit(
    start: Callable[[Recipe, int], Start],
    recipes: Sequence[Recipe],
    space: Space,
    conditional: Family,
    *,
    easy: Recipe | None = None,
    learn_precision: bool = False,
    device: Device = "cpu",
    seed: int = 0,
    out: Path | None = None,
    progress: str | None = None,
    tensorboard: bool = False,
) -> Fit:
    """Train an encoder on pairs, so that the codes in `space` follow `conditional` in pairs.

    Each recipe is tried for some steps, and the two best ones from another start. By held-out evidence, three
    recipes go on for as many, then two, until there is no more evidence to be had; the second of these
    only if it is near. The best weights of all are kept. The scale of the conditional is learnt: of a
    family only the form matters.

    Args:
        start: makes a network before training, for a recipe and a seed.
        recipes: those that are tried.
        easy: what is tried instead where they show that pairs are easy to tell apart.
        learn_precision: learn a scale for each dimension.
        out: folder for checkpoints, from which a killed fit resumes.
        progress: label of progress bars.
        tensorboard: write the history of each start for TensorBoard as well.
    """
    if out is None and tensorboard:
        raise InputError("tensorboard needs folder, where its files are written")
    if out is None:  # runs go on from their checkpoints
        with TemporaryDirectory() as folder:
            return fit(
                start,
                recipes,
                space,
                conditional,
                easy=easy,
                learn_precision=learn_precision,
                device=device,
                seed=seed,
                out=Path(folder),
                progress=progress,
            )
    runs: list[Run] = []

    def begin(recipe: Recipe, seed: int) -> Run:
        folder = out / f"start-{len(runs) + 1}"
        more: dict[str, Any] = {"learn_precision": learn_precision, "device": device, "seed": seed}
        run = Run(lambda: start(recipe, seed), space, conditional, folder, **more)
        runs.append(run)
        return run

    def go(run: Run, until: int | None, patience: int | None = PATIENCE) -> None:
        label = None if progress is None else f"{progress}, start {runs.index(run) + 1}"
        run.go(until, patience=patience, progress=label, tensorboard=tensorboard)

    def leading(number: int = 2) -> list[Run]:
        """The best run of each of the best recipes."""
        best = {run.recipe: run for run in sorted(runs, key=lambda run: run.bits)}
        return sorted(best.values(), key=lambda run: -run.bits)[:number]

    for recipe in recipes:
        go(begin(recipe, seed), RUNG)
    for run in leading():
        go(begin(run.recipe, seed + 1), RUNG)
    for run in leading(3):
        go(run, 2 * RUNG)
    if easy is not None and leading()[0].bits > SATURATED * math.log2(len(runs[0].held.x)):
        go(last := begin(easy, seed), None, patience=None)
        return last.fit([run.record() for run in runs])
    for run in leading():
        # the second may yet overtake the first: dropout learns slowly and overfits late
        if run is leading()[0] or run.bits >= NEAR * leading()[0].bits:
            go(run, None)
    return leading()[0].fit([run.record() for run in runs])


# --- how far it can be trusted ----------------------------------------------------------------------


def diagnose(
    fit: Fit,
    sample: PairSampler,
    refit: Callable[[PairSampler, int], Fit],
    *,
    restarts: int = 2,
    labelled: Labelled | None = None,
    random_state: int = 0,
) -> Diagnosis:
    """Judge a fitted model: refit it to four fifths of the pairs, and judge all fits on the others.

    Args:
        fit: the model in question.
        sample: draws pairs; from arrays (`ArrayPairs`) a fifth of them is held out.
        refit: fits a model of the same kind to the pairs of a sampler, from a seed.
        restarts: number of models in all.
        labelled: observations with their true factors, where these are known.
    """
    from identica import diagnosis
    from identica.diagnosis.truth import truth

    count("restarts", restarts, at_least=2)
    kept, held, times = sample, sample, None
    if isinstance(sample, ArrayPairs):
        kept, held = sample.split()
        times = held.times(JUDGED, generator=as_generator(random_state))
        if len(held) < diagnosis.FEWEST:
            least, total = 5 * diagnosis.FEWEST, len(sample)
            raise InputError(f"X must hold at least {least} pairs to be judged, got {total}")
    fits = [fit, *(refit(kept, random_state + i) for i in range(1, restarts))]
    pairs = held(JUDGED, generator=as_generator(random_state))
    seen = kept(len(pairs.x), generator=as_generator(random_state + 1))
    return diagnosis.diagnose(
        [_codes(each, pairs, seen) for each in fits],
        fit.model.space,
        fit.model.conditional,
        observations=pairs if pairs.x.ndim == 2 else None,
        times=times,
        learn_precision=fit.loss.learn_precision is not None,
        potential=fit.model.potential is not None,
        truth=None if labelled is None else truth(labelled.z, encode(fit.model, labelled.x)),
        random_state=random_state,
    )


@torch.no_grad()
def _codes(fit: Fit, pairs: Batch, seen: Batch) -> Codes:
    """Codes and evidence of pairs by a fitted model, with its evidence for those of its training."""
    from identica.diagnosis import codes_from

    h, h_pos = (encode(fit.model, x) for x in pairs)
    one, other, bias = compared(fit.model, fit.loss, pairs)
    return codes_from(
        h,
        h_pos,
        fit.loss.conditional,
        scaled=(one, other),
        temperature=fit.temperature,
        bias=bias,
        seen=float(fit.log_likelihood(seen).mean()) / math.log(2),
    )
