"""One run on sprites: which images and pairs, how it is trained, and how it is scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from identica import metrics
from identica._validate import count, one_of
from identica.baselines import AdaGVAE, BetaVAE, SlowVAE
from identica.baselines.vae import NETWORKS, VAE
from identica.datasets import dsprites, kitti_masks, natural_sprites
from identica.encoders import ContrastiveModel
from identica.losses import AlignUniform
from identica.process import Pairs
from identica.spaces import Euclidean
from identica.studies.images import Encode, codes_of
from identica.studies.presets import PRESETS
from identica.studies.study import Tick
from identica.studies.tables import L1, N1, Published
from identica.studies.trained import fit, result
from identica.training import Contrastive, Sampler, Training

CODES = 10
R = Euclidean(CODES)
METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")  # of discrete factors
DSPRITES = ("UNI", "LAP")

# the autoencoders, and the terms of their objectives as published
VAES: dict[str, type[VAE]] = {"β-VAE": BetaVAE, "SlowVAE": SlowVAE, "Ada-GVAE": AdaGVAE}
TERMS: dict[str, dict[str, float]] = {
    "β-VAE": {"beta": 8.0},
    "SlowVAE": {"beta": 1.0, "gamma": 10.0, "rate": 6.0, "entropy": 0.5},
    "Ada-GVAE": {"beta": 1.0},
}
KINDS = {
    "β-VAE": "beta-vae",
    "SlowVAE": "slow-vae",
    "Ada-GVAE": "ada-gvae",
    "L_AU": "contrastive",
}


@dataclass(frozen=True)
class SpriteRow:
    """A row: a method, the version of the data, and what was published of it, by score.

    The version of dSprites is the law of its pairs, "UNI" or "LAP"; that of Natural Sprites is
    "discrete" or "continuous". Contrastive rows have the α and p of L_AU(α, p).
    """

    row: int
    method: str
    version: str
    published: dict[str, Published]
    alpha: float = 0.0
    p: int = 0

    @property
    def kind(self) -> str:
        return KINDS[self.method]

    @property
    def is_dsprites(self) -> bool:
        return self.version in DSPRITES

    @property
    def factors(self) -> tuple[str, ...]:
        """The names of the factors."""
        return dsprites.FACTORS if self.is_dsprites else natural_sprites.FACTORS

    @property
    def white(self) -> int:
        """The largest value of a pixel."""
        return 1 if self.is_dsprites else 255

    @property
    def terms(self) -> dict[str, float]:
        """What decides its objective."""
        return TERMS.get(self.method, {"alpha": self.alpha, "p": self.p})


# --- how a row is trained and scored ----------------------------------------------------------------


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


@dataclass(frozen=True)
class Settings:
    """Training, scoring, the network ("conv", as published, or "small"), the α from which those above
    .99 rise in the first four fifths of the training, and whether dSprites are the original images
    rather than re-rendered."""

    training: Training
    scoring: Scoring = Scoring()
    network: str = "conv"
    anneal: float | None = None
    original: bool = False


PAPER = Training(
    steps=300_000,
    batch=32,
    lr=1e-4,
    optimizer="adam",
    warmup=0,
    decay=0,
    score_every=5000,
    checkpoint_every=500,
)
# Shape and angle are found last. An encoder that describes an object in the same way wherever it stands
# finds them with a fraction of the pairs that the published one needs. On Natural Sprites, whose shape and
# angle never change within a pair, scores are as high as they get after a few hundred steps.
FAST = {
    "contrastive": Settings(
        Training(steps=1500, batch=256, lr=1e-2, warmup=20, decay=0.7),
        Scoring(images=20_000),
        network="small",
        anneal=0.9,
    ),
    "vae": Settings(
        Training(steps=2000, batch=32, lr=5e-3, warmup=20, decay=0.5),
        Scoring(images=20_000),
        network="small",
    ),
}
NATURAL_STEPS = {"contrastive": 400, "vae": 1000}


def choose(preset: str, row: SpriteRow) -> Settings:
    """The settings of a preset for a row; the contrastive rows of a data set share theirs, and so do
    its autoencoders.

    dSprites are the original images where their archive is under IDENTICA_DATA.
    """
    kind = "vae" if row.method in VAES else "contrastive"
    settings = FAST[kind]
    if one_of("preset", preset, PRESETS) == "paper":
        settings = Settings(PAPER)
    elif not row.is_dsprites:
        training = replace(settings.training, steps=NATURAL_STEPS[kind])
        settings = replace(settings, training=training)
    return replace(settings, original=row.is_dsprites and dsprites.is_at_hand())


def data_name(row: SpriteRow, original: bool) -> str:
    """The name of the data of a row: what is not the published data set is not called so."""
    if not row.is_dsprites:
        return "natural-sprites-kitti"
    return "dsprites" if original else "dsprites-rerendered"


def describe(row: SpriteRow, seed: int, settings: Settings) -> dict[str, Any]:
    """Everything that decides the result of a run, as plain data for config.json."""
    config: dict[str, Any] = {
        "kind": row.kind,
        "seed": seed,
        "data": data_name(row, settings.original),
        "version": row.version,
        "method": row.method,
        "terms": row.terms,
        "training": asdict(settings.training),
        "scoring": asdict(settings.scoring),
        "network": settings.network,
    }
    if row.method in VAES:
        return config
    annealed = anneal_of(row, settings)
    return config | {"space": repr(R)} | ({} if annealed is None else {"anneal": annealed})


def anneal_of(row: SpriteRow, settings: Settings) -> tuple[float, int] | None:
    """The annealing of the loss of a contrastive row, see `AlignUniform`."""
    if settings.anneal is None or row.alpha <= 0.99:
        return None
    return settings.anneal, 4 * settings.training.steps // 5


def settings_of(config: Mapping[str, Any]) -> Settings:
    """The settings that a run was made with, from its config.json."""
    training, scoring = Training(**config["training"]), Scoring(**config["scoring"])
    anneal = config["anneal"][0] if "anneal" in config else None
    return Settings(training, scoring, config["network"], anneal, config["data"] == "dsprites")


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
    """dSprites with pairs of the law "UNI" or "LAP"; re-rendered, or from packed original images."""

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


def load(row: SpriteRow, original: bool = False) -> Sprites:
    """The data of a row. Natural Sprites move as KITTI Masks do, which have to be at hand."""
    if row.is_dsprites:
        return DSprites(row.version, dsprites.load() if original else None)
    masks = kitti_masks.load()
    return natural_sprites.from_kitti(masks, discrete=row.version == "discrete")


def sampler(data: Sprites) -> Sampler:
    """Draws pairs of images with their factors."""

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        seed = int(torch.randint(2**62, (), generator=generator))
        factors = data.pairs(size, np.random.default_rng(seed))
        x, x_pos = (torch.from_numpy(data.images(chosen)) for chosen in factors)
        z, z_pos = (torch.from_numpy(chosen) for chosen in factors)
        return Pairs(z, z_pos, x, x_pos)

    return sample


# --- runs -------------------------------------------------------------------------------------------


def make_objective(row: SpriteRow, seed: int, settings: Settings) -> tuple[nn.Module, Encode]:
    """The objective of a row, untrained, and what gives the codes of images."""
    if row.method in VAES:
        make: Any = VAES[row.method]
        shared = {"scale": float(row.white), "network": settings.network, "seed": seed}
        vae = make(CODES, **shared, **row.terms)
        return vae, vae.codes
    make_encoder, _ = NETWORKS[settings.network]  # the same as in autoencoders
    encoder = make_encoder(CODES, channels=1, scale=float(row.white), seed=seed)
    model = ContrastiveModel(R, L1 if row.p == 1 else N1, encoder)
    # the anchor counts among its own negatives, as published: that fixes the scale of the codes
    loss = AlignUniform(row.alpha, row.p, self_negative=True, anneal=anneal_of(row, settings))
    return Contrastive(model, loss), model


def encoded(
    data: Sprites, encode: Encode, n: int, seed: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Factors (n×5) and codes (n×10) of images drawn at random; images are made as needed."""
    z = data.sample(n, np.random.default_rng(2 * seed + 1))
    parts = np.array_split(z, -(-n // 1000))
    return z, np.concatenate([codes_of(encode, data.images(part)) for part in parts])


def score(
    row: SpriteRow, data: Sprites, encode: Encode, scoring: Scoring, seed: int
) -> dict[str, float]:
    """All scores of a row, by name.

    Samples that share a factor are drawn from a table of encoded images, not encoded one by one:
    BetaVAE and FactorVAE would need three million.
    """
    discrete = row.version != "continuous"
    train, test = scoring.train, scoring.test
    z, h = encoded(data, encode, scoring.images if discrete else train, seed)
    found = {"mcc": metrics.mcc(z[:train], h[:train], "spearman")}
    if not discrete:
        return found
    draw, d = metrics.sampler_from(z, h), z.shape[1]
    sizes: dict[str, Any] = {"train": train, "test": test, "random_state": seed}
    found["beta_vae"] = metrics.beta_vae(draw, d, **sizes)
    found["factor_vae"] = metrics.factor_vae(draw, h[:train], d, **sizes)
    found["mig"] = metrics.mig(z[:train], h[:train])
    found["modularity"] = metrics.modularity(z[:train], h[:train])
    z, h = z[: train + test], h[: train + test]  # split again by the metrics themselves
    found["dci"] = metrics.dci(z, h, random_state=seed).disentanglement
    found["sap"] = metrics.sap(z, h, random_state=seed)
    return found


def run(
    row: SpriteRow,
    seed: int,
    settings: Settings,
    *,
    out: Path | None = None,
    tick: Tick | None = None,
) -> dict[str, Any]:
    """Train and score one row with one seed; the result as in result.json."""
    data = load(row, settings.original)
    objective, encode = make_objective(row, seed, settings)

    def watch() -> dict[str, float]:
        z, h = encoded(data, encode, settings.scoring.watched, seed)
        return {"mcc": metrics.mcc(z, h, "spearman")}

    history = fit(
        objective,
        sampler(data),
        settings.training,
        seed=2 * seed,
        score=watch,
        out=out,
        tick=tick,
    )
    scores = score(row, data, encode, settings.scoring, seed)
    return result(scores, history, settings.training, seed)
