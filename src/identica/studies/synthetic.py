"""The synthetic tables as studies: their jobs, their words, their pictures."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from identica import checkpoints, theory
from identica.errors import InputError
from identica.families import Family, GeneralizedNormal, Uniform, VonMisesFisher
from identica.metrics import match
from identica.mixing import InvertibleMLP
from identica.process import GenerativeProcess
from identica.runs.folder import WEIGHTS
from identica.spaces import Box, Euclidean, Space, Sphere
from identica.studies import experiment, presets
from identica.studies.study import Finished, Job, Ours, Picture, Study, Target, Tick, Verdict
from identica.studies.tables import Row
from identica.studies.trained import curves
from identica.training import Contrastive, Training

SHOWN = 1500  # points in a scatter plot


class SyntheticTable(Study[Row]):
    """A synthetic table of the paper: identity, supervised and contrastive scores of each row."""

    def targets(self, row: Row) -> list[Target]:
        return [Target(kind, row.score, figure) for kind, figure in row.published.items()]

    def job(self, row: Row, kind: str, seed: int, preset: Any) -> Job:
        settings = presets.choose(preset, row) if isinstance(preset, str) else preset
        config = experiment.describe(row, kind, seed, settings)
        training: Training | None = getattr(settings, kind, None)
        pairs = training.steps * training.batch if training else 0
        return Job(config, partial(_work, row, kind, seed, settings), pairs)

    def cells(self, row: Row) -> dict[str, str]:
        found = _guarantee(row)
        return {
            "space": space_name(row.space),
            "p(z)": family_name(row.marginal),
            "p(z̃|z)": family_name(row.conditional),
            "model space": space_name(row.model_space),
            "model": family_name(row.model, scale=False),
            "match": "yes" if row.match else "no",
            "guarantee": found.up_to or "none",
        }

    def words(self, row: Row) -> str:
        fails = "\nTheory forbids a high score here." if row.must_fail else ""
        return f"{_guarantee(row)}{fails}"

    def verdict(self, row: Row, target: Target, ours: Ours) -> Verdict:
        """Within: no further from the published mean than its s.d., or 0.2 points if that is more.

        Above is as good, but not where theory forbids it; raw observations have nothing to reach.
        """
        published = row.published[target.kind]
        word = compare(ours.mean, published.mean, max(published.std or 0.0, 0.002))
        if target.kind == "identity":
            return Verdict(word, None)
        failing = row.must_fail and target.kind == "contrastive"
        return Verdict(word, word != ("above" if failing else "below"))

    def pictures(self, row: Row, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        found = runs.get("contrastive", [])
        if not found:
            return []
        from identica.report import plots

        pictures = curves(found, row.score, goal=row.published["contrastive"].mean)
        with suppress(InputError):  # weights that are gone or damaged cost the picture alone
            z, codes = recovered(row, found[0])
            aligned, how = align(z, codes, row.score)
            figure = plots.true_against_recovered(z[:SHOWN], aligned[:SHOWN], "recovered")
            caption = f"True against recovered factors, seed {found[0].seed}, {how}"
            pictures.append(Picture(caption, plots.inline(figure, dpi=80)))
        return pictures


def _work(
    row: Row, kind: str, seed: int, preset: presets.Preset, folder: Path, tick: Tick
) -> Mapping[str, Any]:
    return experiment.run(row, kind, seed, preset, out=folder, tick=tick)[0]


def compare(ours: float, published: float, tolerance: float) -> str:
    """Where our figure lies.

    >>> compare(0.997, 0.9986, 0.002), compare(0.95, 0.9986, 0.002), compare(0.7, 0.5, 0.1)
    ('within', 'below', 'above')
    """
    difference = ours - published
    if abs(difference) <= tolerance + 1e-9:
        return "within"
    return "above" if difference > 0 else "below"


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


def _guarantee(row: Row) -> theory.Guarantee:
    mixing = InvertibleMLP(row.space.dim, seed=0, draws=1)  # any injective one will do
    process = GenerativeProcess(row.space, row.marginal, row.conditional, mixing)
    model = experiment.make_model(row, presets.choose("fast", row), 0)
    return theory.guarantee(process, model)


# --- what a finished run recovered ------------------------------------------------------------------


@torch.no_grad()
def recovered(
    row: Row, run: Finished, size: int = 4096
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Factors and codes of a contrastive run on samples that it has not seen, each N×n."""
    saved = dict(run.config["preset"])
    training = Training(**saved.pop("contrastive"))
    preset = presets.Preset(
        hidden=tuple(saved.pop("hidden")), contrastive=training, supervised=training, **saved
    )
    model = experiment.make_model(row, preset, run.seed)
    objective = Contrastive(model, experiment.make_loss(row, preset))
    checkpoints.load_weights(run.folder / WEIGHTS, objective)
    process = experiment.make_process(row, run.seed)
    z = process.latents(size, generator=2 * run.seed + 1)
    codes = model(process.mixing(z))
    return z.double().numpy(), codes.double().numpy()


def align(
    z: NDArray[np.float64], codes: NDArray[np.float64], score: str
) -> tuple[NDArray[np.float64], str]:
    """The codes after the best map of the kind that the score forgives, and that map in words."""
    if score == "mcc":
        columns = match(z, codes).columns
        return rescaled(z, codes[:, columns]), "after the best order, sign and scale"
    design = np.c_[codes, np.ones(len(codes))]
    return design @ np.linalg.lstsq(design, z)[0], "after the best linear map"


def rescaled(z: NDArray[np.float64], codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each code after the shift, sign and scale that bring it nearest to its factor, N×n."""
    away = codes - codes.mean(0)
    slope = ((z - z.mean(0)) * away).mean(0) / np.maximum(codes.var(0), 1e-12)
    return away * slope + z.mean(0)
