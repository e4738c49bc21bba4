"""Sprites as studies: contrastive models and autoencoders on dSprites and Natural Sprites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from identica import metrics, recipes
from identica._validate import count
from identica.baselines import NETWORKS, VAE
from identica.datasets import dsprites, kitti_masks, natural_sprites
from identica.datasets.pictures import tile
from identica.encoders import ContrastiveModel
from identica.errors import InputError
from identica.losses import AlignUniform
from identica.process import Pairs
from identica.recipes import Recipe
from identica.spaces import Euclidean
from identica.studies.experiment import Context, Experiment, Scores, Stage, Stages
from identica.studies.images import CODES, TERMS, VAES, codes_of, traversals, walks
from identica.studies.published import L1, METRICS, N1, SpriteRow
from identica.studies.study import SCORES, Finished, Ours, Picture, Study, Target, curves
from identica.studies.synthetic import rescaled
from identica.training import Contrastive, Sampler, Training

R = Euclidean(CODES)
SHOWN = 3_000  # images behind a picture


@dataclass(frozen=True)
class Scoring:
    """How many points each metric is fitted to (`train`) and scored on (`test`), as published; how
    many images are encoded for BetaVAE and FactorVAE to draw theirs from; how many are watched
    during training."""

    train: int = 10_000
    test: int = 5_000
    images: int = 50_000
    watched: int = 2_000

    def __post_init__(self) -> None:
        count("images", self.images, at_least=self.train + self.test)


# --- images -----------------------------------------------------------------------------------------


class Sprites(Protocol):
    """Images by their factors (N×5), and how these are drawn, such as `NaturalSprites`."""

    def pairs(self, n: int, rng: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Factors of n pairs."""

    def sample(self, n: int, rng: Any) -> NDArray[Any]:
        """Factors of n images."""

    def images(self, factors: ArrayLike) -> NDArray[np.uint8]:
        """Images N×64×64."""


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


def factors_of(row: SpriteRow) -> tuple[str, ...]:
    """The names of the factors."""
    return dsprites.FACTORS if row.is_dsprites else natural_sprites.FACTORS


def load(row: SpriteRow, original: bool = False) -> Sprites:
    """The data of a row. Natural Sprites move as KITTI Masks do, which must be available."""
    if row.is_dsprites:
        return DSprites(row.version, dsprites.load() if original else None)
    masks = kitti_masks.load()
    return natural_sprites.from_kitti(masks, discrete=row.version == "discrete")


def data_name(row: SpriteRow, original: bool) -> str:
    """The name of the data of a row: what is not the published data set is not called so."""
    if not row.is_dsprites:
        return "natural-sprites-kitti"
    return "dsprites" if original else "dsprites-rerendered"


def sampler(data: Sprites) -> Sampler:
    """Draws pairs of images with their factors."""

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        seed = int(torch.randint(2**62, (), generator=generator))
        factors = data.pairs(size, np.random.default_rng(seed))
        x, x_pos = (torch.from_numpy(data.images(chosen)) for chosen in factors)
        z, z_pos = (torch.from_numpy(chosen) for chosen in factors)
        return Pairs(z, z_pos, x, x_pos)

    return sample


