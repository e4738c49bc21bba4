"""KITTI Masks as a study: contrastive models and autoencoders on real masks in motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from identica import recipes
from identica.datasets import kitti_masks
from identica.datasets.kitti_masks import FACTORS, KittiMasks
from identica.datasets.pictures import tile
from identica.encoders import ContrastiveModel, ConvEncoder
from identica.errors import InputError
from identica.losses import AlignUniform
from identica.metrics import match, mcc
from identica.process import Pairs
from identica.recipes import Recipe
from identica.spaces import Box
from identica.studies.experiment import Context, Experiment, Scores, Stage, Stages
from identica.studies.images import CODES, TERMS, VAES, codes_of, walks
from identica.studies.published import L1, N1, KittiRow
from identica.studies.study import SCORES, Finished, Picture, Study, Target, curves
from identica.studies.synthetic import rescaled, space_name
from identica.training import Contrastive, Sampler, Training

ALPHA = 0.5  # of L_AU
SCORED, WATCHED, SHOWN = 10_000, 2_000, 3_000  # frames for the result, in training, in pictures


@dataclass(frozen=True)
class KittiExperiment(Experiment):
    """A row with a seed.

    The score is the Spearman MCC of 10,000 frames drawn from the whole data set, as published.
    """

    row: KittiRow
    seed: int
    recipe: Recipe

    @property
    def kind(self) -> str:
        return self.row.kind

    @property
    def config(self) -> dict[str, Any]:
        row = self.row
        terms = TERMS.get(row.method, {"alpha": ALPHA} if row.method == "L_AU" else {})
        config: dict[str, Any] = {
            "kind": row.kind,
            "seed": self.seed,
            "data": "kitti-masks",
            "method": row.method,
            "terms": terms,
            "max_lag": row.max_lag,
            "training": asdict(self.recipe.training),
        }
        if row.space is not None:
            config |= {"space": repr(row.space), "p": row.p}
        if isinstance(row.space, Box):
            config |= {"bound": self.recipe.bound, "bound_lr": self.recipe.bound_lr}
        return config

    @property
    def trainings(self) -> list[Training]:
        return [self.recipe.training]

    def objective(self) -> tuple[nn.Module, nn.Module]:
        row = self.row
        if row.method in VAES:
            make: Any = VAES[row.method]
            vae = make(CODES, seed=self.seed, **TERMS[row.method])
            return vae, vae
        assert row.space is not None
        family, encoder = (L1 if row.p == 1 else N1), ConvEncoder(CODES, seed=self.seed)
        model = ContrastiveModel(row.space, family, encoder, head=self.recipe.head(row.space))
        # the anchor counts among its own negatives, as published: that fixes the scale of the codes
        loss: nn.Module = self.recipe.loss(family)
        if row.method == "L_AU":
            loss = AlignUniform(ALPHA, row.p, self_negative=True)
        return Contrastive(model, loss), model

    def stages(self, context: Context) -> Stages:
        data = kitti_masks.load()
        objective, model = self.objective()
        frames = self.scored(data)

        def score(number: int = SCORED) -> Scores:
            chosen = frames[:number]
            codes = codes_of(model, data.frames(chosen))
            return {"mcc": mcc(data.latents[chosen], codes, method="spearman")}

        sample, training = sampler(data, self.row.max_lag), self.recipe.training
        yield Stage(objective, sample, training, 2 * self.seed, partial(score, WATCHED))
        return objective, score()

    def scored(self, data: KittiMasks) -> NDArray[np.int64]:
        """The frames that the run is scored on, in random order."""
        return np.random.default_rng(2 * self.seed + 1).permutation(len(data))[:SCORED]


def sampler(data: KittiMasks, max_lag: int) -> Sampler:
    """Draws pairs of masks with their factors."""

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        seed = int(torch.randint(2**62, (), generator=generator))
        i, j = data.pairs(max_lag, size, seed)
        x, x_pos = (torch.from_numpy(data.frames(chosen)) for chosen in (i, j))
        z, z_pos = (torch.from_numpy(data.latents[chosen]) for chosen in (i, j))
        return Pairs(z, z_pos, x, x_pos)

    return sample


class KittiTable(Study[KittiRow]):
    """MCC on KITTI Masks: real factors, which no model knows the distribution of."""

    def ready(self, rows: Sequence[KittiRow]) -> None:
        kitti_masks.load()

    def targets(self, row: KittiRow) -> list[Target]:
        # nothing is held against a mean whose deviation is not known
        known = row.published is not None and row.published.std is not None
        return [Target(row.kind, "mcc", row.published, ("within", "above") if known else ())]

    def experiment(
        self, row: KittiRow, kind: str, seed: int, preset: str | Recipe
    ) -> KittiExperiment:
        # methods of a kind share their recipe, whatever their norm and lag
        fast = recipes.MASKS_VAE if row.method in VAES else recipes.MASKS
        return KittiExperiment(
            row, seed, recipes.pick(preset, fast=fast, paper=recipes.PAPER_IMAGES)
        )

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

    def pictures(self, row: KittiRow, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        found = runs.get(row.kind, [])
        if not found:
            return []
        goal = None if row.published is None else row.published.mean
        pictures = curves(found, "mcc", goal=goal, on="drawn frames")
        with suppress(InputError):  # weights or data that are gone cost these pictures alone
            pictures += _what_was_recovered(self.read_back(row, found[0]), found[0])
        return pictures


def _what_was_recovered(experiment: KittiExperiment, run: Finished) -> list[Picture]:
    from identica.report import plots

    _, model = experiment.trained(run.folder)
    data = kitti_masks.load()
    frames = experiment.scored(data)[:SHOWN]
    z, codes = data.latents[frames].astype(float), codes_of(model, data.frames(frames))
    columns = match(z, codes, "spearman").columns
    aligned = rescaled(z, codes[:, columns])
    scatter = plots.true_against_recovered(z, aligned, "recovered", names=FACTORS)
    walked = data.frames(frames[walks(codes, columns)].ravel()).astype(bool)
    sheet = plots.sheet(tile(walked.reshape(len(FACTORS), -1, 64, 64)), FACTORS)
    return [
        Picture(
            f"True factors against their codes, seed {run.seed}", plots.inline(scatter, dpi=80)
        ),
        Picture(
            "A real mask (left), and the real masks nearest to it in the codes as the code of one "
            f"factor moves through its quantiles, seed {run.seed}",
            plots.inline(sheet, dpi=80),
        ),
    ]
