"""Sprites as studies: contrastive models and autoencoders on dSprites and Natural Sprites."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from identica import checkpoints
from identica.baselines.vae import VAE
from identica.datasets import dsprites
from identica.datasets.pictures import tile
from identica.errors import InputError
from identica.metrics import match
from identica.runs.folder import WEIGHTS
from identica.studies import sprites_run as runs
from identica.studies.images import traversals, walks
from identica.studies.sprites_run import METRICS, SpriteRow, Sprites
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
from identica.studies.synthetic import compare, rescaled
from identica.studies.tables import Published
from identica.studies.trained import curves

SHOWN = 3_000  # images behind a picture


def _percents(*figures: float, mcc: float | None = None) -> dict[str, Published]:
    """Published scores, in the order of METRICS; no deviations are known."""
    found = dict(zip(METRICS, figures, strict=bool(figures)))
    found |= {} if mcc is None else {"mcc": mcc}
    return {score: Published(round(value / 100, 6), None) for score, value in found.items()}


DSPRITES_ROWS = [
    SpriteRow(1, "Ada-GVAE", "UNI", _percents(92.3, 84.7, 26.6, 47.9, 91.3, 7.4)),
    SpriteRow(2, "SlowVAE", "UNI", _percents(90.4, 81.35, 35.7, 52.1, 87.6, 5.1)),
    SpriteRow(3, "L_AU", "UNI", _percents(82.5, 62.9, 7.8, 22.2, 98.8, 4.9), 0.9999, 1),
    SpriteRow(4, "L_AU", "UNI", _percents(80.2, 61.0, 20.5, 42.4, 100.0, 7.6), 0.9, 1),
    SpriteRow(5, "SlowVAE", "LAP", _percents(100.0, 98.32, 27.8, 65.3, 97.0, 6.1)),
    SpriteRow(6, "L_AU", "LAP", _percents(100.0, 96.0, 24.9, 45.6, 92.9, 9.6), 0.999, 1),
    SpriteRow(7, "L_AU", "LAP", _percents(100.0, 94.5, 17.4, 54.0, 94.7, 7.0), 0.99, 1),
    SpriteRow(8, "L_AU", "LAP", _percents(100.0, 89.5, 18.1, 54.4, 90.5, 6.7), 0.9, 1),
]
DISCRETE_ROWS = [
    SpriteRow(1, "β-VAE", "discrete", _percents(78.1, 60.6, 4.6, 10.3, 87.8, 2.1, mcc=41.7)),
    SpriteRow(2, "SlowVAE", "discrete", _percents(82.6, 76.2, 11.7, 18.9, 88.1, 4.4, mcc=52.6)),
    SpriteRow(3, "L_AU", "discrete", _percents(72.2, 62.1, 9.4, 18.1, 96.5, 5.1, mcc=33.4), 0.5, 1),
    SpriteRow(4, "L_AU", "discrete", _percents(55.7, 44.1, 1.7, 3.2, 91.2, 0.7, mcc=22.4), 0.5, 2),
]
CONTINUOUS_ROWS = [
    SpriteRow(1, "β-VAE", "continuous", _percents(mcc=42.6)),
    SpriteRow(2, "SlowVAE", "continuous", _percents(mcc=49.1)),
    SpriteRow(3, "L_AU", "continuous", _percents(mcc=41.7), 0.5, 1),
    SpriteRow(4, "L_AU", "continuous", _percents(mcc=25.8), 0.5, 2),
]


# --- the studies ------------------------------------------------------------------------------------


class SpritesTable(Study[SpriteRow]):
    """Scores of disentanglement on sprites, and the MCC (Spearman) of their factors."""

    legend = (
        "In %, mean ± standard deviation over seeds (how many). Modularity counts codes that know "
        "nothing as 0, where the published one counts them as nearly 1."
    )
    within = (
        "no further from the published one, of which no deviation is known, than our own deviation, "
        "or 0.2 points if that is more"
    )

    def ready(self) -> None:
        for row in {row.version: row for row in self.rows}.values():
            runs.load(row, runs.choose("fast", row).original)

    def targets(self, row: SpriteRow) -> list[Target]:
        """MCC where nothing else can be scored, else the six metrics and MCC, published or not."""
        scores = ("mcc",) if row.version == "continuous" else (*METRICS, "mcc")
        return [Target(row.kind, score, row.published.get(score)) for score in scores]

    def job(self, row: SpriteRow, kind: str, seed: int, preset: Any) -> Job:
        settings = runs.choose(preset, row) if isinstance(preset, str) else preset
        training = settings.training
        work = partial(_work, row, seed, settings)
        return Job(runs.describe(row, seed, settings), work, training.steps * training.batch)

    def cells(self, row: SpriteRow) -> dict[str, str]:
        alpha = f"{row.alpha:g}".removeprefix("0")
        method = row.method if row.method in runs.VAES else f"L_AU({alpha}, {row.p})"
        if not row.is_dsprites:
            return {"data": runs.data_name(row, False), "method": method, "factors": row.version}
        data = "dSprites" if dsprites.is_at_hand() else "dSprites, re-rendered"
        return {"data": data, "method": method, "pairs": row.version}

    def label(self, target: Target) -> str:
        return SCORES[target.score]

    def words(self, row: SpriteRow) -> str:
        return f"{_DATA[row.version]} {_METHODS[row.method, row.p]}"

    def verdict(self, row: SpriteRow, target: Target, ours: Ours) -> Verdict:
        """Within: no further from the published figure than our own deviation over seeds.

        On data that are not those of the published figure nothing is held against ours.
        """
        if target.published is None:
            return Verdict("–", None)
        word = compare(ours.mean, target.published.mean, max(ours.std, 0.002))
        return Verdict(word, word != "below" if row.is_dsprites else None)

    def pictures(self, row: SpriteRow, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        found = runs.get(row.kind, [])
        if not found:
            return []
        known = row.published.get("mcc")
        goal = None if known is None else known.mean
        pictures = curves(found, "mcc", goal=goal, on="drawn images")
        with suppress(InputError):  # weights or data that are gone cost these pictures alone
            pictures += _what_was_recovered(row, found[0])
        return pictures


class DSpritesTable(SpritesTable):
    """The same of dSprites, where medians over seeds were published."""

    summary = "median"
    legend = SpritesTable.legend.replace(
        "mean ± standard deviation", "median ± mean absolute deviation from it"
    )


_DATA = {
    "UNI": "Pairs of sprites in which one to four of the five factors are drawn anew, at will.",
    "LAP": "Pairs of sprites in which every factor but the shape moves a Laplace-distributed way.",
    "discrete": "Sprites that move and grow as pedestrians do from frame to frame of KITTI Masks, "
    "in bins. The published figures are of motion measured in YouTube-VOS, so of other data.",
    "continuous": "Sprites that move and grow as pedestrians do from frame to frame of KITTI Masks. "
    "The published figures are of motion measured in YouTube-VOS, so of other data.",
}
_METHODS = {
    ("β-VAE", 0): "Single images are coded: which belong together is not used.",
    ("SlowVAE", 0): "Codes are taken to move a Laplace-distributed way within a pair.",
    ("Ada-GVAE", 0): "Codes that hardly differ within a pair are taken to be shared.",
    ("L_AU", 1): "Steps of the codes are taken to have a Laplace distribution.",
    ("L_AU", 2): "Steps of the codes are taken to be normal, which cannot tell the factors from "
    "their rotations.",
}


def _work(
    row: SpriteRow, seed: int, settings: runs.Settings, folder: Path, tick: Tick
) -> Mapping[str, Any]:
    return runs.run(row, seed, settings, out=folder, tick=tick)


# --- what a finished run recovered ------------------------------------------------------------------


def recovered(
    row: SpriteRow, run: Finished, size: int
) -> tuple[Sprites, nn.Module, NDArray[Any], NDArray[np.float64]]:
    """The data and the trained objective of a run, and factors and codes of images drawn anew."""
    settings = runs.settings_of(run.config)
    data = runs.load(row, settings.original)
    objective, encode = runs.make_objective(row, run.seed, settings)
    checkpoints.load_weights(run.folder / WEIGHTS, objective.eval())
    return data, objective, *runs.encoded(data, encode, size, run.seed)


def _what_was_recovered(row: SpriteRow, run: Finished) -> list[Picture]:
    from identica.report import plots

    data, objective, factors, codes = recovered(row, run, SHOWN)
    z, which = factors.astype(float), f"seed {run.seed}, {run.config['data']}"
    columns = match(z, codes, "spearman").columns
    figure = plots.true_against_recovered(
        z, rescaled(z, codes[:, columns]), "recovered", names=row.factors
    )
    scatter = Picture(f"True factors against their codes, {which}", plots.inline(figure, dpi=80))
    if isinstance(objective, VAE):
        names = dict(zip(columns.tolist(), row.factors, strict=True))
        every = np.arange(codes.shape[1])
        images = traversals(objective, codes, every)
        labels = [f"code {k + 1}" + (f": {names[k]}" if k in names else "") for k in every.tolist()]
        caption = (
            "What the decoder draws as one code moves through its quantiles, named after the factor "
            f"that it is matched to, {which}"
        )
    else:
        chosen = walks(codes, columns)
        drawn = data.images(factors[chosen.ravel()]) * np.uint8(255 // row.white)
        images, labels = drawn.reshape(*chosen.shape, 64, 64), list(row.factors)
        caption = (
            "An image (left), and the images nearest to it in the codes as the code of one factor "
            f"moves through its quantiles, {which}"
        )
    figure = plots.sheet(tile(images), labels)
    return [scatter, Picture(caption, plots.inline(figure, dpi=80))]
