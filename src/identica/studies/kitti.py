"""KITTI Masks as a study: contrastive models and autoencoders on real masks in motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from identica.datasets import kitti_masks
from identica.datasets.kitti_masks import FACTORS, KittiMasks
from identica.metrics import mcc
from identica.recipes import Preset, pick
from identica.recipes import studies as presets
from identica.spaces import Box
from identica.studies.experiment import Context, RowExperiment, Scores, Stage, Stages
from identica.studies.images import SHOWN, TERMS, codes_of, meaning, method_objective, pair_sampler
from identica.studies.published import KittiRow
from identica.studies.study import Finished, Picture, Study, Target
from identica.studies.synthetic import space_name
from identica.training import Sampler

SCORED, WATCHED = 10_000, 2_000  # frames scored in the end, and during training


@dataclass(frozen=True)
class KittiExperiment(RowExperiment):
    """A row with a seed.

    The score is the Spearman MCC of 10,000 frames drawn from the whole data set, as published.
    """

    row: KittiRow

    @property
    def config(self) -> dict[str, Any]:
        row = self.row
        terms = TERMS.get(row.method, {"alpha": row.alpha} if row.method == "L_AU" else {})
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

    def objective(self) -> tuple[nn.Module, nn.Module]:
        return method_objective(self.row, self.recipe, self.seed)

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
    return pair_sampler(partial(data.pairs, max_lag), data.frames, data.latents.__getitem__)


class KittiTable(Study[KittiRow]):
    """MCC on KITTI Masks: real factors, of unknown distribution."""

    scored_on = "drawn frames"

    def ready(self, rows: Sequence[KittiRow]) -> None:
        kitti_masks.load()

    def targets(self, row: KittiRow) -> list[Target]:
        # a mean without a known deviation is not judged
        known = row.published is not None and row.published.std is not None
        return [Target(row.kind, "mcc", row.published, ("within", "above") if known else ())]

    def experiment(self, row: KittiRow, kind: str, seed: int, preset: Preset) -> KittiExperiment:
        # methods of a kind share their recipe, whatever their norm and lag
        fast = presets.MASKS_VAE if row.kind != "contrastive" else presets.MASKS
        return KittiExperiment(row, seed, pick(preset, fast=fast, paper=presets.PAPER_IMAGES))

    def cells(self, row: KittiRow) -> dict[str, str]:
        norm = {"L_AU": f"(.5, {row.p})", "InfoNCE": f", L{row.p}"}.get(row.method, "")
        return {
            "method": f"{row.method}{norm}",
            "space": "–" if row.space is None else space_name(row.space),
            "Δt": "–" if row.method == "β-VAE" else str(row.max_lag),
        }

    def words(self, row: KittiRow) -> str:
        if row.method == "β-VAE":
            return "Single images, without their order in time: nothing singles out the factors."
        if row.p == 2:
            return (
                "Steps of the codes are assumed to be normal. Real ones are sparse, and only "
                "the walls of a box let a normal model distinguish the factors from their rotations."
            )
        return (
            "Steps of the codes are assumed to have a Laplace distribution, which is nearer to the "
            "sparse steps of real factors; their own distribution is not known, so no theorem "
            "applies."
        )

    def recovered(self, experiment: KittiExperiment, run: Finished) -> list[Picture]:
        _, model = experiment.trained(run.folder)
        data = kitti_masks.load()
        frames = experiment.scored(data)[:SHOWN]
        z, codes = data.latents[frames].astype(float), codes_of(model, data.frames(frames))

        def images(rows: NDArray[np.intp]) -> NDArray[np.uint8]:
            return np.uint8(255) * data.frames(frames[rows])

        return meaning(z, codes, FACTORS, images, f"seed {run.seed}")
