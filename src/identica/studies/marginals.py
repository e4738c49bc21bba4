"""Marginals that are not uniform: the published loss, and the same model with a potential."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from identica._validate import one_of
from identica.encoders import ContrastiveModel
from identica.errors import InputError
from identica.families import Family, GeneralizedNormal, Laplace, Normal, Uniform, VonMisesFisher
from identica.potential import Potential
from identica.process import GenerativeProcess
from identica.recipes import PRESETS, Preset, Recipe
from identica.recipes import studies as presets
from identica.spaces import Box, Euclidean, Space, Sphere
from identica.studies.experiment import Context, Stage, Stages
from identica.studies.published import G1, ICML_TABLE1, L1, N1, Row
from identica.studies.shapes import SHAPES, Shape
from identica.studies.study import SCORES, Finished, Picture, Target, curves
from identica.studies.synthetic import (
    SyntheticExperiment,
    SyntheticTable,
    family_name,
    space_name,
)
from identica.training import Training

KINDS = {"published": "published loss", "plain": "without potential", "potential": "potential"}
DRAWS = 30_000  # of the marginal, over which the density of the positives is averaged
PRECISE = (9, 11, 20, 26, 27)  # rows whose density fell short with the usual recipe
OTHER = 1000  # added to a seed for the batches of the last stage, of the potential alone
PLACES = 500  # positives at which it is compared

# As wide as the marginals, nearly: a narrow conditional hardly feels a marginal.
_REAL = [Laplace(1.0), Normal(1.0), GeneralizedNormal(3.0, 1.5)]
_BOX = [Laplace(0.25), Normal(0.15), GeneralizedNormal(3.0, 0.3)]


def _cell(number: int, space: Space, marginal: Family, conditional: Family) -> Row:
    """A row whose model has the form of the process; its scale is learnt."""
    codes: Space = space if isinstance(space, Sphere) else Euclidean(space.dim)
    model = {None: VonMisesFisher(1.0), 1.0: L1, 2.0: N1, 3.0: G1}[conditional.p]
    score = "r2" if conditional.p in (None, 2) else "mcc"
    return Row(number, space, marginal, conditional, codes, model, score, True, {})


def _rows() -> list[Row]:
    """Rows 9 to 12 of the paper's table, every shape on every space, and uniform marginals."""
    rows = [replace(row, row=k) for k, row in enumerate(ICML_TABLE1[8:], start=1)]
    for k, name in enumerate(SHAPES):
        cells = (
            (Euclidean(10), _REAL[k % 3]),
            (Box(10), _BOX[(k + 1) % 3]),
            (Sphere(10), VonMisesFisher(10.0)),
        )
        rows += [
            _cell(len(rows) + i, space, Shape(name), conditional)
            for i, (space, conditional) in enumerate(cells, start=1)
        ]
    uniform = (Box(10), _BOX[0]), (Box(10), _BOX[1]), (Sphere(10), VonMisesFisher(10.0))
    for space, conditional in uniform:
        rows.append(_cell(len(rows) + 1, space, Uniform(), conditional))
    return rows


ROWS = _rows()


@dataclass(frozen=True)
class MarginalExperiment(SyntheticExperiment):
    """A row with a seed, by the published loss, or without or with a potential."""

    @property
    def config(self) -> dict[str, Any]:
        recipe = self.recipe
        changed = {f.name for f in fields(recipe) if getattr(recipe, f.name) != f.default}
        preset = {name: value for name, value in asdict(recipe).items() if name in changed}
        return super().config | {"preset": preset}

    @property
    def trainings(self) -> list[Training]:
        refined = replace(self.recipe.training, steps=max(1, self.recipe.refine))
        return [*super().trainings, refined][: 2 if self.recipe.refine else 1]

    def stages(self, context: Context) -> Stages:
        objective, scores = yield from super().stages(context)
        if self.recipe.refine:
            assert objective is not None
            for name, parameter in objective.named_parameters():
                parameter.requires_grad_(name.startswith("model.potential."))
            sample, seed = self.process().sample, 2 * (self.seed + OTHER)
            training = self.trainings[-1]
            yield Stage(objective, sample, training, seed, dict, "potential", recorded=False)
        if has_density(self.row, self.kind):
            assert objective is not None
            model = objective.get_submodule("model")
            assert isinstance(model, ContrastiveModel)
            found, truth = self.densities(model)
            scores = scores | {"density": float(np.corrcoef(found, truth)[0, 1])}
        return objective, scores

    @torch.no_grad()
    def densities(self, model: ContrastiveModel) -> tuple[NDArray[Any], NDArray[Any]]:
        """The log-density of the positives by the potential and in truth, at held-out positives."""
        process = self.process()
        pairs = process.sample(PLACES, generator=2 * self.seed + 1)
        assert isinstance(model.potential, Potential)
        found = model.potential.log_density(model(pairs.x_pos)).double()
        truth = log_density_of_positives(process, pairs.z_pos, generator=2 * self.seed + 3)
        return found.numpy(), (truth - truth.mean()).numpy()


