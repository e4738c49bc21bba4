"""KITTI Masks as a study: contrastive models and autoencoders on real masks in motion."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from identica import checkpoints
from identica._validate import one_of
from identica.baselines import BetaVAE, SlowVAE
from identica.datasets import kitti_masks
from identica.datasets.kitti_masks import FACTORS, KittiMasks
from identica.datasets.pictures import tile
from identica.encoders import ContrastiveModel, ConvEncoder
from identica.errors import InputError
from identica.heads import BoxHead
from identica.losses import AlignUniform, InfoNCE
from identica.metrics import match, mcc
from identica.process import Pairs
from identica.runs.folder import WEIGHTS
from identica.spaces import Box, Euclidean, Space
from identica.studies.images import Encode, codes_of, walks
from identica.studies.presets import PRESETS
from identica.studies.study import (
    SCORES,
    Finished,
    Job,
    Ours,
    Picture,
    Study,
    Target,
    Tick,
    Verdict,
)
from identica.studies.synthetic import compare, rescaled, space_name
from identica.studies.tables import L1, N1, Published
from identica.studies.trained import curves, fit, result
from identica.training import Contrastive, Sampler, Training

CODES = 10
SCORED, WATCHED, SHOWN = 10_000, 2_000, 3_000  # frames for the result, in training, in pictures

KINDS = {
    "β-VAE": "beta-vae",
    "SlowVAE": "slow-vae",
    "L_AU": "contrastive",
    "InfoNCE": "contrastive",
}
# of the terms of each objective, as published
TERMS: dict[str, dict[str, float]] = {
    "β-VAE": {"beta": 8.0},
    "SlowVAE": {"beta": 1.0, "gamma": 10.0, "rate": 6.0, "entropy": 0.5},
    "L_AU": {"alpha": 0.5},
    "InfoNCE": {},
}


@dataclass(frozen=True)
class KittiRow:
    """A row: a method, the largest step between the frames of a pair, and what was published of it.

    Contrastive methods have a space for their codes, and compare them by ‖·‖_p^p.
    """

    row: int
    method: str
    max_lag: int
    published: Published | None
    space: Space | None = None
    p: int = 0

    @property
    def kind(self) -> str:
        return KINDS[self.method]


R, B = Euclidean(CODES), Box(CODES)
# with InfoNCE on a box as in the ICML version, all others as in the workshop version
ROWS = [
    KittiRow(1, "β-VAE", 1, Published(0.627, 0.071)),
    KittiRow(2, "SlowVAE", 1, Published(0.661, 0.045)),
    KittiRow(3, "L_AU", 1, Published(0.771, 0.017), R, 1),
    KittiRow(4, "L_AU", 1, Published(0.648, 0.024), R, 2),
    KittiRow(5, "InfoNCE", 1, None, R, 1),
    KittiRow(6, "InfoNCE", 1, None, R, 2),
    KittiRow(7, "InfoNCE", 1, Published(0.741, None), B, 1),
    KittiRow(8, "InfoNCE", 1, Published(0.599, None), B, 2),
    KittiRow(9, "SlowVAE", 5, Published(0.796, 0.058)),
    KittiRow(10, "L_AU", 5, Published(0.796, 0.026), R, 1),
    KittiRow(11, "L_AU", 5, Published(0.683, 0.026), R, 2),
    KittiRow(12, "InfoNCE", 5, None, R, 1),
    KittiRow(13, "InfoNCE", 5, None, R, 2),
    KittiRow(14, "InfoNCE", 5, Published(0.809, None), B, 1),
    KittiRow(15, "InfoNCE", 5, Published(0.684, None), B, 2),
]


# --- how a row is trained ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """Training, and where the learnt side of a box starts, with the rate of its logarithm."""

    training: Training
    bound: float = 1.0
    bound_lr: float | None = None


PAPER = Settings(
    Training(
        steps=300_000,
        batch=32,
        lr=1e-4,
        optimizer="adam",
        warmup=0,
        decay=0,
        score_every=5000,
        checkpoint_every=500,
    )
)
FAST = Training(
    steps=600, batch=32, lr=2e-3, optimizer="soap", warmup=20, decay=0.4, score_every=100
)


def choose(preset: str, row: KittiRow) -> Settings:
    """The settings of a preset for a row; methods of a kind share them, whatever their norm and lag.

    The fast ones were chosen by the MCC of L_AU(.5, 1), and of SlowVAE for autoencoders, with seeds
    beyond those of the table.
    """
    if one_of("preset", preset, PRESETS) == "paper":
        return PAPER
    if row.kind != "contrastive":
        return Settings(
            replace(FAST, steps=900, lr=1e-3, optimizer="adam", decay=0.2, score_every=150)
        )
    return Settings(FAST, bound=20.0, bound_lr=1e-2)


def describe(row: KittiRow, seed: int, settings: Settings) -> dict[str, Any]:
    """Everything that decides the result of a run, as plain data for config.json."""
    config: dict[str, Any] = {
        "kind": row.kind,
        "seed": seed,
        "data": "kitti-masks",
        "method": row.method,
        "terms": TERMS[row.method],
        "max_lag": row.max_lag,
        "training": asdict(settings.training),
    }
    if row.space is not None:
        config |= {"space": repr(row.space), "p": row.p}
    if isinstance(row.space, Box):
        config |= {"bound": settings.bound, "bound_lr": settings.bound_lr}
    return config


def make_objective(row: KittiRow, settings: Settings, seed: int) -> tuple[nn.Module, Encode]:
    """The objective of a row, untrained, and what gives the codes of images."""
    terms = TERMS[row.method]
    if row.kind != "contrastive":
        vae = {"β-VAE": BetaVAE, "SlowVAE": SlowVAE}[row.method](CODES, seed=seed, **terms)
        return vae, vae.codes
    assert row.space is not None
    family, head = (L1 if row.p == 1 else N1), None
    if isinstance(row.space, Box):
        head = BoxHead(row.space, learnable=True, start=settings.bound, lr=settings.bound_lr)
    model = ContrastiveModel(row.space, family, ConvEncoder(CODES, seed=seed), head=head)
    # the anchor counts among its own negatives, as published: that fixes the scale of the codes
    loss: nn.Module = InfoNCE(family, self_negative=True)
    if row.method == "L_AU":
        loss = AlignUniform(terms["alpha"], row.p, self_negative=True)
    return Contrastive(model, loss), model


def sampler(data: KittiMasks, max_lag: int) -> Sampler:
    """Draws pairs of masks with their factors."""

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        seed = int(torch.randint(2**62, (), generator=generator))
        i, j = data.pairs(max_lag, size, seed)
        x, x_pos = (torch.from_numpy(data.frames(chosen)) for chosen in (i, j))
        z, z_pos = (torch.from_numpy(data.latents[chosen]) for chosen in (i, j))
        return Pairs(z, z_pos, x, x_pos)

    return sample


def run(
    row: KittiRow,
    seed: int,
    settings: Settings,
    *,
    out: Path | None = None,
    tick: Tick | None = None,
) -> dict[str, Any]:
    """Train and score one row with one seed; the result as in result.json.

    The score is the Spearman MCC of 10,000 frames drawn from the whole data set, as published.
    """
    data = kitti_masks.load()
    objective, encode = make_objective(row, settings, seed)
    frames = drawn(data, seed)

    def score(number: int = SCORED) -> dict[str, float]:
        chosen = frames[:number]
        codes = codes_of(encode, data.frames(chosen))
        return {"mcc": mcc(data.latents[chosen], codes, method="spearman")}

    history = fit(
        objective,
        sampler(data, row.max_lag),
        settings.training,
        seed=2 * seed,
        score=partial(score, WATCHED),
        out=out,
        tick=tick,
    )
    return result(score(), history, settings.training, seed)


def drawn(data: KittiMasks, seed: int) -> NDArray[np.int64]:
    """The frames that a run is scored on, in random order."""
    return np.random.default_rng(2 * seed + 1).permutation(len(data))[:SCORED]


# --- the study --------------------------------------------------------------------------------------


class KittiTable(Study[KittiRow]):
    """MCC on KITTI Masks: real factors, which no model knows the distribution of."""

    def ready(self) -> None:
        kitti_masks.load()

    def targets(self, row: KittiRow) -> list[Target]:
        return [Target(row.kind, "mcc", row.published)]

    def job(self, row: KittiRow, kind: str, seed: int, preset: Any) -> Job:
        settings = choose(preset, row) if isinstance(preset, str) else preset
        work = partial(_work, row, seed, settings)
        training = settings.training
        return Job(describe(row, seed, settings), work, training.steps * training.batch)

    def cells(self, row: KittiRow) -> dict[str, str]:
        norm = {"L_AU": f"(.5, {row.p})", "InfoNCE": f", L{row.p}"}.get(row.method, "")
        return {
            "method": f"{row.method}{norm}",
            "space": "–" if row.space is None else space_name(row.space),
            "Δt": "–" if row.method == "β-VAE" else str(row.max_lag),
        }

    def label(self, target: Target) -> str:
        return SCORES[target.score]

    def words(self, row: KittiRow) -> str:
        if row.method == "β-VAE":
            return "Single images, without their order in time: nothing singles out the factors."
        if row.p == 2:
            return (
                "Steps of the codes are taken to be normal. Real ones are sparse, and a normal model "
                "cannot tell the factors from their rotations, but for the walls of a box."
            )
        return (
            "Steps of the codes are taken to have a Laplace distribution, which is nearer to the "
            "sparse steps of real factors; their own distribution is not known, so no theorem "
            "applies."
        )

    def verdict(self, row: KittiRow, target: Target, ours: Ours) -> Verdict:
        """Within: no further from the published mean than its s.d., or 0.2 points if that is more.

        Nothing is held against a mean whose s.d. is not known.
        """
        if row.published is None:
            return Verdict("–", None)
        std = row.published.std
        word = compare(ours.mean, row.published.mean, max(std or 0.0, 0.002))
        return Verdict(word, None if std is None else word != "below")

    def pictures(self, row: KittiRow, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        found = runs.get(row.kind, [])
        if not found:
            return []
        from identica.report import plots

        goal = None if row.published is None else row.published.mean
        pictures = curves(found, "mcc", goal=goal, on="drawn frames")
        with suppress(InputError):  # weights or data that are gone cost these pictures alone
            data, frames, codes = recovered(row, found[0])
            z = data.latents[frames].astype(float)
            columns = match(z, codes, "spearman").columns
            aligned = rescaled(z, codes[:, columns])
            figure = plots.true_against_recovered(z, aligned, "recovered", names=FACTORS)
            caption = f"True factors against their codes, seed {found[0].seed}"
            pictures.append(Picture(caption, plots.inline(figure, dpi=80)))
            walked = data.frames(frames[walks(codes, columns)].ravel()).astype(bool)
            figure = plots.sheet(tile(walked.reshape(len(FACTORS), -1, 64, 64)), FACTORS)
            caption = (
                "A real mask (left), and the real masks nearest to it in the codes as the code of "
                f"one factor moves through its quantiles, seed {found[0].seed}"
            )
            pictures.append(Picture(caption, plots.inline(figure, dpi=80)))
        return pictures


def _work(
    row: KittiRow, seed: int, settings: Settings, folder: Path, tick: Tick
) -> Mapping[str, Any]:
    return run(row, seed, settings, out=folder, tick=tick)


def recovered(
    row: KittiRow, run: Finished, size: int = SHOWN
) -> tuple[KittiMasks, NDArray[np.int64], NDArray[np.float64]]:
    """The data, frames of it that a run was scored on, and their codes N×n."""
    objective, encode = make_objective(row, Settings(Training(**run.config["training"])), run.seed)
    checkpoints.load_weights(run.folder / WEIGHTS, objective)
    data = kitti_masks.load()
    frames = drawn(data, run.seed)[:size]
    return data, frames, codes_of(encode, data.frames(frames))
