"""What a run on 3DIdent is, as plain data: rows, images, presets, and what names a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from identica._validate import one_of
from identica.datasets.root import data_root
from identica.datasets.threedident.storage import LATENTS, load_array
from identica.datasets.threedident.walks import DRAWS
from identica.errors import InputError
from identica.families import Family, Laplace, Normal
from identica.spaces import Box, Space
from identica.studies.presets import PRESETS
from identica.studies.tables import Published
from identica.training import Training


@dataclass(frozen=True)
class ImageRow:
    """A row of the table: a conditional (None: two augmented views of one image), a model, and what
    was published, by score. Rows of other kinds than "contrastive" have neither."""

    row: int
    kind: str
    published: dict[str, Published]
    conditional: Family | None = None
    model_space: Space | None = None
    model: Family | None = None
    match: bool = False
    forbidden: tuple[str, ...] = ()  # scores that theory keeps low


@dataclass(frozen=True)
class Images:
    """Which images: their size, rays per pixel, how many to train on, how many to score on.

    `original` images are not rendered, but read from `3dident/train` and `3dident/test` under
    IDENTICA_DATA.
    """

    size: int
    train: int
    test: int
    samples: int = 8
    original: bool = False


@dataclass(frozen=True)
class Walking:
    """How a row is trained on walks among the images, part by part.

    Attributes:
        start: how each of `starts` networks is trained first, on narrower pairs: wide ones take long to
            show that a code is worth having. The one with the lowest loss goes on: some fold a factor
            in the middle, which further training does not undo.
        starts: number of networks that start.
        narrow: how it goes on, still on narrower pairs.
        narrower: their width, as part of that of the process. Pairs that are narrower still are told from
            the rest of a batch by the seven easy factors, and the angles are not asked for.
        wide: how it goes on, on the pairs of the process.
        apart: how far apart two images of a walk count as independent.
        head: how the head is trained in the end, by itself, on what the rest of the network makes of
            each image once. That is cheap, so that steps can be many. Its pairs do not form walks, in which
            images near the walls are too few.
        heat: the temperature at which the head starts, and cools down from. In a box, all codes are then
            driven to its walls, and its axes are the ones to go along. At a temperature of 1, factors
            that are hard to see are drawn to the middle, feel no walls, and mixtures of them would stay.
            Where there are no walls, it makes no difference.
        cooling: the part of its training in which it cools down.
    """

    start: Training
    narrow: Training
    wide: Training
    head: Training
    starts: int = 3
    narrower: float = 0.7
    apart: int = 3
    heat: float = 12.0
    cooling: float = 0.9

    def parts(self) -> list[Training]:
        """The trainings of a run on images, in turn; that of the head is short beside them."""
        return [*[self.start] * self.starts, self.narrow, self.wide]


@dataclass(frozen=True)
class Settings:
    """How a row is trained.

    Attributes:
        images: what it is trained and scored on.
        network: "resnet18" or "small".
        contrastive: how it is trained on pairs that are nearest neighbours, as published, or augmented views.
        supervised: how it is trained on labels.
        width: the scale of the conditional, if it is to be another than that of the rows.
        walking: how it is trained instead where the pairs have a conditional; the network has to be "small".
        self_negative: each anchor counts among its own negatives, as published. That only helps
            where the conditional is so narrow that the task is easy without it.
        symmetric: both members of a pair are anchors in turn: more is learnt from the same images;
            near the walls of a box the reversed conditional is a little off the assumed one.
        bound: where the learnt side of a box starts; None fixes it where the model is the process.
    """

    images: Images
    network: str
    contrastive: Training
    supervised: Training
    width: float | None = None
    walking: Walking | None = None
    self_negative: bool = True
    symmetric: bool = False
    bound: float | None = 1.0


# --- presets ----------------------------------------------------------------------------------------

_published = Training(
    steps=30_000,
    batch=512,
    lr=1e-4,
    optimizer="adam",
    warmup=0,
    decay=0,
    score_every=500,
    checkpoint_every=50,
)
PAPER = Settings(
    images=Images(size=224, train=250_000, test=25_000),
    network="resnet18",
    contrastive=_published,
    supervised=_published,
    width=0.1,  # not printed in the paper: what the authors' program takes if it is not told otherwise
)
_quick = Training(steps=1000, batch=256, lr=1e-2, warmup=50, score_every=250, checkpoint_every=100)
FAST = Settings(
    images=Images(size=64, train=120_000, test=4096, samples=4),
    network="small",
    contrastive=_quick,
    supervised=replace(_quick, steps=3600, batch=128),
    walking=Walking(
        start=replace(_quick, steps=250, decay=0),
        narrow=replace(_quick, steps=1200, decay=0),
        wide=replace(_quick, steps=3200, lr=7.5e-3),
        head=Training(
            steps=4000,
            batch=512,
            lr=1e-3,
            optimizer="adam",
            decay=0.6,
            score_every=500,
            checkpoint_every=200,
        ),
    ),
    self_negative=False,
    symmetric=True,
    bound=None,
)


def original(part: str) -> Path:
    """Where the original "train" or "test" images are, for those who have them."""
    return data_root() / "3dident" / part


def choose(preset: str) -> Settings:
    """The settings of a preset; `paper` takes the original images where they are at hand."""
    if one_of("preset", preset, PRESETS) == "fast":
        return FAST
    if not all(original(part).is_dir() for part in ("train", "test")):
        return PAPER
    n, n_test = (len(load_array(original(part) / LATENTS)) for part in ("train", "test"))
    return replace(PAPER, images=replace(PAPER.images, train=n, test=n_test, original=True))


# --- what names a run -------------------------------------------------------------------------------


def describe(row: ImageRow, seed: int, settings: Settings) -> dict[str, Any]:
    """What decides the result of a run, as plain data for config.json."""
    config: dict[str, Any] = {
        "kind": row.kind,
        "seed": seed,
        "data": "3dident",
        "images": asdict(settings.images),
    }
    if row.kind == "identity":
        return config
    config["network"] = settings.network
    if walking := walking_of(row, settings):
        config |= {"walking": asdict(walking), "draws": DRAWS}
    else:
        config["training"] = asdict(getattr(settings, row.kind))
    if row.kind == "contrastive":
        config |= {
            "conditional": "augmentations" if row.conditional is None else repr(row.conditional),
            "model_space": repr(row.model_space),
            "model": repr(row.model),
            "self_negative": settings.self_negative,
            "symmetric": settings.symmetric,
        }
    if isinstance(row.model_space, Box):
        config["bound"] = settings.bound
    return config


def settings_of(config: Mapping[str, Any]) -> Settings:
    """The settings that a run was made with, from its config.json."""
    names = ("self_negative", "symmetric", "bound")
    more = {name: config[name] for name in names if name in config}
    if "walking" in config:
        parts: dict[str, Any] = {
            name: Training(**value) if isinstance(value, dict) else value
            for name, value in config["walking"].items()
        }
        more["walking"] = Walking(**parts)
    training = Training(**config["training"]) if "training" in config else Training()
    return Settings(Images(**config["images"]), config["network"], training, training, **more)


def walking_of(row: ImageRow, settings: Settings) -> Walking | None:
    """How a row walks, None if it does not: augmented views do not lead from image to image."""
    has_pairs = row.kind == "contrastive" and row.conditional is not None
    return settings.walking if has_pairs else None


def work(row: ImageRow, settings: Settings) -> tuple[int, int]:
    """The steps of a run on images, and how many pairs they see."""
    walking = walking_of(row, settings)
    alone: Training | None = getattr(settings, row.kind, None)
    parts = walking.parts() if walking else [alone] if alone else []
    return sum(t.steps for t in parts), sum(t.steps * t.batch for t in parts)


def scale_of(conditional: Family | None) -> float:
    """The scale of a conditional: the standard deviation of a normal one, λ of a Laplace."""
    if isinstance(conditional, Normal):
        return conditional.std
    if isinstance(conditional, Laplace):
        return conditional.scale
    raise InputError(f"conditional must be Normal or Laplace, got {conditional!r}")


def scaled(row: ImageRow, scale: float) -> ImageRow:
    """The same row with pairs of another scale."""
    family = Normal if isinstance(row.conditional, Normal) else Laplace
    return replace(row, conditional=family(scale))


def narrower(row: ImageRow, by: float) -> ImageRow:
    """The same row with pairs nearer to each other."""
    return scaled(row, by * scale_of(row.conditional))


def as_trained(row: ImageRow, settings: Settings) -> ImageRow:
    """The row with the pairs that the settings ask for."""
    if row.conditional is None or settings.width is None:
        return row
    return scaled(row, settings.width)


def matched_side(row: ImageRow) -> float:
    """The side of a box for which a normal model of precision 1 has the width of the conditional.

    A learnt side outgrows it while the angles are not known yet, and nothing pushes it back: its walls
    are then not felt, and factors stay mixed.
    """
    scale = scale_of(row.conditional)
    return 2 / (scale * 2**0.5) if isinstance(row.conditional, Normal) else 1 / scale


def r2_of(factor: str) -> str:
    """The name of the score that is the R² of one factor."""
    return f"r2 of {factor}"