# --- experiments ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SpritesExperiment(Experiment):
    """A row with a seed; `original` images of dSprites, or re-rendered ones."""

    row: SpriteRow
    seed: int
    recipe: Recipe
    scoring: Scoring
    original: bool

    @property
    def kind(self) -> str:
        return self.row.kind

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
        if row.method not in VAES:
            config["space"] = repr(R)
            if self.anneal is not None:
                config["anneal"] = self.anneal
        return config

    @property
    def trainings(self) -> list[Training]:
        return [self.recipe.training]

    @property
    def anneal(self) -> tuple[float, int] | None:
        """The annealing of the loss, see `AlignUniform`: an α above .99 learns too slowly by itself."""
        if self.recipe.alpha_start is None or self.row.alpha <= 0.99:
            return None
        return self.recipe.alpha_start, 4 * self.recipe.training.steps // 5

    @property
    def white(self) -> int:
        """The largest value of a pixel."""
        return 1 if self.row.is_dsprites else 255

    def objective(self) -> tuple[nn.Module, nn.Module]:
        row, network = self.row, str(self.recipe.network)
        if row.method in VAES:
            make: Any = VAES[row.method]
            options = {"scale": float(self.white), "network": network, "seed": self.seed}
            vae = make(CODES, **options, **TERMS[row.method])
            return vae, vae
        make_encoder, _ = NETWORKS[network]  # the same as in autoencoders
        encoder = make_encoder(CODES, channels=1, scale=float(self.white), seed=self.seed)
        model = ContrastiveModel(R, L1 if row.p == 1 else N1, encoder)
        # the anchor counts among its own negatives, as published: that fixes the scale of the codes
        loss = AlignUniform(row.alpha, row.p, self_negative=True, anneal=self.anneal)
        return Contrastive(model, loss), model

    def stages(self, context: Context) -> Stages:
        data = load(self.row, self.original)
        objective, model = self.objective()

        def watch() -> Scores:
            z, h = self.encoded(data, model, self.scoring.watched)
            return {"mcc": metrics.mcc(z, h, "spearman")}

        yield Stage(objective, sampler(data), self.recipe.training, 2 * self.seed, watch)
        return objective, self.scores(data, model)

    def encoded(
        self, data: Sprites, model: nn.Module, n: int
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
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
        found: Scores = {"mcc": metrics.mcc(z[:train], h[:train], "spearman")}
        if not discrete:
            return found
        draw, d = metrics.sampler_from(z, h), z.shape[1]
        sizes: dict[str, Any] = {"train": train, "test": test, "random_state": self.seed}
        found["beta_vae"] = metrics.beta_vae(draw, d, **sizes)
        found["factor_vae"] = metrics.factor_vae(draw, h[:train], d, **sizes)
        found["mig"] = metrics.mig(z[:train], h[:train])
        found["modularity"] = metrics.modularity(z[:train], h[:train])
        z, h = z[: train + test], h[: train + test]  # split again by the metrics themselves
        found["dci"] = metrics.dci(z, h, random_state=self.seed).disentanglement
        found["sap"] = metrics.sap(z, h, random_state=self.seed)
        return found


# --- the studies ------------------------------------------------------------------------------------


class SpritesTable(Study[SpriteRow]):
    """Scores of disentanglement on sprites, and the MCC (Spearman) of their factors."""

    scorings: ClassVar[dict[str, Scoring]] = {"fast": Scoring(images=20_000), "paper": Scoring()}
    legend = (
        "In %, mean ± standard deviation over seeds (how many). Modularity counts codes that know "
        "nothing as 0, where the published one counts them as nearly 1."
    )
    within = (
        "no further from the published one, of which no deviation is known, than our own deviation, "
        "or 0.2 points if that is more"
    )

    def ready(self, rows: Sequence[SpriteRow]) -> None:
        for row in {row.version: row for row in rows}.values():
            load(row, row.is_dsprites and dsprites.is_at_hand())

    def targets(self, row: SpriteRow) -> list[Target]:
        """MCC where nothing else can be scored, else the six metrics and MCC, published or not."""
        scores = ("mcc",) if row.version == "continuous" else (*METRICS, "mcc")
        # nothing is held against figures on data that are not the published ones
        accepted = ("within", "above") if row.is_dsprites else ()
        return [Target(row.kind, score, row.published.get(score), accepted) for score in scores]

    def tolerance(self, target: Target, ours: Ours) -> float:
        return max(ours.std, 0.002)

    def experiment(
        self, row: SpriteRow, kind: str, seed: int, preset: str | Recipe
    ) -> SpritesExperiment:
        """dSprites are the original images where their archive is under IDENTICA_DATA."""
        vae = row.method in VAES
        if row.is_dsprites:
            fast = recipes.SPRITES_VAE if vae else recipes.SPRITES
        else:
            fast = recipes.NATURAL_VAE if vae else recipes.NATURAL
        recipe = recipes.pick(preset, fast=fast, paper=recipes.PAPER_IMAGES)
        scoring = self.scorings["paper" if preset == "paper" else "fast"]
        original = row.is_dsprites and dsprites.is_at_hand()
        return SpritesExperiment(row, seed, recipe, scoring, original)

    def read_back(self, row: SpriteRow, run: Finished) -> SpritesExperiment:
        original, scoring = run.config["data"] == "dsprites", Scoring(**run.config["scoring"])
        return SpritesExperiment(row, run.seed, recipes.from_config(run.config), scoring, original)

    def cells(self, row: SpriteRow) -> dict[str, str]:
        alpha = f"{row.alpha:g}".removeprefix("0")
        method = row.method if row.method in VAES else f"L_AU({alpha}, {row.p})"
        if not row.is_dsprites:
            return {"data": data_name(row, False), "method": method, "factors": row.version}
        data = "dSprites" if dsprites.is_at_hand() else "dSprites, re-rendered"
        return {"data": data, "method": method, "pairs": row.version}

    def label(self, target: Target) -> str:
        return SCORES[target.score]

    def words(self, row: SpriteRow) -> str:
        return f"{_DATA[row.version]} {_METHODS[row.method, row.p]}"

    def pictures(self, row: SpriteRow, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        found = runs.get(row.kind, [])
        if not found:
            return []
        known = row.published.get("mcc")
        goal = None if known is None else known.mean
        pictures = curves(found, "mcc", goal=goal, on="drawn images")
        with suppress(InputError):  # weights or data that are gone cost these pictures alone
            pictures += _what_was_recovered(self.read_back(row, found[0]), found[0])
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


def _what_was_recovered(experiment: SpritesExperiment, run: Finished) -> list[Picture]:
    from identica.report import plots

    objective, model = experiment.trained(run.folder)
    data, names = load(experiment.row, experiment.original), factors_of(experiment.row)
    factors, codes = experiment.encoded(data, model, SHOWN)
    z, which = factors.astype(float), f"seed {run.seed}, {run.config['data']}"
    columns = metrics.match(z, codes, "spearman").columns
    aligned = rescaled(z, codes[:, columns])
    figure = plots.true_against_recovered(z, aligned, "recovered", names=names)
    scatter = Picture(f"True factors against their codes, {which}", plots.inline(figure, dpi=80))
    if isinstance(objective, VAE):
        factor = dict(zip(columns.tolist(), names, strict=True))
        every = np.arange(codes.shape[1])
        images = traversals(objective, codes, every)
        labels = [f"code {k + 1}" + (f": {factor[k]}" if k in factor else "") for k in every]
        caption = (
            "What the decoder draws as one code moves through its quantiles, named after the factor "
            f"that it is matched to, {which}"
        )
    else:
        chosen = walks(codes, columns)
        drawn = data.images(factors[chosen.ravel()]) * np.uint8(255 // experiment.white)
        images, labels = drawn.reshape(*chosen.shape, 64, 64), list(names)
        caption = (
            "An image (left), and the images nearest to it in the codes as the code of one factor "
            f"moves through its quantiles, {which}"
        )
    figure = plots.sheet(tile(images), labels)
    return [scatter, Picture(caption, plots.inline(figure, dpi=80))]
