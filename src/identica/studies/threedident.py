"""Table 4 of the paper as a study: the factors behind rendered images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from identica import theory
from identica.augment import simclr
from identica.datasets.pictures import tile
from identica.datasets.threedident import FACTORS, render
from identica.datasets.threedident.storage import ImageSet
from identica.metrics import linear_r2_per_factor, match
from identica.recipes import Preset, from_config, pick
from identica.recipes import studies as presets
from identica.spaces import Sphere
from identica.studies.images import moved
from identica.studies.published import ImageRow
from identica.studies.study import Finished, Picture, Study, Target, read_metrics
from identica.studies.synthetic import align, family_name, space_name
from identica.studies.threedident_experiment import (
    FAST,
    ImageExperiment,
    Images,
    codes_of,
    make_process,
    paper_images,
    r2_of,
)

SHOWN = 1500  # points in a scatter plot
PAIRS = 10  # example pairs shown for each row
WIDTH = 0.1  # width of the published conditional: not in the paper, but the default of the authors' code


class ThreeDIdentTable(Study[ImageRow]):
    """R² and MCC of the ten factors of 3DIdent on unseen images, from pixels."""

    scored_on = "unseen images"

    def targets(self, row: ImageRow) -> list[Target]:
        def accepted(score: str) -> tuple[str, ...]:
            if row.kind == "identity":  # raw pixels are not compared
                return ()
            return ("within", "below") if score in row.forbidden else ("within", "above")

        return [
            Target(row.kind, score, figure, accepted(score))
            for score, figure in row.published.items()
        ]

    def experiment(self, row: ImageRow, kind: str, seed: int, preset: Preset) -> ImageExperiment:
        supervised = kind == "supervised"
        fast = presets.THREEDIDENT_SUPERVISED if supervised else presets.THREEDIDENT
        recipe = pick(preset, fast=fast, paper=presets.PAPER_THREEDIDENT)
        if preset == "paper":
            return ImageExperiment(_as_published(row), seed, recipe, paper_images())
        return ImageExperiment(row, seed, recipe, FAST)

    def read_back(self, row: ImageRow, run: Finished) -> ImageExperiment:
        images, recipe = Images(**run.config["images"]), from_config(run.config)
        published = _as_published(row)
        own = run.config.get("conditional") != repr(published.conditional)
        return ImageExperiment(row if own else published, run.seed, recipe, images)

    def cells(self, row: ImageRow) -> dict[str, str]:
        if row.model_space is None or row.model is None:
            return {"pairs": row.kind, "model space": "–", "model": "–", "match": "–"}
        pairs = row.conditional
        return {
            "pairs": "augmentations" if pairs is None else family_name(pairs, scale=False),
            "model space": space_name(row.model_space),
            "model": family_name(row.model, scale=isinstance(row.model_space, Sphere)),
            "match": "yes" if row.match else "no",
        }

    def words(self, row: ImageRow) -> str:
        if row.kind == "supervised":
            return "The network is trained on the true factors: an upper bound."
        if row.kind == "identity":
            return "A linear map of the pixels, shrunk to 16×16: a baseline without a network."
        if row.conditional is None:
            return (
                "Two views of an image share the factors that the augmentations do not change. They "
                "change position and colours, so the codes cannot be expected to contain these."
            )
        model = self.experiment(row, row.kind, 0, "fast").model()
        process = make_process(Images(size=8, train=1, test=1), row.conditional)
        return str(theory.guarantee(process, model))

    def pictures(self, row: ImageRow, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        factors = _by_factor(found := runs.get(row.kind, []))
        aside = self.aside(found[0]) if found else ""
        factors = [picture._replace(caption=picture.caption + aside) for picture in factors]
        return [*factors, *super().pictures(row, runs)]

    def aside(self, run: Finished) -> str:
        plan = run.config.get("walking")
        if not isinstance(plan, dict) or not plan.get("head"):
            return ""
        before = plan["starts"] * plan["start"]["steps"] + plan["narrow"]["steps"]
        begins = before + plan["wide"]["steps"]
        return (
            f". From step {begins:,} on, only the head is trained, at first at a high temperature: "
            "in a box scores fall then, and recover as it cools"
        )

    def recovered(self, experiment: ImageExperiment, run: Finished) -> list[Picture]:
        from identica.report import plots

        row, seed = experiment.row, f"seed {run.seed}"
        if row.kind == "identity":
            return []
        _, model = experiment.trained(run.folder)
        data = ImageSet(experiment.images.folder(run.folder.parent.parent, "test"))
        z, codes = data.raw_latents, codes_of(model.eval(), data)
        pictures = []
        if row.kind == "contrastive":
            figure = plots.sheet(tile(example_pairs(row, data.size)), ["x", "x̃"])
            pictures.append(Picture("Pairs of the process", plots.inline(figure, dpi=80)))
        r2 = linear_r2_per_factor(z, codes)
        figure = plots.bars(dict(zip(FACTORS, r2.tolist(), strict=True)), "R²")
        pictures.append(Picture(f"R² of each factor, {seed}", plots.inline(figure, dpi=90)))
        aligned, how = align(z, codes, "mcc" if "mcc" not in row.forbidden else "r2")
        figure = plots.true_against_recovered(z[:SHOWN], aligned[:SHOWN], names=FACTORS)
        caption = f"True against recovered factors, {seed}, {how}"
        pictures.append(Picture(caption, plots.inline(figure, dpi=80)))
        figure = plots.sheet(tile(traversals(data, codes)), FACTORS)
        caption = (
            "An unseen image (left), and the factors that a linear map reads off its codes, rendered, "
            f"as the code of one factor moves through its quantiles, {seed}"
        )
        return [*pictures, Picture(caption, plots.inline(figure, dpi=80))]


def _as_published(row: ImageRow) -> ImageRow:
    """The row with pairs of the published width."""
    if row.conditional is None:
        return row
    return replace(row, conditional=type(row.conditional)(WIDTH))  # type: ignore[call-arg]


def _by_factor(runs: Sequence[Finished]) -> list[Picture]:
    """Learning curves of the R² of each factor in the first run, if it has a history."""
    from identica.report import plots

    records = read_metrics(runs[0].folder, "step", *map(r2_of, FACTORS)) if runs else []
    if not records:
        return []
    histories = {
        name: [{"step": r["step"], "R²": r[r2_of(name)]} for r in records] for name in FACTORS
    }
    figure = plots.training_curve(histories, "R²", on="unseen images")
    caption = f"R² of each factor in training, seed {runs[0].seed}"
    return [Picture(caption, plots.inline(figure, dpi=90))]


def traversals(data: ImageSet, codes: NDArray[np.float64]) -> NDArray[np.uint8]:
    """For each factor, a typical image, and rendered images as only the code matched to the factor
    moves, 10×10×S×S×3."""
    z = data.raw_latents
    start, places = moved(codes, match(z, codes).columns)
    middle = codes.mean(axis=0)
    slope = np.linalg.lstsq(codes - middle, z - z.mean(axis=0), rcond=None)[0]
    factors = ((places - middle) @ slope + z.mean(axis=0)).clip(-1, 1)
    drawn = render(factors.reshape(-1, len(FACTORS)), data.size)
    drawn = drawn.reshape(*factors.shape[:2], *drawn.shape[1:])
    first = np.broadcast_to(data.images(np.array([start])), (len(drawn), 1, *drawn.shape[2:]))
    return np.concatenate([first, drawn], axis=1)


def example_pairs(row: ImageRow, size: int) -> NDArray[np.uint8]:
    """Fresh pairs of a contrastive row, 2×n×size×size×3."""
    process = make_process(Images(size=size, train=1, test=1), row.conditional)
    source = torch.Generator().manual_seed(0)
    x, x_pos = process.sample(PAIRS, generator=source)[2:]
    if row.conditional is None:
        x, x_pos = ((255 * simclr(x, generator=source)).round().byte() for _ in range(2))
    return torch.stack([x, x_pos]).permute(0, 1, 3, 4, 2).numpy()
