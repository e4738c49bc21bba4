"""Fit a contrastive model to pairs, and judge it: the functions behind the estimator."""

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
from identica._validate import count, flag
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

AT_ONCE = 4096  # observations encoded in one batch
JUDGED = 4096  # pairs on which a diagnosis is based
RUNG = 150  # steps between comparisons of the starts
# learning rate of the potential, relative to the encoder's: a faster one overfits early
POTENTIAL_LR = 0.3
EVERY = 50  # steps between evaluations
# fraction of the largest possible evidence above which it no longer distinguishes between models
SATURATED = 0.95
NEAR = 0.93  # fraction of the best evidence above which the runner-up is trained to the end as well
PATIENCE = 400  # steps without improvement before early stopping
# factors of the temperature that held-out evidence may choose from: averaged weights lag behind and
# an overfitted model is overconfident
TEMPERATURES = (0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)


@dataclass(frozen=True)
class Fit:
    """The result of `fit`.

    Attributes:
        model: the encoder, from observations to codes in the space.
        loss: the loss it was trained with, including any learnt precisions.
        temperature: dividing similarities by it gives log-likelihoods, up to a constant.
        history: training records of the selected start.
        bits: evidence on the held-out pairs. They also selected the start, so it is slightly optimistic
            (by about 0.01).
        starts: a record for each start: its settings, steps and held-out bits.
        training: training settings of the selected start.
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
        """Log-likelihood ratio of each pair, see `identica.metrics.evidence`; shape N."""
        h, h_pos, bias = compared(self.model, self.loss, pairs)
        return log_likelihood(self.loss.conditional, h, h_pos, self.temperature, bias)


@torch.no_grad()
def encode(model: nn.Module, x: Tensor) -> Tensor:
    """Encode observations batch by batch on the model's device."""
    device = device_of(model)
    return torch.cat([model(moved(part, device)) for part in x.split(AT_ONCE)])


