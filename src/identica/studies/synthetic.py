"""The synthetic tables: recovery of the factors of known processes by each kind of model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from identica import theory
from identica.encoders import ContrastiveModel
from identica.estimator.networks import Encoder, Whiten
from identica.families import Family, GeneralizedNormal, Uniform, VonMisesFisher
from identica.heads import make_head
from identica.metrics import linear_r2, mcc
from identica.mixing import InvertibleMLP
from identica.plots.points import aligned
from identica.process import GenerativeProcess
from identica.recipes import Preset, Recipe, pick
from identica.recipes import studies as presets
from identica.spaces import Box, Euclidean, Space, Sphere
from identica.studies.experiment import Context, Experiment, Scores, Stage, Stages
from identica.studies.published import Row
from identica.studies.study import SCORES, Finished, Picture, Study, Target
from identica.training import Contrastive, Sampler, Supervised, Training

HELD_OUT = 16_384  # observations that are scored
SHOWN = 1500  # points in a scatter plot

_mixing = lru_cache(maxsize=8)(InvertibleMLP)  # finding well-conditioned matrices takes a second


@dataclass(frozen=True)
class SyntheticExperiment(Experiment):
    """A row with a seed, of a kind: identity (raw observations), supervised or contrastive."""

    row: Row
    kind: str
    seed: int
    recipe: Recipe

    @property
    def config(self) -> dict[str, Any]:
        """Rows with the same process share their identity and supervised runs."""
        row, kind, every = self.row, self.kind, asdict(self.recipe)
        config: dict[str, Any] = {
            "kind": kind,
            "seed": self.seed,
            "space": repr(row.space),
            "marginal": repr(row.marginal),
        }
        preset = {"hidden": every["network"], kind: every["training"]}
        if kind == "supervised":
            config |= {"output": repr(row.model_space), "preset": preset}
        if self.contrastive:
            config["conditional"] = repr(row.conditional)
            config |= {"model_space": repr(row.model_space), "model": repr(row.model)}
            options = (
                "symmetric negatives effective_negatives positives tau_start soften bound bound_lr"
            )
            config["preset"] = preset | {name: every[name] for name in options.split()}
            if self.recipe.whiten:  # absent from the configurations of runs without it
                config["preset"]["whiten"] = True
        return config

    @property
    def contrastive(self) -> bool:
        """Whether the model learns from pairs alone."""
        return self.kind not in ("identity", "supervised")

    @property
    def trainings(self) -> list[Training]:
        return [] if self.kind == "identity" else [self.recipe.training]

    def process(self) -> GenerativeProcess:
        """The true process, with a different mixing for each seed."""
        row, mixing = self.row, _mixing(self.row.space.dim, seed=self.seed)
        return GenerativeProcess(row.space, row.marginal, row.conditional, mixing)

    def model(self) -> ContrastiveModel:
        """The contrastive model, untrained."""
        row, n = self.row, self.row.space.dim
        encoder: nn.Module = self.recipe.mlp(n, n, seed=self.seed)
        if self.recipe.whiten:
            encoder = Encoder(Whiten(n), encoder)
        head = self.recipe.head(row.model_space)
        potential = self.recipe.absorbing(n, seed=self.seed)
        return ContrastiveModel(row.model_space, row.model, encoder, head=head, potential=potential)

    def objective(self) -> tuple[nn.Module, nn.Module]:
        row, n = self.row, self.row.space.dim
        if self.contrastive:
            model = self.model()
            return Contrastive(model, self.recipe.loss(row.model)), model
        network: nn.Module = self.recipe.mlp(n, n, seed=self.seed)
        # codes of a supervised model live in the space of the factors if those of the contrastive one do
        if type(row.model_space) is type(row.space):
            network = nn.Sequential(network, make_head(row.space))
        return Supervised(network), network

    def stages(self, context: Context) -> Stages:
        process, positives = self.process(), self.recipe.positives
        # batches come from even seeds, so that the held-out samples are never drawn in training
        z = process.latents(HELD_OUT, generator=2 * self.seed + 1)
        x = process.mixing(z)

        def scores(codes: Tensor) -> Scores:
            return {"r2": linear_r2(z, codes), "mcc": mcc(z, codes)}

        if self.kind == "identity":
            return None, scores(x)
        objective, model = self.objective()
        for part in objective.modules():
            if isinstance(part, Whiten):
                part.measure(process.labelled(HELD_OUT, generator=2 * self.seed).x)

        @torch.no_grad()
        def score() -> Scores:
            return scores(model(x))

        sample: Sampler = process.labelled
        if self.contrastive:
            pool = partial(process.pool, positives=positives)
            sample = process.sample if positives == 1 else pool
        yield Stage(
            objective, sample, self.recipe.training, 2 * self.seed, score, positives=positives
        )
        return objective, score()

    @torch.no_grad()
    def recovered(
        self, run: Finished, size: int = 4096
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Factors and codes of a finished run on held-out samples, each N×n."""
        _, model = self.trained(run.folder)
        process = self.process()
        z = process.latents(size, generator=2 * self.seed + 1)
        return z.double().numpy(), model(process.mixing(z)).double().numpy()