def has_density(row: Row, kind: str) -> bool:
    """Whether the density of the positives is known, and estimated by a potential."""
    known = row.conditional.p is None or not isinstance(row.space, Sphere)
    return kind == "potential" and known and not isinstance(row.marginal, Uniform)


@torch.no_grad()
def log_density_of_positives(
    process: GenerativeProcess, z: Tensor, *, generator: int, draws: int = DRAWS
) -> Tensor:
    """log q(z) = log E p(z | z′) over draws z′ of the marginal, in float64, for z of shape N×n.

    Coordinates that are independent of the others are averaged separately, so that there are draws near
    every z even in the tails.
    """
    space, marginal, conditional = process.space, process.marginal, process.conditional
    block = space.dim if isinstance(space, Sphere) else 1
    if isinstance(marginal, Shape):
        block = marginal.independent(space)
    centres = process.latents(draws, generator=generator).double()
    total = torch.zeros(len(z), dtype=torch.float64)
    for first in range(0, space.dim, block):
        columns = slice(first, min(first + block, space.dim))
        near = centres[:, columns]
        width = near.shape[1]
        part = space
        if width < space.dim:
            part = Box(width) if isinstance(space, Box) else Euclidean(width)
        for rows in torch.arange(len(z)).split(max(1, 2_000_000 // near.numel())):
            here = z[rows, columns].double()[:, None]
            total[rows] += conditional._log_prob(part, here, near).logsumexp(1)
    return total - np.log(draws) * -(-space.dim // block)


class Marginals(SyntheticTable):
    """Scores of the published loss beside those with a potential, and what the potential estimates."""

    side_by_side = False
    legend = (
        "In %, mean ± standard deviation over seeds (how many); density: correlation of the "
        "potential with the true log-density of the positives."
    )
    within = "as above"

    def targets(self, row: Row) -> list[Target]:
        scores = ["r2"] if row.score == "r2" else ["r2", "mcc"]
        # the published loss of the first four rows is in the table of the paper
        kinds = ["published" if isinstance(row.marginal, Shape) else "plain", "potential"]
        known = row.published.get("contrastive")
        found = [
            Target(kind, score, known, ("within", "above") if kind == "potential" else ())
            for kind in kinds
            for score in scores
        ]
        if has_density(row, "potential"):
            found.append(Target("potential", "density", None))
        return found

    def experiment(self, row: Row, kind: str, seed: int, preset: Preset) -> MarginalExperiment:
        if isinstance(preset, Recipe):
            return MarginalExperiment(row, kind, seed, preset)
        one_of("preset", preset, PRESETS)  # both are the same: nothing of it is published
        precise = kind == "potential" and row.row in PRECISE
        recipe = presets.any_marginal(row.space, row.conditional, row.model_space, precise=precise)
        if kind == "plain":
            recipe = replace(recipe, potential=False)
        elif kind == "published":
            # on spheres its codes are normalised from the start, with the steps that this takes
            training = Training(steps=1000) if recipe.soften else recipe.training
            recipe = Recipe(training, radius=recipe.radius)
        return MarginalExperiment(row, kind, seed, recipe)

    def cells(self, row: Row) -> dict[str, str]:
        known = row.published.get("contrastive")
        marginal = row.marginal
        return {
            "space": space_name(row.space),
            "p(z)": marginal.name if isinstance(marginal, Shape) else family_name(marginal),
            "p(z̃|z)": family_name(row.conditional),
            "codes": space_name(row.model_space),
            "model": family_name(row.model, scale=False),
            "guarantee": self.guarantee(row, "potential").up_to or "none",
            "paper": "" if known is None else self.show(known.mean),
        }

    def label(self, target: Target) -> str:
        if target.score == "density":
            return "density"
        return f"{KINDS[target.kind]} {SCORES[target.score]}"

    def words(self, row: Row) -> str:
        return str(self.guarantee(row, "potential"))

    def pictures(self, row: Row, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        found = runs.get("potential", [])
        if not found:
            return []
        from identica.report import plots

        pictures = curves(found, row.score, goal=None, on=self.scored_on)
        if not has_density(row, "potential"):
            return pictures
        with suppress(InputError):  # without its weights, only the picture is missing
            experiment = self.read_back(row, found[0])
            objective, _ = experiment.trained(found[0].folder)
            estimate, truth = experiment.densities(objective.model)
            figure = plots.true_against_recovered(
                truth[:, None], estimate[:, None], names=["log-density"], label="by the potential"
            )
            caption = f"Log-density of the positives, seed {found[0].seed}"
            pictures.append(Picture(caption, plots.inline(figure, dpi=90)))
        return pictures