@torch.no_grad()
def compared(
    model: ContrastiveModel, loss: InfoNCE, pairs: Batch
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Scaled codes of both members of each pair, and the potential of each positive, if there is one."""
    h, h_pos = (encode(model, x) for x in pairs)
    bias = None if model.potential is None else model.potential(h_pos)[..., 0]
    return loss.scaled(h), loss.scaled(h_pos), bias


def log_density(potential: nn.Module, codes: NDArray[Any]) -> NDArray[Any]:
    """The log-density −b of the factors under a potential b, at codes (…×n) and in their precision."""
    points = torch.from_numpy(codes)
    values = encode(copy.deepcopy(potential).cpu().to(points.dtype), points)
    density: NDArray[Any] = -values[..., 0].numpy()
    return density


class Start(NamedTuple):
    """An untrained network and its data.

    Attributes:
        recipe: how to train it.
        encoder: preprocessing followed by the network.
        sample: draws preprocessed training pairs.
        held: preprocessed held-out pairs.
    """

    recipe: Recipe
    encoder: Encoder
    sample: PairSampler
    held: Batch


class Run:
    """Training of one start, in several stages; keeps the weights that were best on held-out pairs."""

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
        """Build the untrained model; `train` restores the checkpoint, if there is one."""
        self.recipe, self.encoder, self.sample, held = self.start()
        n = self.space.dim if self.learn_precision else None
        self.loss = self.recipe.loss(self.conditional, learn_precision=n)
        head = self.recipe.head(self.space)
        network = self.encoder.network
        potential = None
        if self.recipe.potential:
            lr = POTENTIAL_LR * self.recipe.training.lr
            potential = Potential(self.space.dim, seed=self.seed, lr=lr)
        self.model = ContrastiveModel(
            self.space, self.conditional, network, head=head, potential=potential
        )
        self.objective = Contrastive(self.model, self.loss).to(self.device)
        self.held = held.to(self.device)

    @property
    def bits(self) -> float:
        """Held-out evidence of the weights kept: the best or, without early stopping, the last ones."""
        evidence = [record["bits"] for record in self.history[0 if self.stops else -1 :]]
        return max(evidence, default=-math.inf)

    @property
    def rank(self) -> float:
        """The evidence by which runs are compared, after the handicap of the recipe."""
        return self.bits - self.recipe.handicap * abs(self.bits)

    @torch.no_grad()
    def score(self) -> dict[str, float]:
        """Evidence on held-out pairs."""
        h, h_pos, bias = compared(self.model, self.loss, self.held)
        temperatures = [self.loss.tau * factor for factor in TEMPERATURES]
        return {"bits": bits(self.loss.conditional, h, h_pos, temperatures, bias)}

    def draw(self, size: int, *, generator: torch.Generator) -> Batch:
        """Draw a batch of preprocessed observations, with dropout if the recipe asks for it."""
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
        """Train up to a step, or until early stopping; `patience=None` turns early stopping off."""
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
        """Assemble the fitted model, from raw observations to codes."""
        # a learnt radius only helps training: the returned codes lie in the space as it was given
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
        """The settings and the result of this start, as plain data."""
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

    Candidates are trained by successive halving on held-out evidence: each recipe runs for `RUNG` steps,
    the two best once more from another seed; the best three continue for another `RUNG` steps, and the
    best is then trained until early stopping, with the runner-up if it is close. The best weights are kept.
    The scale of the conditional is learnt, so only the shape of the family matters.

    Args:
        start: makes an untrained network, given a recipe and a seed.
        recipes: the candidates.
        easy: recipe to train instead if the evidence of the candidates saturates.
        learn_precision: learn a scale for each dimension.
        out: folder for checkpoints, from which an interrupted fit resumes.
        progress: label of the progress bars.
        tensorboard: also write the history of each start for TensorBoard.
    """
    if flag("tensorboard", tensorboard) and out is None:
        raise InputError("tensorboard needs folder, where its files are written")
    if out is None:  # runs resume from their checkpoints
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
    starts = len(recipes) + min(2, len(set(recipes)))

    def begin(recipe: Recipe, seed: int) -> Run:
        folder = out / f"start-{len(runs) + 1}"
        more: dict[str, Any] = {"learn_precision": learn_precision, "device": device, "seed": seed}
        run = Run(lambda: start(recipe, seed), space, conditional, folder, **more)
        runs.append(run)
        return run

    def go(run: Run, until: int | None, patience: int | None = PATIENCE) -> None:
        label = None if progress is None else f"{progress}, start {runs.index(run) + 1} of {starts}"
        if label is not None and until is None and patience is not None:
            label += ", may stop early"
        run.go(until, patience=patience, progress=label, tensorboard=tensorboard)

    def leading(number: int = 2) -> list[Run]:
        """The best run of each of the best recipes."""
        best = {run.recipe: run for run in sorted(runs, key=lambda run: run.rank)}
        return sorted(best.values(), key=lambda run: -run.rank)[:number]

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
        # the runner-up may still overtake: with dropout a network learns slowly and overfits late
        if run is leading()[0] or run.rank >= NEAR * leading()[0].rank:
            go(run, None)
    return leading()[0].fit([run.record() for run in runs])


# --- diagnosis --------------------------------------------------------------------------------------


def diagnose(
    fit: Fit,
    sample: PairSampler,
    refit: Callable[[PairSampler, int], Fit],
    *,
    restarts: int = 2,
    labelled: Labelled | None = None,
    random_state: int = 0,
) -> Diagnosis:
    """Diagnose a fitted model: refit it to four fifths of the pairs, and compare all fits on the rest.

    Args:
        fit: the fitted model.
        sample: draws pairs; of an `ArrayPairs`, a fifth is held out.
        refit: fits a model of the same kind to the pairs of a sampler, given a seed.
        restarts: total number of fits.
        labelled: observations with their true factors, if these are known.
    """
    from identica import diagnosis
    from identica.diagnosis.truth import truth

    count("restarts", restarts, 2, diagnosis.MOST_FITS)
    kept, held, times = sample, sample, None
    if isinstance(sample, ArrayPairs):
        kept, held = sample.split()
        times = held.times(JUDGED, generator=as_generator(random_state))
        if len(held) < diagnosis.FEWEST:
            least, total = 5 * diagnosis.FEWEST, len(sample)
            raise InputError(f"X must hold at least {least} pairs for a diagnosis, got {total}")
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
    """Codes and evidence of held-out pairs, with the evidence of training pairs beside it."""
    from identica.diagnosis import codes_from

    h, h_pos = (encode(fit.model, x) for x in pairs)
    one, other, bias = compared(fit.model, fit.loss, pairs)
    family, tau = fit.loss.conditional, fit.temperature
    evidence = float(fit.log_likelihood(seen).mean()) / math.log(2)
    both = one, other
    return codes_from(h, h_pos, family, scaled=both, temperature=tau, bias=bias, seen=evidence)
