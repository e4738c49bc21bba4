"""A contrastive model fitted to pairs, and how far it can be trusted: the functions behind the estimator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from identica._random import Device, as_generator
from identica._validate import as_matrix, count
from identica.encoders import ContrastiveModel
from identica.errors import InputError
from identica.estimator.pairs import ArrayPairs, Batch, PairSampler, rows_of
from identica.families import Family
from identica.heads import make_head
from identica.losses import InfoNCE
from identica.metrics.evidence import calibrate, log_likelihood
from identica.process import Labelled
from identica.recipes import recipe
from identica.spaces import Space
from identica.training import Contrastive, Training, train
from identica.training.devices import device_of

if TYPE_CHECKING:
    from identica.diagnosis import Codes, Diagnosis

MEASURED = 8192  # rows from which means and variances are taken
AT_ONCE = 4096  # observations that are encoded at once
CALIBRATED = 2048  # pairs by which the temperature is set
JUDGED = 4096  # pairs by which models are judged


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
        """Evidence for each pair that it belongs together, see `identica.metrics.evidence`; shape N."""
        h, h_pos = (self.loss.scaled(encode(self.model, x)) for x in pairs)
        return log_likelihood(self.loss.conditional, h, h_pos, self.temperature)


@torch.no_grad()
def encode(model: nn.Module, x: Tensor) -> Tensor:
    """Codes of observations, some at a time, on the device of the model."""
    device = device_of(model)
    return torch.cat([model(part.to(device)) for part in x.split(AT_ONCE)])


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
        out: folder for checkpoints, from which a killed fit resumes.
        tensorboard: write the history for TensorBoard as well, to out/tensorboard.
    """
    how = recipe(space, conditional, training, learn_precision=learn_precision)
    loss = how.loss(conditional, learn_precision=space.dim if learn_precision else None)
    model = ContrastiveModel(space, conditional, encoder, head=how.head(space))
    objective = Contrastive(model, loss).to(device)

    def draw(size: int, *, generator: torch.Generator) -> Batch:
        return sample(size, generator=generator).to(device)

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
    pairs = draw(CALIBRATED, generator=as_generator(seed, device))
    with torch.no_grad():
        h, h_pos = (loss.scaled(encode(model, x)) for x in pairs)
    return Fit(model, loss, calibrate(conditional, h, h_pos), history.records)


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
        truth=None if labelled is None else truth(labelled.z, encode(fit.model, labelled.x)),
        random_state=random_state,
    )


@torch.no_grad()
def _codes(fit: Fit, pairs: Batch, seen: Batch) -> Codes:
    """Codes and evidence of pairs by a fitted model, with its evidence for those of its training."""
    from identica.diagnosis import codes_from

    h, h_pos = (encode(fit.model, x) for x in pairs)
    return codes_from(
        h,
        h_pos,
        fit.loss.conditional,
        scaled=(fit.loss.scaled(h), fit.loss.scaled(h_pos)),
        temperature=fit.temperature,
        seen=float(fit.log_likelihood(seen).mean()) / math.log(2),
    )


def some_labelled(x: NDArray[Any], z: Any) -> Labelled:
    """Some observations x (N×…) with their true factors z (N×d), in a random order."""
    factors = as_matrix("Z", z, rows=4)
    if len(factors) != len(x):
        raise InputError(f"Z must have a row for each of {len(x)} rows of X, got {len(factors)}")
    rows = np.random.default_rng(0).permutation(len(x))[:JUDGED]
    return Labelled(torch.from_numpy(factors[rows]), rows_of("X", x, rows))