class SyntheticTable(Study[Row]):
    """A synthetic table of the paper: identity, supervised and contrastive scores of each row."""

    def targets(self, row: Row) -> list[Target]:
        accepted: dict[str, tuple[str, ...]] = {
            "identity": (),  # raw observations are not compared
            "supervised": ("within", "above"),
            "contrastive": ("within", "below") if row.must_fail else ("within", "above"),
        }
        return [
            Target(kind, row.score, figure, accepted[kind])
            for kind, figure in row.published.items()
        ]

    def experiment(self, row: Row, kind: str, seed: int, preset: Preset) -> SyntheticExperiment:
        paper = presets.PAPER
        fast = presets.for_process(row.marginal, row.conditional, row.model_space, row.model)
        if kind != "contrastive":  # with a network of the same size
            paper = presets.PAPER_SUPERVISED
            fast = replace(presets.SUPERVISED, network=fast.network)
        return SyntheticExperiment(row, kind, seed, pick(preset, fast=fast, paper=paper))

    def label(self, target: Target) -> str:
        return f"{target.kind} {SCORES[target.score]}"

    def cells(self, row: Row) -> dict[str, str]:
        return {
            "space": space_name(row.space),
            "p(z)": family_name(row.marginal),
            "p(z̃|z)": family_name(row.conditional),
            "model space": space_name(row.model_space),
            "model": family_name(row.model, scale=False),
            "match": "yes" if row.match else "no",
            "guarantee": self.guarantee(row).up_to or "none",
        }

    def words(self, row: Row) -> str:
        fails = "\nTheory forbids a high score here." if row.must_fail else ""
        return f"{self.guarantee(row)}{fails}"

    def guarantee(self, row: Row, kind: str = "contrastive") -> theory.Guarantee:
        """The theoretical guarantee for a row."""
        mixing = InvertibleMLP(row.space.dim, seed=0, draws=1)  # any injective one will do
        process = GenerativeProcess(row.space, row.marginal, row.conditional, mixing)
        experiment = self.experiment(row, kind, 0, "fast")
        return theory.guarantee(process, experiment.model(), tau=experiment.recipe.tau)

    def recovered(self, experiment: SyntheticExperiment, run: Finished) -> list[Picture]:
        from identica.report import plots

        z, codes = experiment.recovered(run)
        found, how = align(z, codes, experiment.row.score)
        figure = plots.true_against_recovered(z[:SHOWN], found[:SHOWN])
        caption = f"True against recovered factors, seed {run.seed}, {how}"
        return [Picture(caption, plots.inline(figure, dpi=80))]


# --- names and alignment, shared by all tables ------------------------------------------------------


def space_name(space: Space) -> str:
    """The name of a space in the tables."""
    names: dict[type, str] = {Sphere: "sphere", Box: "box", Euclidean: "unbounded"}
    return names.get(type(space), repr(space))


def family_name(family: Family, *, scale: bool = True) -> str:
    """The name of a family in the tables; the scale of a model is left out, the encoder finds it.

    >>> family_name(GeneralizedNormal(3.0, 0.05)), family_name(VonMisesFisher(10.0))
    ('GenNorm(3; 0.05)', 'vMF(10)')
    """
    match family:
        case Uniform():
            return "uniform"
        case VonMisesFisher(kappa):
            return f"vMF({kappa:g})"
        case GeneralizedNormal(shape, width):
            return f"GenNorm({shape:g}; {width:g})" if scale else f"GenNorm({shape:g})"
    name = type(family).__name__
    spread = getattr(family, "std", None) or getattr(family, "scale", None)
    return f"{name}({spread:g})" if scale else name


def align(
    z: NDArray[np.float64], codes: NDArray[np.float64], score: str
) -> tuple[NDArray[np.float64], str]:
    """Align the codes by the best map that the score is invariant to; also returns its description."""
    if score == "mcc":
        return aligned(z, codes, "permutation"), "after the best order, sign and scale"
    return aligned(z, codes, "linear"), "after the best linear map"
