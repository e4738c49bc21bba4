"""Sprites as studies: contrastive models and autoencoders on dSprites and Natural Sprites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from identica import metrics
from identica._validate import count
from identica.baselines import VAE
from identica.datasets import dsprites, kitti_masks, natural_sprites
from identica.recipes import Preset, from_config, pick
from identica.recipes import studies as presets
from identica.studies.experiment import Context, RowExperiment, Scores, Stage, Stages
from identica.studies.images import SHOWN, TERMS, codes_of, meaning, method_objective, pair_sampler
from identica.studies.published import METRICS, SpriteRow
from identica.studies.study import Finished, Ours, Picture, Study, Target
from identica.training import Sampler


@dataclass(frozen=True)
class Scoring:
    """Sample sizes of the metrics: points to fit (`train`) and to score (`test`), as published; encoded
    images from which BetaVAE and FactorVAE draw; and images scored during training."""

    train: int = 10_000
    test: int = 5_000
    images: int = 50_000
    watched: int = 2_000

    def __post_init__(self) -> None:
        count("images", self.images, at_least=self.train + self.test)


# --- images -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DSprites:
    """dSprites with pairs of the distribution "UNI" or "LAP"; re-rendered, or from packed original images."""

    law: str
    packed: NDArray[np.uint8] | None = None

    def pairs(self, n: int, rng: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        return (dsprites.pairs_uni if self.law == "UNI" else dsprites.pairs_lap)(n, rng)

    def sample(self, n: int, rng: Any) -> NDArray[Any]:
        return dsprites.sample(n, rng)

    def images(self, factors: ArrayLike) -> NDArray[np.uint8]:
        if self.packed is None:
            return dsprites.render(factors)
        return dsprites.unpack(self.packed[dsprites.index_of(factors)])


Sprites = DSprites | natural_sprites.NaturalSprites


def load(row: SpriteRow, original: bool = False) -> Sprites:
    """The data of a row. Natural Sprites move as KITTI Masks do, which must be available."""
    if row.is_dsprites:
        return DSprites(row.version, dsprites.load() if original else None)
    masks = kitti_masks.load()
    return natural_sprites.from_kitti(masks, discrete=row.version == "discrete")


def data_name(row: SpriteRow, original: bool) -> str:
    """The name of the data of a row; data other than the published set has another name."""
    if not row.is_dsprites:
        return "natural-sprites-kitti"
    return "dsprites" if original else "dsprites-rerendered"


def sampler(data: Sprites) -> Sampler:
    """Draws pairs of images with their factors."""
    return pair_sampler(data.pairs, data.images)


# --- experiments ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SpritesExperiment(RowExperiment):
    """A row with a seed; `original` images of dSprites, or re-rendered ones."""

    row: SpriteRow
    scoring: Scoring
    original: bool

    @property
    def config(self) -> dict[str, Any]:
        row = self.row
        config: dict[str, Any] = {
            "kind": row.kind,
            "seed": self.seed,
            "data": data_name(row, self.original),
            "version": row.version,
            "method": row.method,
            "terms": TERMS.get(row.method, {"alpha": row.alpha, "p": row.p}),
            "training": asdict(self.recipe.training),
            "scoring": asdict(self.scoring),
            "network": self.recipe.network,
        }
        if row.kind == "contrastive":
            config["space"] = repr(row.space)
            if self.anneal is not None:
                config["anneal"] = self.anneal
        return config

    @property
    def anneal(self) -> tuple[float, int] | None:
        """The annealing of the loss, see `AlignUniform`; α above .99 trains too slowly without it."""
        if self.recipe.alpha_start is None or self.row.alpha <= 0.99:
            return None
        return self.recipe.alpha_start, 4 * self.recipe.training.steps // 5

    @property
    def white(self) -> int:
        """The largest value of a pixel."""
        return 1 if self.row.is_dsprites else 255

    def objective(self) -> tuple[nn.Module, nn.Module]:
        row, recipe, network = self.row, self.recipe, str(self.recipe.network)
        return method_objective(
            row, recipe, self.seed, network=network, white=self.white, anneal=self.anneal
        )

    def stages(self, context: Context) -> Stages:
        data = load(self.row, self.original)
        objective, model = self.objective()

        def watch() -> Scores:
            z, h = self.encoded(data, model, self.scoring.watched)
            return {"mcc": metrics.mcc(z, h, "spearman")}

        yield Stage(objective, sampler(data), self.recipe.training, 2 * self.seed, watch)
        return objective, self.scores(data, model)

    def encoded(self, data: Sprites, model: nn.Module, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Factors (n×5) and codes (n×10) of images drawn at random; images are made as needed."""
        z = data.sample(n, np.random.default_rng(2 * self.seed + 1))
        parts = np.array_split(z, -(-n // 1000))
        return z, np.concatenate([codes_of(model, data.images(part)) for part in parts])

    def scores(self, data: Sprites, model: nn.Module) -> Scores:
        """All scores of a trained model, by name.

        Samples that share a factor are drawn from a table of encoded images, not encoded one by one:
        BetaVAE and FactorVAE would need three million.
        """
        discrete = self.row.version != "continuous"
        train, test = self.scoring.train, self.scoring.test
        z, h = self.encoded(data, model, self.scoring.images if discrete else train)
        scores: Scores = {"mcc": metrics.mcc(z[:train], h[:train], "spearman")}
        if not discrete:
            return scores
        draw, d = metrics.sampler_from(z, h), z.shape[1]
        sizes: dict[str, Any] = {"train": train, "test": test, "random_state": self.seed}
        scores["beta_vae"] = metrics.beta_vae(draw, d, **sizes)
        scores["factor_vae"] = metrics.factor_vae(draw, h[:train], d, **sizes)
        scores["mig"] = metrics.mig(z[:train], h[:train])
        scores["modularity"] = metrics.modularity(z[:train], h[:train])
        z, h = z[: train + test], h[: train + test]  # split again by the metrics themselves
        scores["dci"] = metrics.dci(z, h, random_state=self.seed).disentanglement
        scores["sap"] = metrics.sap(z, h, random_state=self.seed)
        return scores


# --- the studies ------------------------------------------------------------------------------------


class SpritesTable(Study[SpriteRow]):
    """Scores of disentanglement on sprites, and the MCC (Spearman) of their factors."""

    scored_on = "drawn images"
    scorings: ClassVar[dict[str, Scoring]] = {"fast": Scoring(images=20_000), "paper": Scoring()}
    legend = (
        "In %, mean ± standard deviation (number of seeds). Modularity is 0 for uninformative codes, "
        "but nearly 1 in the published implementation."
    )
    within = (
        "no further from the published figure, whose deviation is not known, than our own deviation, "
        "or 0.2 points if that is more"
    )

    def ready(self, rows: Sequence[SpriteRow]) -> None:
        for row in {row.version: row for row in rows}.values():
            load(row, row.is_dsprites and dsprites.is_at_hand())

    def targets(self, row: SpriteRow) -> list[Target]:
        """MCC where nothing else can be scored, else the six metrics and MCC, published or not."""
        scores = ("mcc",) if row.version == "continuous" else (*METRICS, "mcc")
        # figures on data other than the published set are not judged
        accepted = ("within", "above") if row.is_dsprites else ()
        return [Target(row.kind, score, row.published.get(score), accepted) for score in scores]

    def tolerance(self, target: Target, ours: Ours) -> float:
        return max(ours.std, 0.002)

    def experiment(self, row: SpriteRow, kind: str, seed: int, preset: Preset) -> SpritesExperiment:
        """dSprites are the original images where their archive is under IDENTICA_DATA."""
        vae = row.kind != "contrastive"
        if row.is_dsprites:
            fast = presets.SPRITES_VAE if vae else presets.SPRITES
        else:
            fast = presets.NATURAL_VAE if vae else presets.NATURAL
        recipe = pick(preset, fast=fast, paper=presets.PAPER_IMAGES)
        scoring = self.scorings["paper" if preset == "paper" else "fast"]
        original = row.is_dsprites and dsprites.is_at_hand()
        return SpritesExperiment(row, seed, recipe, scoring, original)

    def read_back(self, row: SpriteRow, run: Finished) -> SpritesExperiment:
        original, scoring = run.config["data"] == "dsprites", Scoring(**run.config["scoring"])
        return SpritesExperiment(row, run.seed, from_config(run.config), scoring, original)

    def cells(self, row: SpriteRow) -> dict[str, str]:
        alpha = f"{row.alpha:g}".removeprefix("0")
        method = row.method if row.kind != "contrastive" else f"L_AU({alpha}, {row.p})"
        if not row.is_dsprites:
            return {"data": data_name(row, False), "method": method, "factors": row.version}
        data = "dSprites" if dsprites.is_at_hand() else "dSprites, re-rendered"
        return {"data": data, "method": method, "pairs": row.version}

    def words(self, row: SpriteRow) -> str:
        return f"{_DATA[row.version]} {_METHODS[row.method, row.p]}"

    def recovered(self, experiment: SpritesExperiment, run: Finished) -> list[Picture]:
        objective, model = experiment.trained(run.folder)
        row, data = experiment.row, load(experiment.row, experiment.original)
        z, codes = experiment.encoded(data, model, SHOWN)
        names = dsprites.FACTORS if row.is_dsprites else natural_sprites.FACTORS

        def images(rows: NDArray[np.intp]) -> NDArray[np.uint8]:
            return data.images(z[rows]) * np.uint8(255 // experiment.white)

        vae = objective if isinstance(objective, VAE) else None
        which = f"seed {run.seed}, {run.config['data']}"
        return meaning(z.astype(float), codes, names, images, which, vae)


class DSpritesTable(SpritesTable):
    """The same of dSprites, where medians over seeds were published."""

    summary = "median"
    legend = SpritesTable.legend.replace(
        "mean ± standard deviation", "median ± mean absolute deviation from it"
    )


_NATURAL = (
    "Sprites that move and grow as pedestrians do from frame to frame of KITTI Masks. The published "
    "figures are for other data: motion measured in YouTube-VOS."
)
_DATA = {
    "UNI": "Pairs of sprites in which one to four of the five factors, chosen at random, are redrawn.",
    "LAP": "Pairs of sprites in which every factor but the shape moves by a Laplace-distributed step.",
    "discrete": f"{_NATURAL} Factors are binned.",
    "continuous": _NATURAL,
}
_METHODS = {
    ("β-VAE", 0): "Images are encoded one by one; which belong together is not used.",
    ("SlowVAE", 0): "Codes are assumed to move by a Laplace-distributed step within a pair.",
    ("Ada-GVAE", 0): "Codes that hardly differ within a pair are assumed to be shared.",
    ("L_AU", 1): "Steps of the codes are assumed to have a Laplace distribution.",
    ("L_AU", 2): "Steps of the codes are assumed to be normal, so rotated factors fit as well.",
}
